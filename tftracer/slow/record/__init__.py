"""Slow steps on their way to the session's file and back."""

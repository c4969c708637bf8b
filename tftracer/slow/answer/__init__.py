"""Answers about slow steps: ranking, texts, flame graphs."""

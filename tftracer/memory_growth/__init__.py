"""Proves from a curve that memory grows, and lists what grows with it."""

"""Slow steps: what is watched, what caused them, what is kept of them, and what is said of them."""

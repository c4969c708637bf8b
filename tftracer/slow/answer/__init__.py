"""Answers questions about slow steps: their ranking, texts and flame graphs."""

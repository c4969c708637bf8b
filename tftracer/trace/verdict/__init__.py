"""Sentences about what slows a step down, and findings about what its trace lacks."""

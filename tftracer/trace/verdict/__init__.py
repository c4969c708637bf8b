"""Say in sentences what slows a step down, and what its trace lacks."""

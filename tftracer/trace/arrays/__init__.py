"""NumPy building blocks that do not depend on traces."""

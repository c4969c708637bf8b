"""A session in a file: what its records hold, how they are written, read and believed."""

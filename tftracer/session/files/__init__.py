"""A session in a file: the contents of its records, and how they are written, read and checked."""

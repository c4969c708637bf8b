"""Jobs in files: saved as one file, and profiles of several hosts."""

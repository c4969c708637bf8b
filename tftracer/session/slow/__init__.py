"""Slow steps and the time between steps: from what the watch recorded to what the page shows and the file keeps."""

"""Decodes and analyzes traces in a helper process next to the training, or in this process if there is no training."""

"""Decodes a trace (RunMetadata or a profile, XSpace) into columns, and computes answers from them.

Imports neither Tornado nor TensorFlow. The only file it reads is ``decode/run_metadata.binpb``, the descriptors of TensorFlow's
messages.
"""

"""Decodes and analyses traces: RunMetadata or a profile (XSpace) in, columns and answers out.

Imports no Tornado, and TensorFlow only in ``decode.descriptors.extract``. The only file it reads is
``decode/run_metadata.binpb``, the descriptors of TensorFlow's messages.
"""

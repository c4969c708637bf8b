"""Finds what limits a ``tf.data`` pipeline: ``watch`` looks into running iterators, ``limit`` and ``answer`` explain."""

"""Finds what limits a ``tf.data`` pipeline: ``watch`` looks into running iterators, ``limiting_stage`` and ``answer`` explain."""

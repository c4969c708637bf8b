"""Decodes the bytes of a RunMetadata or a profile (XSpace) into the columns of a ``Trace``."""

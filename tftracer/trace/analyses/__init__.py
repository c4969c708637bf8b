"""Analyses: most modules turn a ``Trace`` into one message of ``contract.trace``."""

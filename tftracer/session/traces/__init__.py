"""Which traces of a session are kept, which are missing, and which show usual steps."""

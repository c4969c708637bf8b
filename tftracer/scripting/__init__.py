"""What scripts ask of sessions: ``tftracer.open``, exported tables, SQL, comparisons."""

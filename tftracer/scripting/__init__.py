"""What scripts use to read sessions: ``tftracer.open``, exported tables, SQL, comparisons."""

"""Sessions for scripts: ``tftracer.open``, exported tables, SQL, comparisons."""

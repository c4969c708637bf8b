"""Where a process's wall time went: ``spans`` and ``book`` add it up where it is recorded, ``answer`` says it elsewhere."""

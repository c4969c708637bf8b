"""The parts of a process's wall time: ``book`` adds them up in the recorded process, ``answer`` describes them elsewhere."""

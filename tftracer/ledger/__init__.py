"""The parts of a process's wall time: ``time_sums`` adds them up in the recorded process, ``answer`` describes them elsewhere."""

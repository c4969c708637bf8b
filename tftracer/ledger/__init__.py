"""The parts of a process's wall time: ``add_up_activities`` measures them in the process, ``answer`` lists them."""

"""The parts of a process's wall time: ``divide_wall_time`` measures them in the process, ``parts_of_wall_time`` lists them."""

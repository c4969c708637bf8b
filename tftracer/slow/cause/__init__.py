"""What made a step slow, from samples, clocks and the machine's counters. Pure: no clocks, no threads."""

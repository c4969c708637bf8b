"""Finds what made a step slow, from samples, times and the machine's counters. Pure: reads no clock, starts no thread."""

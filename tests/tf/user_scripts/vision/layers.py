"""What the package computes."""


def double(x):
    return x * 2.0

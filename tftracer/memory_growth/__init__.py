"""Memory that grows: whether it does is proven from a curve, and what grows beside it is listed."""

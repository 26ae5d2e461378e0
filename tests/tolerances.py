"""How close is equal, for all tests."""

IDENTITY = 1e-10  # two ways to the same number
GRADIENT = 1e-6  # a gradient and its finite differences, relative

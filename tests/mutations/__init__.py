"""A mutation check: faults planted in the source at random, and the tests that notice them.

`python -m tests.mutations` runs it; it is no test of the suite.
"""

"""Faults that take minutes each: `make nightly`, not part of `make test`."""

"""Lookup, exec and verify: run one statement for each record of a file."""

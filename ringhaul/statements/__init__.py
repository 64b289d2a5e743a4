"""Lookup, exec and verify: one statement for each record of a file."""

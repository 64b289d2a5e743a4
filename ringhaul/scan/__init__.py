"""Unload, count and query: token ranges to rows, and rows to files, counts and tables."""

"""Unload, count and query: read token ranges as rows, and make files, counts and tables of them."""

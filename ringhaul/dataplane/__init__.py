"""Requests over a process's own connections: pools, windows and retries, for reads and writes."""

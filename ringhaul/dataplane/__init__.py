"""Requests over a process's own connections: pools, windows, retries. Used by writes and reads."""

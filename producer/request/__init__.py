"""Requests: what a command should do, checked before any service is contacted."""

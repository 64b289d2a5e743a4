"""Requests: what a command is to do, checked before any service is reached."""

"""The error for an invalid result page."""

from __future__ import annotations


class HostilePage(ValueError):
    """A result page violates the protocol or its column types, so that it cannot be decoded.

    Either it was garbled on its way from the server, or the table's columns have changed since
    their types were read.
    """


def checked(found: int, what: str) -> int:
    """Return a kernel's result. Raises `HostilePage` if it is -1 - i, for a bad value i."""
    if found < 0:
        raise HostilePage(f"value {-1 - found} is not {what}")
    return found

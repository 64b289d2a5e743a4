"""What is raised for a page that cannot be one."""

from __future__ import annotations


class HostilePage(ValueError):
    """A result page breaks the protocol or its column types: what it holds cannot be told.

    Either something between us and the server garbled it, or the table's columns have changed
    since their types were read.
    """


def checked(found: int, what: str) -> int:
    """What a kernel returned, unless it is -1 - i for a bad value i. Raises `HostilePage`."""
    if found < 0:
        raise HostilePage(f"value {-1 - found} is not {what}")
    return found

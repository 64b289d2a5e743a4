"""The memory of this process."""

from __future__ import annotations

import resource


def rss_peak_bytes() -> int:
    """Return the most resident memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

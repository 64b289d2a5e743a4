"""Format figures for people."""

from __future__ import annotations


def bytes_text(count: float) -> str:
    """Format a size, such as `11.2 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def rate_text(per_s: float) -> str:
    """Format a rate, such as `241k` or `812`."""
    if per_s >= 10_000:
        return f"{per_s / 1000:,.0f}k"
    return f"{per_s:,.0f}"


def time_text(seconds: float | None) -> str:
    """Format a time, such as `2:51` or `1:02:51`; `-` if it is unknown."""
    if seconds is None:
        return "-"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def ms_text(milliseconds: float | None) -> str:
    """Format milliseconds, such as `38 ms`; `-` if they are unknown."""
    if milliseconds is None:
        return "-"
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Format a count, such as `1 file` or `48 files`; `plural` if it is not formed by an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"

"""Values in HTML, as reports and pages show them. Pure.

Whatever comes from outside is escaped twice: control characters become visible, as on a terminal,
and markup becomes text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tornado.escape import xhtml_escape

from config.secrets import mask
from producer.text import bytes_text, ms_text, rate_text, time_text
from ringhaul.plain_text import as_line

#: A unit's time is shown with a tenth of a second below this.
_TENTHS_BELOW_S = 60
#: Class and mark of each state: what the colour says, the mark and the word say too.
_STATES: Mapping[str, tuple[str, str]] = {
    "RUNNING": ("", "\u25b6"),
    "WAITING": ("warn", "\u25f7"),
    "STALLED": ("bad", "!"),
    "PAUSED": ("warn", "\u2016"),
    "COMPLETE": ("good", "\u2713"),
    "PARTIAL": ("warn", "!"),
    "STOPPED": ("bad", "\u2715"),
    "QUARANTINED": ("bad", "\u2715"),
    "FAILED": ("bad", "\u2715"),
    "CANCELLED": ("", "\u2013"),
    "DAMAGED": ("bad", "\u2715"),
}
_PREPOSITIONS = {"load": "into", "verify": "against", "exec": ""}  # an exec has its verb


def state_tone(state: str) -> str:
    """Return the class of a job's state: `good`, `warn`, `bad` or none."""
    return _STATES.get(state, ("", "?"))[0]


def state_mark(state: str) -> str:
    """Return the sign of a job's state, so that it can be recognized without its colour."""
    return _STATES.get(state, ("", "?"))[1]


def preposition_of(kind: str) -> str:
    """Return a kind of job with the word before its table: `load into`, `count of`."""
    return _PREPOSITIONS.get(kind, "of")


def shown(value: bytes) -> str:
    """Escape a value for a page; every expression of the templates goes through it."""
    return xhtml_escape(as_line(mask(value.decode())))


def count(value: int) -> str:
    """Return a count with separators of thousands."""
    return f"{value:,}"


def duration_of(seconds: float | None) -> str:
    """Return the time that a unit took; `-` if it is unknown."""
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < _TENTHS_BELOW_S else time_text(seconds)


def exact(value: float | str | None) -> str:
    """Return a value as `status --json` has it, so that programs can compare."""
    return value if isinstance(value, str) else json.dumps(value)


def figure(value: float | str | None) -> str:
    """Return a figure of a summary for people; `-` if it is unknown."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.3f}" if math.isfinite(value) else "-"
    return f"{value:,.0f}"


def when(at_ms: int) -> str:
    """Return a `time` element with date and time, in UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%Y-%m-%d %H:%M:%S} UTC</time>'


def clock(at_ms: int) -> str:
    """Return a `time` element that shows the time of day only, in UTC."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%H:%M:%S}</time>'


#: What templates call beside `shown`, by the names that they use.
FUNCTIONS: Mapping[str, Callable[..., str]] = {
    "shown": shown,
    "count": count,
    "size": bytes_text,
    "rate": rate_text,
    "ms": ms_text,
    "duration": time_text,
    "duration_of": duration_of,
    "exact": exact,
    "figure": figure,
    "when": when,
    "clock": clock,
    "tone": state_tone,
    "mark": state_mark,
    "preposition": preposition_of,
}

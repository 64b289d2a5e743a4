"""Show findings: under headings on a terminal, one line each on a pipe, or as JSON. Pure."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

from producer.doctor.finding import SECTIONS, Finding, State, exit_code
from ringhaul.plain_text import as_line

_MARKS = {State.OK: "ok", State.WARNING: "warn", State.FAULT: "FAIL", State.UNCHECKED: "?"}
#: Columns before the text of a finding on a terminal.
_INDENT = 23
#: A narrower terminal breaks the lines itself.
_WIDTH_MIN = 60
#: Wider lines are hard to read.
_WIDTH_MAX = 100


def terminal_lines(findings: Sequence[Finding], seconds: float, width: int) -> list[str]:
    """Return the lines for a terminal of `width` columns, with a line of totals at the end."""
    width = max(_WIDTH_MIN, min(width, _WIDTH_MAX))
    lines: list[str] = []
    for section in SECTIONS:
        found = [finding for finding in findings if finding.about == section.about]
        if found:
            lines += ([""] if lines else []) + [section.about]
        for finding in found:
            head = f"  {_MARKS[finding.state]:<4}  {finding.check:<13}  "
            lines += _wrapped(head, finding.text, width)
            if finding.advice:
                lines += _wrapped(" " * _INDENT + "-> ", finding.advice, width)
    return [*lines, "", totals(findings, seconds)]


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        as_line(text),
        width,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def pipe_lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each finding, for `grep` and logs."""
    return [
        f" {_MARKS[one.state]:<4}  {one.about:<7}  {one.check:<13}  {as_line(_joined(one))}"
        for one in findings
    ]


def _joined(finding: Finding) -> str:
    return f"{finding.text}: {finding.advice}" if finding.advice else finding.text


def totals(findings: Sequence[Finding], seconds: float) -> str:
    """Return how many findings there are of each state."""
    counts = Counter(finding.state for finding in findings)
    warnings, faults = counts[State.WARNING], counts[State.FAULT]
    words = [
        f"{counts[State.OK]} ok",
        f"{warnings} warning" + ("" if warnings == 1 else "s"),
        f"{faults} fault" + ("" if faults == 1 else "s"),
    ]
    if counts[State.UNCHECKED]:
        words.append(f"{counts[State.UNCHECKED]} not checked (?)")
    return f"{', '.join(words)}; {seconds:.1f} s"


def json_document(findings: Sequence[Finding], seconds: float) -> dict[str, Any]:
    """Return what `--json` prints."""
    return {
        "exit_code": exit_code(findings),
        "seconds": round(seconds, 2),
        "checks": [
            {
                "about": finding.about,
                "check": finding.check,
                "level": finding.state.value,
                "text": finding.text,
                "advice": finding.advice,
            }
            for finding in findings
        ],
    }

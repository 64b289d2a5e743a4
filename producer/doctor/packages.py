"""Packages of other software that have the names of ours.

If one hides ours, no command can run: `show_hidden` is what they all show instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from producer.doctor.finding import MACHINE, exit_code
from producer.doctor.render import json_document, pipe_lines
from ringhaul.errors import EXIT_FATAL
from ringhaul.plain_text import as_line
from ringhaul.shadowed import Shadow

_ALONE = "install ringhaul in a separate environment"
HIDDEN_ADVICE = f"{_ALONE}, and take that folder out of PYTHONPATH"
TWICE_ADVICE = f"the files of one may have replaced those of the other: {_ALONE}"


def judge_packages(
    hidden: Sequence[tuple[str, str]], twice: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """Return what is wrong and what to do; empty texts if nothing is.

    `hidden`: (package of ours, what Python imports instead); `twice`: (package of ours, another
    distribution that installs one of this name).
    """
    if hidden:
        return "; ".join(f"Python imports {name} from {path}" for name, path in hidden), (
            f"this is not ringhaul's: {HIDDEN_ADVICE}"
        )
    if twice:
        return "; ".join(f"{other} installs {name}, too" for name, other in twice), TWICE_ADVICE
    return "", ""


def show_hidden(hidden: Sequence[Shadow], arguments: Sequence[str]) -> int:
    """Print that packages are hidden, for any command line; return the exit code."""
    text, advice = judge_packages([(one.name, one.path) for one in hidden], [])
    finding = MACHINE.fault("packages", text, advice)
    if list(arguments[:1]) != ["doctor"]:
        print(f"error: {as_line(f'{finding.text}: {finding.advice}')}", file=sys.stderr)
        return EXIT_FATAL
    if "--json" in arguments:
        print(json.dumps(json_document([finding], 0.0), indent=2))
    else:
        print("\n".join(pipe_lines([finding])))
    return exit_code([finding])

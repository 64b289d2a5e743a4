"""Options that do not go together: one would be taken and do nothing. Pure.

Pairs that a command line shows by itself. `embedded.py` has those that depend on whether there is a
broker, `outputs.py` those of the rows.
"""

from __future__ import annotations

from collections.abc import Collection

from ringhaul.errors import UsageError

_NO_JOB = "is of a job that runs, and --dry-run makes none: leave one of them out"
_NOT_FOLLOWED = "is of a command that follows its job, and --detach does not: leave one of them out"
#: Two options by their names in a command, and what there is to say.
PAIRS = {
    ("summary", "dry_run"): f"--summary {_NO_JOB}",
    ("summary", "detach"): (
        "--summary is written at the end of the job, and --detach does not wait for it: leave one "
        "of them out (`ringhaul status -f JOB --json` has the summary then)"
    ),
    ("on_interrupt", "detach"): f"--on-interrupt {_NOT_FOLLOWED}",
    ("progress", "detach"): f"--progress {_NOT_FOLLOWED}",
    ("profile_dir", "dry_run"): f"--profile {_NO_JOB}",
    ("detach", "dry_run"): f"--detach {_NO_JOB}",
    ("on_interrupt", "dry_run"): f"--on-interrupt {_NO_JOB}",
    ("progress", "dry_run"): f"--progress {_NO_JOB}",
    ("export", "as_json"): (
        "--export writes the rejected records, --json what is wrong with them: give one of them"
    ),
    ("limit", "export"): "--limit is of what is shown, and --export writes all: leave it out",
}


def refuse_together(given: Collection[str]) -> None:
    """Raise `UsageError` for two that were both given; `given`: see `options.given_options`."""
    for pair, why in PAIRS.items():
        if set(pair) <= set(given):
            raise UsageError(why)

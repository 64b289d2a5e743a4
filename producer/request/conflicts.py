"""Refuse pairs of options of which one would have no effect.

A command line shows these pairs by itself. `services/start.py` checks pairs that depend on the
broker, `output.py` checks pairs about rows.
"""

from __future__ import annotations

from collections.abc import Collection

from config.settings import Loaded
from producer.options.job import Following
from ringhaul.errors import UsageError

_NO_JOB = "needs a job, and --dry-run starts none: leave one of them out"
_NOT_FOLLOWED = "needs a command that follows its job, and --detach ends it: leave one of them out"
_NOT_SENT = "says how rows are sent, and --to-sstables sends none: leave one of them out"
#: Two options by their names in a command, and the message.
PAIRS = {
    ("summary", "dry_run"): f"--summary {_NO_JOB}",
    ("summary", "detach"): (
        "--summary is written at the end of the job, and --detach does not wait for it: leave one "
        "of them out (`ringhaul status -f JOB --json` has the summary then)"
    ),
    ("report", "dry_run"): f"--report {_NO_JOB}",
    ("report", "detach"): (
        "--report is written at the end of the job, and --detach does not wait for it: leave one "
        "of them out (`ringhaul report JOB -o FILE` writes it then)"
    ),
    ("on_interrupt", "detach"): f"--on-interrupt {_NOT_FOLLOWED}",
    ("progress", "detach"): f"--progress {_NOT_FOLLOWED}",
    ("detach", "dry_run"): f"--detach {_NO_JOB}",
    ("on_interrupt", "dry_run"): f"--on-interrupt {_NO_JOB}",
    ("progress", "dry_run"): f"--progress {_NO_JOB}",
    ("priority", "dry_run"): f"--priority {_NO_JOB}",
    ("to_sstables", "strategy"): f"--strategy {_NOT_SENT}",
    ("to_sstables", "consistency"): f"--consistency {_NOT_SENT}",
    ("to_sstables", "create_table"): (
        "--to-sstables needs the table's options, such as its compression: create the table first "
        "(`--create-table --dry-run` prints a statement for what the files hold)"
    ),
    ("via", "to_sstables"): (
        "--via says how rows reach the cluster, and --to-sstables sends none: leave one of them out"
    ),
    ("export", "as_json"): (
        "--export writes the rejected records, --json the reasons: give one of them"
    ),
    ("limit", "export"): "--limit applies to what is shown, and --export writes all: leave it out",
}


def refuse_together(given: Collection[str]) -> None:
    """Raise `UsageError` for two conflicting options that were both given; `given`: see
    `given_options`."""
    for pair, why in PAIRS.items():
        if set(pair) <= set(given):
            raise UsageError(why)


def refuse_embedded_detach(loaded: Loaded, options: Following) -> None:
    """Raise `UsageError` for --detach, or `--on-interrupt detach`, if no worker would remain to
    continue the job."""
    if loaded.is_embedded and (given := _detaching(options)):
        raise UsageError(f"{given} needs workers that stay: configure a broker and start some")


def refuse_stdout_detach(options: Following) -> None:
    """Raise `UsageError` for --detach if the command prints the rows: its own workers end with
    it."""
    if given := _detaching(options):
        raise UsageError(f"{given}: this command writes standard output; give -o a folder")


def _detaching(options: Following) -> str:
    """Return the option by which a command would detach; empty if it would not."""
    if options.detach:
        return "--detach"
    return "--on-interrupt detach" if options.on_interrupt == "detach" else ""


def refuse_workers_of_others(loaded: Loaded, options: Following) -> None:
    """Raise `UsageError` for -c if the workers do not belong to this command."""
    if not loaded.is_embedded and options.workers is not None:
        raise UsageError(
            "-c applies to embedded workers, and a broker is configured: its workers have the "
            "processes that `ringhaul worker -c` started (--broker none: embedded workers all the "
            "same)"
        )

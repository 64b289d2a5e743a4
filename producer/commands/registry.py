"""Every command: where its code is, and what it does. `ringhaul --help` needs no more than this."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import rich_click as click


class Entry(NamedTuple):
    """A command that is imported when it is used."""

    place: str  #: module:attribute of the click command
    summary: str  #: first sentence of its help


#: Heading in the help -> command -> entry.
GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "Move and check data": {
        "load": Entry(
            "producer.commands.load:load_command",
            "Load CSV, JSON Lines or Parquet files into a table.",
        ),
        "unload": Entry(
            "producer.commands.unload:unload_command",
            "Write a table's rows to files: CSV, JSON Lines or Parquet.",
        ),
        "verify": Entry(
            "producer.commands.verify:verify_command",
            "Compare files with a table, record by record; change nothing.",
        ),
    },
    "Ask": {
        "count": Entry(
            "producer.commands.query:count_command",
            "Count rows: all, by token range, by host, or in the largest partitions.",
        ),
        "query": Entry(
            "producer.commands.query:query_command",
            "Aggregate a table with a SELECT.",
        ),
        "lookup": Entry(
            "producer.commands.statements:lookup_command",
            "Read the rows of a list of keys.",
        ),
        "exec": Entry(
            "producer.commands.statements:exec_command",
            "Run a CQL statement once for each row of values.",
        ),
    },
    "Watch and steer jobs": {
        "status": Entry(
            "producer.commands.status:status_command",
            "List the jobs of this broker, or show one of them.",
        ),
        "errors": Entry(
            "producer.commands.errors:errors_command",
            "List or export rejected records: file, line, column and reason.",
        ),
        "top": Entry(
            "producer.commands.top:top_command",
            "Watch jobs, hosts and the slowest units, every second.",
        ),
        "pause": Entry(
            "producer.commands.control:pause_command",
            "Hold a running job.",
        ),
        "resume": Entry(
            "producer.commands.control:resume_command",
            "Let a paused job go on, or run the missing units of one that ended early.",
        ),
        "throttle": Entry(
            "producer.commands.control:throttle_command",
            "Limit a running job, or show its limits.",
        ),
        "cancel": Entry(
            "producer.commands.control:cancel_command",
            "End a running job.",
        ),
    },
    "Run the fleet": {
        "worker": Entry(
            "producer.commands.celery_commands:worker_command",
            "Work on units of all jobs, until stopped.",
        ),
        "schedule": Entry(
            "producer.schedule.commands:schedule",
            "Show, run, pause and resume scheduled jobs.",
        ),
        "beat": Entry(
            "producer.schedule.commands:beat_command",
            "Start scheduled jobs when they are due.",
        ),
        "flower": Entry(
            "producer.commands.celery_commands:flower_command",
            "Serve the monitoring page.",
        ),
    },
    "Set up": {
        "demo": Entry(
            "producer.commands.demo:demo_command",
            "Load a generated sample into a throw-away Cassandra and verify every row of it.",
        ),
        "local": Entry(
            "producer.commands.local:local",
            "Run a real Cassandra and Valkey on this machine, without Docker.",
        ),
        "config": Entry(
            "producer.commands.config:config_command",
            "Show the settings, and where each comes from.",
        ),
        "doctor": Entry(
            "producer.commands.doctor:doctor_command",
            "Check broker, cluster and workers, and say what to do.",
        ),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def find_command(name: str) -> click.Command | None:
    """The click command of this name; None if there is none."""
    entry = COMMANDS.get(name)
    if entry is None:
        return None
    module, _, attribute = entry.place.partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command

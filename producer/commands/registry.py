"""Every command: where its code is, and what it does. `ringhaul --help` needs nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import rich_click as click


class Entry(NamedTuple):
    """One command; its module is imported only when it is used."""

    place: str  #: module:attribute of the click command
    summary: str  #: first sentence of its help
    example: str


#: Heading in the help -> command -> entry.
GROUPS: Mapping[str, Mapping[str, Entry]] = {
    "Move and check data": {
        "load": Entry(
            "producer.commands.load:load_command",
            "Load CSV, JSON Lines or Parquet files into a table.",
            "ringhaul load orders.csv -t shop.orders",
        ),
        "unload": Entry(
            "producer.commands.unload:unload_command",
            "Write a table's rows to files: CSV, JSON Lines or Parquet.",
            "ringhaul unload -t shop.orders -o orders/ --format parquet",
        ),
        "verify": Entry(
            "producer.commands.verify:verify_command",
            "Compare files with a table, record by record; change nothing.",
            "ringhaul verify orders.csv -t shop.orders",
        ),
    },
    "Ask": {
        "count": Entry(
            "producer.commands.query:count_command",
            "Count rows: all, by token range, by host, or in the largest partitions.",
            "ringhaul count -t shop.orders --where \"status = 'open'\"",
        ),
        "query": Entry(
            "producer.commands.query:query_command",
            "Aggregate a table with a SELECT, or show a few of its rows.",
            'ringhaul query "SELECT status, count(*) FROM shop.orders GROUP BY status"',
        ),
        "peek": Entry(
            "producer.commands.peek:peek_command",
            "Show a few rows of a table, now.",
            "ringhaul peek shop.orders -n 5 --where \"status = 'open'\"",
        ),
        "lookup": Entry(
            "producer.commands.statements:lookup_command",
            "Read the rows of a list of keys.",
            "ringhaul lookup -t shop.orders --keys keys.csv -o found/",
        ),
        "exec": Entry(
            "producer.commands.statements:exec_command",
            "Run a CQL statement once for each row of values.",
            'ringhaul exec "DELETE FROM shop.orders WHERE id = ?" --params ids.csv',
        ),
    },
    "Watch and steer jobs": {
        "status": Entry(
            "producer.commands.status:status_command",
            "List the jobs of this broker, or show a single job.",
            "ringhaul status -f ld-7f3a9c",
        ),
        "report": Entry(
            "producer.commands.report:report_command",
            "Write a job's report as one HTML file.",
            "ringhaul report ld-7f3a9c -o report.html",
        ),
        "errors": Entry(
            "producer.commands.errors:errors_command",
            "List or export rejected records: file, line, column and reason.",
            "ringhaul errors ld-7f3a9c --export rejected.csv",
        ),
        "top": Entry(
            "producer.commands.top:top_command",
            "Watch jobs, hosts and the slowest units, every second.",
            "ringhaul top",
        ),
        "pause": Entry(
            "producer.commands.control:pause_command",
            "Hold a running job.",
            "ringhaul pause ld-7f3a9c",
        ),
        "resume": Entry(
            "producer.commands.control:resume_command",
            "Continue a paused job, or run the missing units of a job that ended early.",
            "ringhaul resume ld-7f3a9c",
        ),
        "throttle": Entry(
            "producer.commands.control:throttle_command",
            "Limit a running job, or show its limits.",
            "ringhaul throttle ld-7f3a9c --rows-per-second 20000 --between 08:00-18:00",
        ),
        "cancel": Entry(
            "producer.commands.control:cancel_command",
            "End a running job.",
            "ringhaul cancel ld-7f3a9c",
        ),
    },
    "Run the fleet": {
        "worker": Entry(
            "producer.commands.worker:worker_command",
            "Work on units of all jobs, until stopped.",
            "ringhaul worker -c 8",
        ),
        "schedule": Entry(
            "producer.schedule.commands:schedule",
            "Show, run, pause and resume scheduled jobs.",
            "ringhaul schedule history nightly",
        ),
        "beat": Entry(
            "producer.schedule.commands:beat_command",
            "Start scheduled jobs when they are due.",
            "ringhaul beat",
        ),
        "flower": Entry(
            "producer.web.commands:flower_command",
            "Serve the monitoring page.",
            "ringhaul flower --port=5555",
        ),
        "metrics": Entry(
            "producer.metrics.command:metrics_command",
            "Serve metrics for Prometheus at /metrics, without Flower.",
            "ringhaul metrics --port 5556",
        ),
    },
    "Set up": {
        "translate": Entry(
            "producer.migrate.command:translate_command",
            "Translate a command of cqlsh COPY or Bulk Loader.",
            "ringhaul translate dsbulk load -k shop -t orders -url orders.csv",
        ),
        "demo": Entry(
            "producer.commands.demo:demo_command",
            "Load a generated sample into a throw-away Cassandra and verify every row of it.",
            "ringhaul demo",
        ),
        "local": Entry(
            "producer.commands.local:local",
            "Run a real Cassandra and Valkey on this machine, without Docker.",
            "ringhaul local up",
        ),
        "tune": Entry(
            "producer.commands.tune:tune_command",
            "Find the fastest settings for a load, and what limits it.",
            "ringhaul tune orders.csv -t shop.orders",
        ),
        "config": Entry(
            "producer.commands.config:config_command",
            "Show the settings, and where each comes from.",
            "ringhaul config show --origin",
        ),
        "doctor": Entry(
            "producer.commands.doctor:doctor_command",
            "Check broker, cluster, workers and this host, and say what to do.",
            "ringhaul doctor",
        ),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def find_command(name: str) -> click.Command | None:
    """Return the click command of this name; None if it does not exist."""
    entry = COMMANDS.get(name)
    if entry is None:
        return None
    module, _, attribute = entry.place.partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    command.epilog = f"Example: {entry.example}"
    return command

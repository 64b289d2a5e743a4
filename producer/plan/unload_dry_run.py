"""`unload --dry-run`: what the planned job would do, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from producer.text import count_text
from ringhaul.plain_text import lines_of
from ringhaul.scan.job import ReadJob


def unload_json(job: ReadJob, units: int, slots: int) -> dict[str, Any]:
    """Return what the unload would do, for programs. Fields are only ever added."""
    from ringhaul.scan.statement import scan_statement  # parses SQL: only dry runs do

    assert job.output is not None
    return {
        "message_type": "plan",
        "kind": job.kind,
        "table": job.table.name,
        "output": None if job.streams else job.output.place,
        "transforms": list(job.transforms),
        "consistency": job.consistency,
        "columns": [{"column": name, "type": kind} for name, kind in job.columns],
        "statement": scan_statement(job.select),
        "units": units,
        "worker_processes": slots,
    }


def unload_text(plan: Mapping[str, Any], headline: str) -> str:
    """Return what the unload would do, for people."""
    processes = count_text(plan["worker_processes"], "worker process", "worker processes")
    lines = [f"would {headline} for {processes}", f" statement  {plan['statement']}"]
    if plan["transforms"]:
        columns = (f"{column['column']} {column['type']}" for column in plan["columns"])
        lines.append(f" through    {' and '.join(plan['transforms'])}")
        lines.append(f" columns    {', '.join(columns)}")
    return lines_of(lines)

"""docs/reference/json.md lists each field that `--json` prints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import pytest

from producer.figures.load_summary import summary_json
from producer.figures.scan_summary import report_closing
from producer.figures.snapshot import Snapshot
from producer.request.load import LoadDraft
from ringhaul.ledger.states import JobState
from ringhaul.sources.find import find_sources
from tests.heads import dry_run_json, plan_source
from tests.loads import load_job
from tests.unit.producer.figures.test_load_summary import TABLE, summary, verified
from tests.unit.producer.figures.test_scan_summary import REPORT, job
from tests.unit.producer.statuses import status

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "json.md").read_text()


def plan_fields(folder: Path) -> Iterable[str]:
    (folder / "in.csv").write_text("id\nno\n")
    request = LoadDraft(keyspace="shop", table="orders")
    source = plan_source(request, find_sources([str(folder)])[0], TABLE)
    plan = dry_run_json(load_job(TABLE, source), 1)
    (shown,) = plan["samples"]
    return {*plan, *plan["mapping"][0], *shown, *shown["problems"][0]}


@pytest.mark.parametrize("message", ["status", "load", "verify", "unload", "plan"])
def test_each_field_is_documented(message: str, tmp_path: Path) -> None:
    found, title = {
        "status": lambda: ([field.name for field in fields(Snapshot)], "Progress of a job"),
        "load": lambda: (summary_json(summary(JobState.COMPLETE)), "Summary of a load"),
        "verify": lambda: (summary_json(verified(JobState.PARTIAL)), "Summary of a load"),
        "unload": lambda: (
            report_closing(status(), job(), REPORT, 0).data,
            "Summary of an unload",
        ),
        "plan": lambda: (plan_fields(tmp_path), "Plan of a load"),
    }[message]()
    section = PAGE.split(f"\n## {title}")[1].split("\n## ")[0]
    assert {*found} - {"message_type"} <= {*re.findall(r"`(\w+)`", section)}

"""Findings on a terminal of 80 columns, on a pipe, and as JSON."""

from __future__ import annotations

import json

import pytest

from producer.doctor.finding import BROKER, CLUSTER, MACHINE, WORKERS, Finding, exit_code
from producer.doctor.render import json_document, pipe_lines, terminal_lines

OK = MACHINE.ok("descriptors", "20,000 open files for a process")
WARNING = BROKER.warning("eviction", "maxmemory-policy allkeys-lru", "set noeviction " * 12)
FAULT = CLUSTER.fault("address", "no node answers\n\x1b[31mat 10.0.0.1:9042 " + "word " * 40)
UNCHECKED = WORKERS.unchecked("up", "not known without the broker")
ALL = [OK, WARNING, FAULT, UNCHECKED]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = terminal_lines(ALL, 1.0, width)
    assert max(map(len, lines)) <= min(width, 100)


def test_a_terminal_has_headings_marks_and_totals() -> None:
    text = "\n".join(terminal_lines(ALL, 3.04, 80))
    assert text.startswith("machine\n  ok    descriptors    20,000 open files for a process\n")
    assert "\nbroker\n  warn  eviction       maxmemory-policy allkeys-lru\n" in text
    assert "\n                       -> set noeviction" in text
    assert "  FAIL  address" in text and "  ?     up" in text
    assert text.endswith("1 ok, 1 warning, 1 fault, 1 not checked (?); 3.0 s")
    assert "\x1b" not in text


def test_a_pipe_gets_one_line_for_each_finding() -> None:
    lines = pipe_lines(ALL)
    assert len(lines) == 4 and not any("\n" in line or "\x1b" in line for line in lines)
    assert lines[0] == " ok    machine  descriptors    20,000 open files for a process"
    assert "allkeys-lru: set noeviction" in lines[1]


def test_json_has_every_finding() -> None:
    document = json.loads(json.dumps(json_document(ALL, 1.234)))
    assert document["exit_code"] == 4 and document["seconds"] == 1.23
    assert document["checks"][0] == {
        "about": "machine",
        "check": "descriptors",
        "level": "ok",
        "text": "20,000 open files for a process",
        "advice": "",
    }
    assert [check["level"] for check in document["checks"]] == ["ok", "warn", "fail", "unchecked"]


@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ([], 0),
        ([OK, UNCHECKED], 0),
        ([OK, WARNING, UNCHECKED], 1),
        ([WARNING, FAULT, OK], 4),
    ],
)
def test_the_worst_finding_decides_the_exit_code(findings: list[Finding], code: int) -> None:
    assert exit_code(findings) == code

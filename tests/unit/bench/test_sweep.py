"""The table of a sweep."""

from __future__ import annotations

from bench.harness import DRIVER, OURS, Run, System, medians
from bench.sweep import _rows, name_of


def test_a_row_for_each_bound_and_a_column_for_each_number_of_processes() -> None:
    names = [name_of("ringhaul", 1), name_of("ringhaul", 4)]
    names += [name_of("S3a", count, bound) for bound in (128, 8000) for count in (1, 2)]
    systems = [
        System(n, OURS if n.startswith("r") else DRIVER, lambda: None, lambda: _run(1))
        for n in names
    ]
    runs = {system.name: [_run(number)] for number, system in enumerate(systems, 1)}

    rows = list(_rows(medians(systems, runs), ["ringhaul", "S3a"]))

    assert rows == [
        ["ringhaul", "1 (100)", "", "2 (50)"],
        ["S3a, 128 in flight", "3 (33)", "4 (25)", ""],
        ["S3a, 8,000 in flight", "5 (20)", "6 (17)", ""],
    ]


def _run(rows: int) -> Run:
    return Run(rows=rows, bytes_count=0, work_s=1, whole_s=1, cpu_s=1e-4, rss_bytes_max=0)

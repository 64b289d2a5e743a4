"""The page of benchmarks holds what the saved results say, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from bench.__main__ import run_all
from bench.articles import ROWS, Row
from bench.full import FULL, SHORT, Bench, command_of
from bench.harness import DRIVER, OURS, Median, Run, System, medians, save, save_table
from bench.page import PAGES, PICTURES, ROOT, behind, lines_of, pictures, written
from bench.record import Line, Record, read_record
from tests.cases import each

SYSTEMS_OF_SEEDS = ("S0a", "S0b", "S0c", "S0d", "S0e", "S1a", "S1b", "S1c", "S2a", "S2b")
SYSTEMS_OF_SEEDS += ("S3a", "S3b", "S3c", "S3d", "S4a", "S4b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_what_the_saved_results_make_of_it(page: Path) -> None:
    text = page.read_text()
    assert "<!-- bench:" in text
    assert text == written(text), "run `python -m bench.page`"


def test_the_pictures_are_drawn_from_the_saved_results() -> None:
    drawn = pictures()
    assert drawn
    for path, svg in drawn.items():
        assert path.read_text() == svg, "run `python -m bench.page`"
        ElementTree.fromstring(svg)
    assert {path for path in PICTURES.glob("bench-*.svg")} <= set(drawn)


def test_every_system_of_the_articles_has_a_row() -> None:
    assert tuple(dict.fromkeys(sorted(row.row for row in ROWS))) == SYSTEMS_OF_SEEDS


@each("row", [row for row in ROWS if row.result], ids=lambda row: row.what)
def test_each_row_has_a_command_that_runs_it(row: Row) -> None:
    assert command_of(row.result).startswith("python -m bench.")


def test_where_ours_is_not_ahead_the_page_says_why() -> None:
    silent = [row for row in ROWS if behind(row, read_record) and not row.why]
    assert not silent


@each("bench", [*FULL, *SHORT], ids=lambda bench: bench.command)
def test_each_bench_of_the_line_up_is_there_and_saves_what_the_page_reads(bench: Bench) -> None:
    source = (ROOT / "bench" / f"{bench.command.split()[0]}.py").read_text()
    for name in bench.results:
        assert f'"{name.removesuffix("_runs")}"' in source


def test_a_bench_that_fails_does_not_end_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    broken, without = Bench("no_such_bench", ()), Bench("full", (), ("no-such-program",))
    works = Bench("full", ())  # the list of benches itself: running it does nothing
    assert run_all([broken, without, works]) == [
        "python -m bench.no_such_bench",
        "python -m bench.full",
    ]
    out = capfd.readouterr().out
    assert "python -m bench.full needs no-such-program, which is not on PATH" in out
    assert "[3/3] python -m bench.full" in out


def line(name: str, family: str, rows_s: float, whole: float, cpu_us: float) -> Line:
    return Line(
        name=name,
        family=family,
        rows=100,
        rounds=3,
        rows_s=rows_s,
        rows_s_whole=whole,
        cpu_us_per_row=cpu_us,
    )


def record_of(*lines: Line) -> Record:
    return Record(
        name="exec_seeds", title="t", machine="m", date="2026-01-02", command="c", lines=lines
    )


ROW = next(row for row in ROWS if row.row == "S0a")
OF_DRIVER = line("S0a one", DRIVER, 100.0, 10.0, 50.0)


def overview(record: Record | None) -> str:
    page = "<!-- bench:rows -->\nold\n<!-- /bench -->\n"
    text = written(page, lambda name: record if name == "exec_seeds" else None)
    return next(x for x in text.splitlines() if x.startswith("| S0a"))


def test_a_row_that_has_not_run_says_so_with_its_command() -> None:
    assert overview(None).endswith("| not run: `python -m bench.exec_seeds` | | | | |")


def test_a_row_compares_the_work_of_a_way_of_the_driver() -> None:
    others = [line(name, DRIVER, 1.0, 1.0, 1.0) for name in ("S0b", "S0c")]
    record = record_of(OF_DRIVER, *others, line("ringhaul exec", OURS, 400.0, 40.0, 5.0))

    assert overview(record).endswith("| 100 | 400 | 4.0x | 50.0 | 5.0 |")
    assert behind(ROW, lambda _: record) == []
    same = dataclasses.replace(OF_DRIVER, rows_s_whole=100.0)  # its start was not measured
    assert record.lines[-1].rate_beside(same) == 400.0
    # Its command's start is not counted either.
    mine = dataclasses.replace(record.lines[-1], cpu_us_per_row=90.0, worker_cpu_us_per_row=2.0)
    record = dataclasses.replace(record, lines=(*record.lines[:-1], mine))
    assert overview(record).endswith("| 4.0x | 50.0 | 2.0 |")
    assert behind(ROW, lambda _: record) == []


def test_a_row_compares_a_tool_from_start_to_exit() -> None:
    tool = dataclasses.replace(OF_DRIVER, family="COPY")
    record = record_of(tool, line("ringhaul exec", OURS, 400.0, 40.0, 5.0))

    pair = lines_of(ROW, lambda _: record)
    assert pair is not None
    assert (pair[0].rate, pair[1].rate_beside(pair[0])) == (10.0, 40.0)
    mine = dataclasses.replace(pair[1], worker_cpu_us_per_row=2.0)
    assert mine.cpu_beside(pair[0]) == 5.0


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (line("ringhaul exec", OURS, 90.0, 90.0, 5.0), ["rows/s"]),
        (line("ringhaul exec", OURS, 400.0, 40.0, 60.0), ["CPU per row"]),
        (line("ringhaul exec", OURS, 90.0, 90.0, 60.0), ["rows/s", "CPU per row"]),
    ],
)
def test_the_page_finds_where_ours_is_not_ahead(ours: Line, expected: list[str]) -> None:
    assert behind(ROW, lambda _: record_of(OF_DRIVER, ours)) == expected


def test_of_several_systems_the_fastest_counts() -> None:
    slow = dataclasses.replace(OF_DRIVER, name="S0a slow", rows_s=1.0)
    assert record_of(slow, OF_DRIVER).named("S0a") == OF_DRIVER
    with pytest.raises(KeyError, match="exec_seeds has no system that begins with 'S9'"):
        record_of(slow).named("S9")


def test_a_saved_result_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.harness.RESULTS", tmp_path)
    systems = [System("ringhaul exec", OURS, lambda: None, lambda: pytest.fail("is not run"))]
    run = Run(rows=10, bytes_count=1, work_s=2.0, whole_s=5.0, cpu_s=0.1, rss_bytes_max=1)
    lines: list[Median] = medians(systems, {"ringhaul exec": [run]})

    save("exec_seeds", "a title", lines, {"ringhaul exec": [run]})
    save_table("pools", "pools", ["pool", "rows/s"], [["solo", 1000]])

    found = read_record("exec_seeds", tmp_path)
    assert found is not None
    assert found.named("ringhaul").rows_s == 5.0
    assert found.named("ringhaul").rate == 2.0
    assert found.command == "python -m bench.exec_seeds"
    assert found.load_before is not None
    kept = json.loads((tmp_path / "exec_seeds.json").read_text())
    assert kept["runs"]["ringhaul exec"][0]["rows"] == 10
    pools = read_record("pools", tmp_path)
    assert pools is not None and pools.rows == (("solo", 1000),)
    page = "<!-- bench:table pools -->\n<!-- /bench -->"
    assert "| solo | 1,000 |" in written(page, lambda _: pools)
    assert read_record("never", tmp_path) is None


def test_a_block_has_the_figures_of_the_result_it_names() -> None:
    ours, other = line("ringhaul load", OURS, 400.0, 200.0, 5.0), line("way", "COPY", 9, 10.0, 50.0)
    of_limit = line("limit", "limit", 800.0, 800.0, 1.0)
    record = dataclasses.replace(
        record_of(ours, other, of_limit), load_before=1.0, load_after=2.0, note="a note"
    )

    def block(words: str) -> str:
        text = f"before\n<!-- bench:{words} -->\n<!-- /bench -->\nafter"
        assert written(written(text, lambda _: record), lambda _: record).startswith("before\n")
        return written(text, lambda _: record)

    systems = block("systems load_kb1")
    assert "| ringhaul load | 400 | 200 | 5.0 | | |" in systems
    assert "| way | 9 | 10 | 50.0 | | 20x |" in systems
    assert "| limit | 800 | 800 | 1.0 | | |" in systems  # nothing is faster than the limit
    assert "| way | 9 (50.0) | 9 (50.0) | 9 (50.0) |" in block("census")
    runs = block("runs")
    assert "Machine: m." in runs and "a note" in runs
    assert "| `load_kb1` | 2026-01-02 | 3 | 100 | 1.0 and 2.0 | `c` |" in runs


def test_results_are_saved_beside_the_benches() -> None:
    assert (ROOT / "bench" / "results" / "load_small.json").exists()

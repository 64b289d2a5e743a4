"""Results of the benches: medians, ratios, the table and the chart."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench.harness import (
    COPY,
    DRIVER,
    LIMIT,
    OURS,
    Run,
    System,
    claim,
    interleave,
    medians,
    of_limit,
    report,
    times_best,
)
from bench.picture import Bar, Panel, picture


def run_of(*, rows: int = 1000, work_s: float, whole_s: float, worker_cpu_s: float | None) -> Run:
    return Run(
        rows=rows,
        bytes_count=70 * rows,
        work_s=work_s,
        whole_s=whole_s,
        cpu_s=0.01,
        worker_cpu_s=worker_cpu_s,
        rss_bytes_max=10**8,
    )


def system(name: str, family: str) -> System:
    return System(name, family, lambda: None, lambda: pytest.fail("is not run"))


SYSTEMS = [
    system("limit", LIMIT),
    system("mine", OURS),
    system("copy 1", COPY),
    system("copy 2", COPY),
    system("pattern", DRIVER),
]
RUNS = {
    "limit": [run_of(work_s=1.0, whole_s=1.0, worker_cpu_s=None)],
    # Rates of 500, 800 and 1000 rows/s: the median is neither the first, the last nor the mean.
    "mine": [
        run_of(work_s=2.0, whole_s=4.0, worker_cpu_s=0.001),
        run_of(work_s=1.25, whole_s=2.5, worker_cpu_s=0.003),
        run_of(work_s=1.0, whole_s=2.0, worker_cpu_s=0.002),
    ],
    "copy 1": [run_of(work_s=4.0, whole_s=8.0, worker_cpu_s=None)],
    "copy 2": [run_of(work_s=5.0, whole_s=5.0, worker_cpu_s=None)],
    "pattern": [run_of(rows=100, work_s=1.0, whole_s=3.0, worker_cpu_s=None)],
}


def test_medians_are_over_the_rounds_of_one_system() -> None:
    lines = medians(SYSTEMS, RUNS)

    mine = lines[1]
    assert (mine.name, mine.family, mine.rounds) == ("mine", OURS, 3)
    assert mine.rows_s == 800
    assert mine.rows_s_spread == pytest.approx((1000 - 500) / 800)
    assert mine.rows_s_whole == 400
    assert mine.path_us_per_row == pytest.approx(2.0)


def test_only_ringhaul_reports_the_cpu_of_the_worker_path() -> None:
    copy = medians(SYSTEMS, RUNS)[2]

    with pytest.raises(ValueError, match="copy 1 does not report"):
        _ = copy.path_us_per_row


def test_ratios_are_to_the_limit_and_to_the_best_of_a_family() -> None:
    lines = medians(SYSTEMS, RUNS)
    mine = lines[1]

    assert of_limit(lines, mine) == pytest.approx(0.8)
    # Whole commands: 400 against the 200 of `copy 2`, although `copy 1` had more rows/s.
    assert times_best(lines, mine, COPY) == pytest.approx(2.0)
    # Patterns that load a part of the file are compared without their start.
    assert times_best(lines, mine, DRIVER) == pytest.approx(8.0)


def test_the_better_of_two_limits_counts() -> None:
    lines = medians(SYSTEMS, RUNS)
    slower = replace(lines[0], name="slower limit", rows_s=lines[0].rows_s / 2)

    assert of_limit([slower, *lines], lines[1]) == of_limit(lines, lines[1])


def test_the_table_has_a_column_for_each_family_that_took_part() -> None:
    lines = medians(SYSTEMS, RUNS)

    text = report("a load", lines).splitlines()
    head = next(line for line in text if line.startswith("system"))
    mine = next(line for line in text if line.startswith("mine"))

    assert head.split()[-6:] == ["of", "limit", "x", "COPY", "x", "driver"]
    assert mine.split()[-3:] == ["0.80", "2.00", "8.00"]
    assert len(head) == len(mine)
    assert "COPY" not in report("ours alone", lines[:2])


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ({"at_most": 2.5}, "kept"),
        ({"at_most": 2.4}, "MISSED"),
        ({"at_least": 2.5}, "kept"),
        ({"at_least": 2.6}, "MISSED"),
    ],
)
def test_a_claim_says_whether_it_was_kept(bounds: dict[str, float], word: str) -> None:
    line = claim("us a row", 2.5, **bounds)

    assert line.split()[0] == word
    assert "us a row: 2.50" in line


def test_the_picture_has_bars_in_proportion() -> None:
    bars = [Bar("limit <90k>", 90_000, "#999999"), Bar("mine", 45_000, "#1b6ca8")]

    root = ElementTree.fromstring(picture("a & b", "machine", [Panel("rows/s", bars)]))

    space = "{http://www.w3.org/2000/svg}"
    first, second = root.findall(f"{space}rect")[1:]
    assert float(second.attrib["width"]) == pytest.approx(float(first.attrib["width"]) / 2)
    words = [element.text for element in root.findall(f"{space}text")]
    assert {"a & b", "limit <90k>", "mine", "90,000", "45,000"} <= set(words)


def test_a_run_that_fails_is_left_out_and_a_system_that_never_succeeds_is_an_error() -> None:
    outcomes: Iterator[Run | Exception] = iter(
        [run_of(work_s=1.0, whole_s=1.0, worker_cpu_s=None), RuntimeError("timed out")]
    )

    def sometimes() -> Run:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def never() -> Run:
        raise RuntimeError("timed out")

    runs = interleave([System("sometimes", DRIVER, lambda: None, sometimes)], 2)
    assert len(runs["sometimes"]) == 1
    outcomes = iter([RuntimeError("timed out"), run_of(work_s=1, whole_s=1, worker_cpu_s=None)])
    assert len(interleave([System("later", DRIVER, lambda: None, sometimes)], 1)["later"]) == 1
    with pytest.raises(RuntimeError, match="failed in every round: never"):
        interleave([System("never", DRIVER, lambda: None, never)], 2)

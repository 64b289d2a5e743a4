"""The report is the sum of committed results, whatever their order."""

import random

from ringhaul.dataplane.latency import bucket
from ringhaul.load.report import SourceLine, build_report
from ringhaul.records.unit import UnitResult

PATHS = ("/data/a.csv", "/data/b.csv", "/data/none.csv")


def result(source: int, written: int, rejected: int, **others: int | str) -> UnitResult:
    facts = {
        "input_bytes": 100 * (written + rejected),
        "retries": 0,
        "elapsed_ms": 1000,
        "cpu_ms": 3,
        "attempt": 1,
        "rss_bytes_max": 50 << 20,
        "window_min": 0,
        "window_max": 0,
        "window_shrunk": 0,
        "sstables": 0,
        "missed": 0,
        "worker": "h:1",
    }
    return UnitResult(
        source=source,
        records=written + rejected,
        dropped=0,
        filtered=0,
        written=written,
        rejected=rejected,
        **(facts | others),
    )


RESULTS = [
    result(0, 10, 0, worker="h:1"),
    result(0, 5, 2, retries=3, attempt=2, worker="h:2"),
    result(1, 0, 7, rss_bytes_max=90 << 20, cpu_ms=4, worker="h:1"),
    result(1, 100, 0, retries=1, attempt=3, worker="g:9"),
]


def test_windows_are_reported_over_all_units_that_had_one() -> None:
    with_windows = [
        result(0, 1, 0, window_min=320, window_max=1024, window_shrunk=2),
        result(0, 1, 0, window_min=64, window_max=512, window_shrunk=1),
        result(1, 1, 0),
    ]
    report = build_report(PATHS, with_windows, {})
    assert (report.window_min, report.window_max, report.window_shrunk) == (64, 1024, 3)
    none = build_report(PATHS, [result(0, 1, 0)], {})
    assert (none.window_min, none.window_max, none.window_shrunk) == (0, 0, 0)


def test_sums_by_source_and_in_total() -> None:
    report = build_report(PATHS, RESULTS, {bucket(1000): 99, bucket(50_000): 1})
    assert report.sources == [
        SourceLine("/data/a.csv", units=2, records=17, written=15, rejected=2, input_bytes=1700),
        SourceLine("/data/b.csv", units=2, records=107, written=100, rejected=7, input_bytes=10700),
        SourceLine("/data/none.csv"),
    ]
    assert (report.units, report.records, report.written, report.rejected) == (4, 124, 115, 9)
    assert (report.input_bytes, report.retries, report.repeated_units) == (12_400, 4, 2)
    assert (report.cpu_ms, report.rss_bytes_max) == (13, 90 << 20)
    assert report.workers == {"h:1": 2, "h:2": 1, "g:9": 1}
    assert (report.p50_ms, report.p99_ms) == (1.023, 1.023)
    assert report.cpu_us_per_row == 13_000 / 124


def test_the_order_of_commits_does_not_matter() -> None:
    shuffled = random.Random(5).sample(RESULTS, len(RESULTS))
    assert shuffled != RESULTS
    assert build_report(PATHS, shuffled, {}) == build_report(PATHS, RESULTS, {})


def test_a_report_without_results_divides_by_nothing() -> None:
    report = build_report(PATHS, [], {})
    assert report.records == 0
    assert (report.cpu_us_per_row, report.p50_ms, report.p99_ms) == (None, None, None)
    assert [line.path for line in report.sources] == list(PATHS)

"""Results of read units and the report over them."""

from __future__ import annotations

from ringhaul.dataplane.latency import bucket
from ringhaul.output.unloadable_rows import Unloadable
from ringhaul.scan.result import ReadResult, build_read_report


def result(number: int) -> ReadResult:
    return ReadResult(
        rows=10 * number,
        rows_given=20 * number,
        dropped=number,
        rejected=2 * number,
        rows_read=100 * number,
        bytes_read=1000 * number,
        parts=2,
        bytes_written=500,
        pages=3,
        retries=number,
        splits=1,
        elapsed_ms=50,
        cpu_ms=20,
        attempt=1 + (number == 2),
        rss_bytes_max=number << 20,
        worker=f"host:{number % 2}",
    )


def test_a_result_is_packed_compactly_and_unpacked() -> None:
    packed = result(3).pack()
    assert len(packed) < 100
    assert ReadResult.unpack(packed) == result(3)
    # A worker's name may contain a comma: it comes last.
    assert ReadResult.unpack(result(3)._replace(worker="a,b:1").pack()).worker == "a,b:1"


def test_rows_that_no_load_can_restore_are_summed_by_column_and_reason() -> None:
    found = (Unloadable("a", "why", 2, "id = 1"), Unloadable("", "why", 1, "id = 2"))
    one = result(1)._replace(unloadable=found)
    assert ReadResult.unpack(one.pack()) == one
    report = build_read_report([one, result(2), one], {})
    assert report.unloadable == [found[0]._replace(rows=4), found[1]._replace(rows=2)]


def test_the_report_is_the_sum_of_the_results() -> None:
    report = build_read_report([result(1), result(2), result(3)], {bucket(2000): 10})
    assert (report.units, report.rows, report.rows_read) == (3, 60, 600)
    assert (report.rows_given, report.dropped, report.rejected) == (120, 6, 12)
    assert (report.bytes_read, report.parts, report.bytes_written) == (6000, 6, 1500)
    assert (report.pages, report.retries, report.splits) == (9, 6, 3)
    assert (report.repeated_units, report.rss_bytes_max) == (1, 3 << 20)
    assert report.workers == {"host:1": 2, "host:0": 1}
    assert report.cpu_us_per_row == 100.0
    assert report.p50_ms is not None and 1.8 < report.p50_ms < 2.3
    assert build_read_report([], {}).cpu_us_per_row is None

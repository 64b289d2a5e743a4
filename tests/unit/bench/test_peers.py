"""The benches understand what the peers print at their ends."""

from bench.peers import BULK_LOADED, COPIED


def test_copy_tells_rows_and_time() -> None:
    said = (
        "Processed: 1000000 rows; Rate:   19093 rows/s; Avg. rate:   36271 rows/s\n"
        "1000000 rows imported from 1 files in 0 day, 0 hour, 1 minute, and 27.583 seconds "
        "(0 skipped).\n"
    )

    told = COPIED.search(said)

    assert told is not None
    assert told.groups() == ("1000000", "1", "27.583")


def test_bulk_loader_tells_its_totals_last() -> None:
    head = " total | failed | rows/s | p50ms |  p99ms | p999ms | batches"
    said = "\n".join(
        [
            "Operation directory: logs/LOAD_20261120-113248-037101",
            head.strip(),
            "3,339 |      0 |    576 | 27.38 | 228.59 | 562.04 |    1.00",
            head,
            "1,020,000 |      7 | 36,404 | 13.52 | 152.04 | 331.35 |    1.00",
            "Operation LOAD_20261120-113248-037101 completed with 7 errors in 13 seconds.",
        ]
    )

    assert BULK_LOADED.findall(said)[-1] == ("1,020,000", "7", "36,404")

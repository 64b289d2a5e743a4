"""The benches parse the summaries that the peers print."""

import pytest

from bench.tools import BULK_LOADED, COPIED, counted, summary_of


def test_rows_and_time_are_read_from_copy() -> None:
    said = (
        "Processed: 1000000 rows; Rate:   19093 rows/s; Avg. rate:   36271 rows/s\n"
        "1000000 rows imported from 1 files in 0 day, 0 hour, 1 minute, and 27.583 seconds "
        "(0 skipped).\n"
    )

    match = COPIED.search(said)

    assert match is not None
    assert match.groups() == ("1000000", "1", "27.583")


def test_rows_and_time_are_read_from_copy_to_below_a_second() -> None:
    whole = COPIED.search(
        "5000000 rows exported to 1 files in 0 day, 0 hour, 1 minute, and 2.001 seconds."
    )
    short = COPIED.search("20000 rows exported to 1 files in 0.470 seconds.")

    assert whole is not None and whole.groups() == ("5000000", "1", "2.001")
    assert short is not None and short.groups() == ("20000", None, "0.470")


@pytest.mark.parametrize(
    "said",
    [
        " count\n---------\n 1000000\n\n(1 rows)\n\nWarnings :\nAggregation query\n",
        'count\n1000000\n{"message_type": "summary", "rows": 12}\n',
    ],
    ids=["cqlsh", "ringhaul"],
)
def test_counts_are_read_from_each_tools_output(said: str) -> None:
    assert counted(said) == 1_000_000


def test_the_summary_is_found_between_other_output() -> None:
    said = (
        'count\n5\n{"message_type": "status", "rows": 1}\n{"message_type": "summary", "rows": 5}\n'
    )

    assert summary_of(said) == {"message_type": "summary", "rows": 5}


def test_totals_are_read_from_the_bulk_loaders_last_lines() -> None:
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

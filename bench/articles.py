"""The articles' systems, and which saved result shows each of them beside ours.

Every row of the page is here, also one that no bench has run yet: then the page says so.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A system of an article beside ours, both from one saved result."""

    row: str
    what: str
    article: str  #: its figures, as published
    result: str
    theirs: str  #: how the system's name in the result begins; of several, the fastest counts
    ours: str
    shown: str = ""  #: of a row without a comparison: what ringhaul has instead, as Markdown
    why: str = ""  #: why ours is not ahead, where it is not


_EXEC, _PIPELINE, _LOAD = "ringhaul exec", "ringhaul pipeline", "ringhaul load"
_S2 = (
    ("S2a", "inserts one by one", "S2a one by one", "1.9 s, 6.5 s, 11.9 s, 104 s for 1,000 rows"),
    ("S2a", "the same in 100 threads", "S2a 100 threads", ""),
    (
        "S2a",
        "a gevent pool of 100",
        "S2a gevent, pool of 100",
        "0.68 s, 0.63 s, 0.63 s, 1.27 s for 1,000 rows",
    ),
    ("S2a", "a task a row, `celery -P gevent -c 100`", "S2a celery -P gevent -c 100", ""),
    ("S2b", "`cqlengine` models one by one", "S2b models one by one", ""),
    ("S2b", "`cqlengine` models in a gevent pool of 100", "S2b models spawned", ""),
)
#: Milliseconds each way in the overview. The page has a table of all.
S2_SHOWN_MS = 10
LOCALITIES = (0, 20, 40, 60, 80)
_S3 = {
    "S3a": "asynchronous single statements, 8,000 in flight",
    "S3b": "batches that mix partitions",
    "S3c": "batches grouped by replica set",
}

ROWS = (
    Row(
        "S0a",
        "one process, `execute_concurrent_with_args`",
        "2,310 queries/s",
        "exec_seeds",
        "S0a",
        _EXEC,
    ),
    Row(
        "S0b",
        "a process pool, a query a task",
        "3,121 to 5,059 queries/s",
        "exec_seeds",
        "S0b",
        _EXEC,
    ),
    Row(
        "S0c",
        "a process pool, units of 100 queries",
        "6,409 queries/s",
        "exec_seeds",
        "S0c",
        _EXEC,
    ),
    Row(
        "S0d",
        "a process pool, a file name a task",
        "",
        "work_units",
        "S0d pool, a file",
        "ringhaul load",
    ),
    Row(
        "S0d",
        "a process pool, a bucket a task",
        "",
        "work_units",
        "S0d pool, a bucket",
        "ringhaul exec",
    ),
    Row(
        "S0e",
        "a session a process, opened after the fork, in turn, closed at exit",
        "",
        "sessions",
        "",
        "",
        shown="see [sessions](#sessions)",
    ),
    Row(
        "S1a",
        "`cqlsh COPY FROM`, small rows",
        "35,000 to 117,000 rows/s on 8 cores, 8 nodes",
        "load_small",
        "cqlsh COPY",
        _PIPELINE,
    ),
    Row(
        "S1b",
        "`cqlsh COPY FROM`, rows of 1 kB",
        "the same",
        "load_kb1",
        "cqlsh COPY",
        _PIPELINE,
    ),
    Row(
        "S1c",
        "profiles of a load",
        "",
        "",
        "",
        "",
        shown="py-spy, see [where the time goes](../how-to/profile.md)",
    ),
    *(
        Row(
            row,
            f"{what}, {S2_SHOWN_MS} ms each way",
            article,
            "latency_seeds",
            f"{label}, {S2_SHOWN_MS} ms",
            f"{_LOAD}, {S2_SHOWN_MS} ms",
        )
        for row, what, label, article in _S2
    ),
    Row("S3a", _S3["S3a"], "fastest in general", "load_seeds", "S3a", _PIPELINE),
    Row("S3b", _S3["S3b"], "slowest", "load_seeds", "S3b", _PIPELINE),
    Row("S3c", _S3["S3c"], "between the two", "load_seeds", "S3c", _PIPELINE),
    *(
        Row(
            "S3d",
            f"the best of S3a to S3c, {percent} % of the rows beside their partition",
            "token-aware batches from 40 %",
            "load_locality",
            f"S3d {percent} %",
            f"pipeline, {percent} %",
        )
        for percent in LOCALITIES
    ),
    *(
        Row(
            row,
            f"{what}, three nodes, replication 3",
            "",
            "load_ring",
            row,
            _PIPELINE,
        )
        for row, what in _S3.items()
    ),
    Row(
        "S4a",
        "fixed-width records into a table with two indexes",
        "5,000 to 22,000 rows/s",
        "census_geo",
        "S4",
        "ringhaul",
    ),
    Row(
        "S4a",
        "wide records from zip files, 200 rows each",
        "5,000 to 22,000 rows/s",
        "census_wide",
        "S4",
        "ringhaul",
    ),
    Row(
        "S4b",
        "threads, the best of 15 to 350 workers",
        "first of three",
        "census_ways",
        "S4b threads",
        "ringhaul",
    ),
    Row("S4b", "the same with gevent", "second", "census_ways", "S4b gevent", "ringhaul"),
    Row("S4b", "the same with asyncio", "last", "census_ways", "S4b asyncio", "ringhaul"),
)

"""The end of a job: as text, as JSON, as an exit code."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from producer.figures.load_summary import SOURCES_SHOWN, Summary, summary_closing, summary_json
from producer.figures.outcome import EXIT_CODES
from ringhaul.dataplane.latency import bucket
from ringhaul.destination.delivered import Delivered, Imports, Streaming
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.states import JobState
from ringhaul.load.report import build_report
from ringhaul.records.unit import SENT_TO, UnitResult
from ringhaul.sstables.layout import Layout
from tests.loads import load_job, load_source, table_schema
from tests.unit.producer.statuses import STARTED_MS, status

TABLE = table_schema({"id": "int"}, ["id"])


def summary_text(ended: Summary) -> str:
    return summary_closing(ended).text


def summary(
    state: JobState, *, sources: int = 2, reasons: dict[str, int] | None = None, **facts: object
) -> Summary:
    """A job of 4 s over `sources` files, 100 rows and one reject in each."""
    paths = [f"/data/{number:02}.csv" for number in range(sources)]
    results = [
        UnitResult(
            source=number,
            records=101,
            dropped=0,
            filtered=0,
            written=100,
            rejected=1,
            input_bytes=2048,
            retries=1,
            elapsed_ms=900,
            cpu_ms=5,
            attempt=1 + (number == 0),
            rss_bytes_max=(80 + number) << 20,
            window_min=64,
            window_max=1024,
            window_shrunk=0,
            sstables=0,
            missed=0,
            worker=f"h:{number % 2}",
        )
        for number in range(sources)
    ]
    return Summary(
        status=status(
            100, state=state, finished_ms=STARTED_MS + 4000, **({"pending": 0, "done": 8} | facts)
        ),
        job=load_job(TABLE, *(load_source(["id"], path=path) for path in paths), base_us=123),
        report=build_report(paths, results, {bucket(2000): 9, bucket(40_000): 1}),
        reasons={} if reasons is None else reasons,
    )


def verified(state: JobState, *, reasons: dict[str, int] | None = None) -> Summary:
    """A summary of a verification."""
    found = summary(state, reasons=reasons)
    return replace(found, job=replace(found.job, kind="verify"))


@pytest.mark.parametrize(
    ("state", "code", "verdict"),
    [
        (JobState.COMPLETE, 0, [" complete: 200 records were written to shop.orders"]),
        (
            JobState.PARTIAL,
            1,
            [
                " complete with rejects: 200 records were written to shop.orders, 2 rejected",
                " next     ringhaul errors ld-7f3a9c --export rejects.csv",
            ],
        ),
        (
            JobState.STOPPED,
            3,
            [
                " stopped: more records were rejected than --max-errors allows; at least 200 "
                "records were written to shop.orders, 2 rejected, from 5 of 8 units",
                " next     ringhaul errors ld-7f3a9c --export rejects.csv",
                " next     ringhaul resume ld-7f3a9c --max-errors N",
            ],
        ),
        (
            JobState.QUARANTINED,
            4,
            [
                " complete with quarantine: 200 records were written to shop.orders; 1 unit "
                "kept killing their worker and were given up",
                " next     ringhaul resume ld-7f3a9c",
            ],
        ),
        (
            JobState.FAILED,
            4,
            [
                " failed: the disk is on fire",
                " so far at least 200 records were written to shop.orders",
                " next     ringhaul resume ld-7f3a9c",
            ],
        ),
        (
            JobState.CANCELLED,
            6,
            [
                " cancelled: at least 200 records were written to shop.orders",
                " next     ringhaul resume ld-7f3a9c",
            ],
        ),
        (
            JobState.RUNNING,
            7,
            [
                " still running: 62%, at least 200 records were written to shop.orders so far",
                " next     ringhaul status -f ld-7f3a9c",
            ],
        ),
    ],
)
def test_every_end_has_its_text_and_exit_code(
    state: JobState, code: int, verdict: list[str]
) -> None:
    unfinished = (JobState.STOPPED, JobState.FAILED, JobState.CANCELLED, JobState.RUNNING)
    facts = {"pending": 3, "done": 5} if state in unfinished else {}
    ended = summary(state, quarantined=1, last_error="the disk is on fire", **facts)
    assert ended.exit_code == code
    assert summary_text(ended).splitlines()[-len(verdict) :] == verdict
    # And only an unfinished job says how to resume it
    assert ("resume" in summary_text(ended)) == (
        state in (JobState.STOPPED, JobState.QUARANTINED, JobState.FAILED, JobState.CANCELLED)
    )


@pytest.mark.parametrize("cause", ["SourceChanged", "SourceCorrupt"])
def test_no_resume_is_advised_if_it_would_meet_the_same_files(cause: str) -> None:
    ended = summary(JobState.FAILED, pending=3, done=5, last_error="x.csv is another", cause=cause)
    assert "resume" not in summary_text(ended)


def test_a_stalled_job_shows_the_reason() -> None:
    error = {"last_error": "too few", "error_ms": STARTED_MS + 88_000, "error_done": 5}
    stuck = summary(JobState.RUNNING, pending=3, done=5, failing=3, fails=5, **error)
    retrying = "3 units, failed 5 times, last 0:12 ago: too few"
    assert f" retrying {retrying}" in summary_text(stuck).splitlines()
    assert summary_json(stuck)["retrying"] == retrying
    running = summary(JobState.RUNNING, pending=2, done=6, failing=2, fails=4, **error)
    assert "retrying" not in summary_text(running)
    assert (summary_json(running)["retrying"], summary_json(running)["last_error"]) == (
        None,
        "too few",
    )


def test_the_number_of_rows_is_uncertain_only_after_interrupted_units() -> None:
    # An interrupted unit has written rows that are in no result
    cut = summary_text(summary(JobState.CANCELLED, pending=1, done=7))
    assert " cancelled: at least 200 records were written to shop.orders" in cut.splitlines()
    more = summary_text(summary(JobState.CANCELLED, pending=1, done=7, live=Live(rows=112_612)))
    assert (
        " cancelled: at least 200 records were written to shop.orders, and units that will start "
        "over had written 112,612 rows more"
    ) in more.splitlines()
    running = summary_text(summary(JobState.RUNNING, pending=1, done=7, live=Live(rows=50)))
    assert ", and units in progress have written 50 rows more so far" in running
    whole = summary_text(summary(JobState.CANCELLED, pending=0, done=8))
    assert " cancelled: 200 records were written to shop.orders" in whole.splitlines()


def test_rejects_of_a_unit_that_stopped_the_job_are_shown_but_not_summed() -> None:
    # Given two rejects of committed units and 1,001 of one that is not done
    ended = summary(JobState.STOPPED, pending=3, done=5, reasons={"cast id": 1, "parse": 1002})
    assert "1,003 rejected, from 5 of 8 units" in summary_text(ended)
    fields = summary_json(ended)
    assert (fields["rejected"], fields["rejected_unfinished"]) == (2, 1001)
    # And without unfinished units there are no such rejects
    whole = summary(JobState.PARTIAL, reasons={"cast id": 2})
    assert summary_json(whole)["rejected_unfinished"] == 0


def test_a_stop_at_the_last_unit_leaves_nothing_to_resume() -> None:
    assert "resume" not in summary_text(summary(JobState.STOPPED, pending=0, done=8))
    assert "resume" in summary_text(summary(JobState.STOPPED, pending=0, done=8, sealed=False))


def test_the_suggested_export_does_not_overwrite_the_loaded_rejects() -> None:
    for names, export in (
        (["orders.csv"], "rejects.csv"),
        (["rejects.csv"], "rejects-2.csv"),
        (["old/rejects.csv", "s3://b/rejects-2.csv"], "rejects-3.csv"),
    ):
        ended = summary(JobState.PARTIAL)
        job = load_job(TABLE, *(load_source(["id"], path=f"/data/{name}") for name in names))
        following = summary_text(replace(ended, job=job)).splitlines()[-1]
        assert following == f" next     ringhaul errors ld-7f3a9c --export {export}"


def test_the_suggested_export_has_the_suffix_of_its_records() -> None:
    ended = summary(JobState.PARTIAL)
    for formats, export in (
        (["jsonl"], "rejects.jsonl"),
        (["parquet", "jsonl"], "rejects.jsonl"),
        (["csv", "jsonl"], "rejects.csv"),
        (["fixed"], "rejects.csv"),
    ):
        sources = [replace(load_source(["id"]), format=kind) for kind in formats]
        following = summary_text(replace(ended, job=load_job(TABLE, *sources))).splitlines()[-1]
        assert following == f" next     ringhaul errors ld-7f3a9c --export {export}"


def test_every_state_has_an_exit_code_and_only_one_is_success() -> None:
    assert set(EXIT_CODES) == set(JobState)
    assert [state for state, code in EXIT_CODES.items() if code == 0] == [JobState.COMPLETE]


def test_the_closing_table() -> None:
    ended = summary(JobState.PARTIAL, reasons={"key id": 1, "cast total": 1_000})
    assert summary_text(ended).splitlines()[:8] == [
        " source              units           rows   rejected        size",
        " ----------------  -------  -------------  ---------  ----------",
        " /data/00.csv            1            100          1     2.0 KiB",
        " /data/01.csv            1            100          1     2.0 KiB",
        " ----------------  -------  -------------  ---------  ----------",
        " total                   2            200          2     4.0 KiB   0:04   50 rows/s",
        " p50 2.0 ms  p99 41 ms   2 retries   2 worker processes   1 unit done again after a loss",
        " rejects  cast total 1,000 | key id 1",
    ]


def test_cpu_is_shown_only_for_loads_that_are_large_enough() -> None:
    assert "client CPU" not in summary_text(summary(JobState.COMPLETE, sources=99))
    assert "client CPU 49.5 us/row" in summary_text(summary(JobState.COMPLETE, sources=100))


def test_many_sources_are_summed_in_one_line() -> None:
    lines = summary_text(summary(JobState.COMPLETE, sources=25)).splitlines()
    shown = lines[2 : 2 + SOURCES_SHOWN]
    assert shown[0].split()[:2] == ["/data/00.csv", "1"]
    assert shown[-1].split() == ["...", "16", "more", "16", "1,600", "16", "32.0", "KiB"]
    assert lines[3 + SOURCES_SHOWN].split()[:4] == ["total", "25", "2,500", "25"]


def test_as_many_sources_as_fit_are_all_named() -> None:
    text = summary_text(summary(JobState.COMPLETE, sources=SOURCES_SHOWN))
    assert f"/data/{SOURCES_SHOWN - 1:02}.csv" in text
    assert "more" not in text


def test_the_summary_for_programs() -> None:
    ended = summary(JobState.PARTIAL, reasons={"cast id": 2})
    found = json.loads(json.dumps(summary_json(ended)))
    sources = found.pop("sources")
    assert found == {
        "message_type": "summary",
        "job": "ld-7f3a9c",
        "kind": "load",
        "table": "shop.orders",
        "state": "PARTIAL",
        "exit_code": 1,
        "units": 8,
        "units_done": 8,
        "units_quarantined": 0,
        "records": 202,
        "rows": 200,
        "rejected": 2,
        "bytes": 4096,
        "retries": 2,
        "repeated_units": 1,
        "elapsed_s": 4.0,
        "rows_per_s": 50.0,
        "cpu_us_per_row": 10_000 / 202,
        "worker_rss_bytes_max": 81 << 20,
        "p50_ms": 2.047,
        "p99_ms": 40.959,
        "workers": {"h:0": 1, "h:1": 1},
        "reject_reasons": {"cast id": 2},
        "first_timestamp_us": 123,
        "last_error": None,
    } | {key: found[key] for key in found if key not in EXPECTED_KEYS}
    assert sources[1] == {
        "path": "/data/01.csv",
        "units": 1,
        "records": 101,
        "dropped": 0,
        "filtered": 0,
        "written": 100,
        "rejected": 1,
        "input_bytes": 2048,
    }


#: Fields are only ever added: a new one here breaks no program.
EXPECTED_KEYS = set(
    """
    message_type job kind table state exit_code units units_done units_quarantined records rows
    rejected bytes retries repeated_units elapsed_s rows_per_s cpu_us_per_row worker_rss_bytes_max
    p50_ms p99_ms workers reject_reasons first_timestamp_us last_error
    """.split()  # noqa: SIM905
)


def test_a_job_that_was_not_started_has_no_rate() -> None:
    ended = summary(JobState.CANCELLED, started_ms=None)
    assert summary_json(ended)["elapsed_s"] == 0
    assert summary_json(ended)["rows_per_s"] is None
    assert "- rows/s" in summary_text(ended)


def test_a_verification_counts_equal_rows_and_each_kind_of_difference() -> None:
    reasons = {"differs total": 3, "differs note": 1, "missing": 2, "cast total": 1}
    found = verified(JobState.PARTIAL, reasons=reasons)
    found.report.rejected = 7
    text = summary_text(found).splitlines()
    assert text[0].split() == ["source", "units", "same", "not", "same", "size"]
    assert text[-2:] == [
        " complete with differences: 200 records are the same in shop.orders, 4 differ, 2 missing, "
        "1 rejected",
        " next     ringhaul errors ld-7f3a9c --export rejects.csv",
    ]
    data = summary_json(found)
    assert (data["kind"], data["rows"], data["missing"], data["differing"]) == ("verify", 200, 2, 4)
    assert "first_timestamp_us" not in data
    assert found.exit_code == 1


def test_a_verification_without_differences() -> None:
    found = verified(JobState.COMPLETE)
    assert summary_text(found).splitlines()[-1] == (
        " complete: 200 records are the same in shop.orders"
    )
    assert found.exit_code == 0


LAYOUT = Layout(partition_key_class="K", clustering=(), columns=(), written_s=1)


@pytest.mark.parametrize(
    ("destination", "line"),
    [
        (Streaming(table_id="1", layout=LAYOUT), "4 SSTables streamed, 3.0 MiB to 2 nodes"),
        (
            Imports(table_id="1", layout=LAYOUT, folder="/mnt/imports/{node}"),
            "4 SSTables imported, 3.0 MiB by 2 nodes",
        ),
    ],
)
def test_sstables_that_reached_nodes_are_counted(destination: Delivered, line: str) -> None:
    totals = {"rows": 200, f"{SENT_TO}10.0.0.1:7000": 2**20, f"{SENT_TO}10.0.0.2:7000": 2**21}
    ended = summary(JobState.COMPLETE, totals=totals)
    ended.report.sstables = 4
    ended = replace(ended, job=replace(ended.job, destination=destination))

    assert line in summary_text(ended)
    assert sum(summary_json(ended)["streamed_bytes"].values()) == 3 * 2**20

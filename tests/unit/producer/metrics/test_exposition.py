"""Figures as metrics: names, labels, and the sums that never get smaller."""

from __future__ import annotations

import pytest
from prometheus_client.core import Metric

from producer.metrics.exposition import (
    BOUNDS_US,
    JOB_STATES,
    JOBS_MAX,
    UNIT_STATES,
    histogram,
    metrics_of,
)
from producer.metrics.figures import Figures, NeverLess, ScheduleFigures
from ringhaul.dataplane.latency import bucket
from ringhaul.ledger.formats import Readable
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.schedules import Health
from ringhaul.ledger.server_checks import ServerFacts
from ringhaul.ledger.states import JobState
from ringhaul.ledger.totals import FIGURES, KindTotals
from ringhaul.ledger.workers import Worker
from ringhaul.schedule.runs import Run, RunState
from tests.unit.producer.statuses import status

SERVER = ServerFacts(address="h:6379", appendonly=True, used_bytes=50, maxmemory_bytes=100)
SECRET = "Kx9-secret"


def found(figures: Figures, *, jobs: bool = False) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics_of(figures, figures.totals, jobs=jobs)}


def value(metric: Metric, **labels: str) -> float:
    (sample,) = (one for one in metric.samples if labels.items() <= one.labels.items())
    return float(sample.value)


def test_jobs_and_units_by_state() -> None:
    running = status(60, units=10, pending=7, done=2, quarantined=1, issued=2, leased=1)
    paused = status(60, units=4, pending=4, paused_ms=1, oldest_issued_ms=1)
    damaged = status(60, units=99, pending=99, damage=("lost",))
    figures = Figures(
        server=SERVER, jobs={"RUNNING": 3, "ODD": 7}, unended=(running, paused, damaged)
    )
    metrics = found(figures)
    jobs = {sample.labels["state"]: sample.value for sample in metrics["ringhaul_jobs"].samples}
    assert jobs == dict.fromkeys(JOB_STATES, 0) | {"RUNNING": 3}
    units = {sample.labels["state"]: sample.value for sample in metrics["ringhaul_units"].samples}
    assert units == {"waiting": 8, "published": 2, "running": 1, "done": 2, "quarantined": 1}


def test_what_moves_and_what_stands_still() -> None:
    live = Live(rows=500, in_flight=30)
    moving = status(100, live=live, progress_ms=status(97).now_ms)
    still = status(100, live=live, oldest_issued_ms=status(40).now_ms)
    metrics = found(Figures(server=SERVER, unended=(moving, still)))
    assert value(metrics["ringhaul_uncommitted_rows"]) == 1000
    assert value(metrics["ringhaul_requests_in_flight"]) == 60
    assert value(metrics["ringhaul_longest_standstill_seconds"]) == 100.5  # since its creation
    assert value(metrics["ringhaul_oldest_unclaimed_unit_seconds"]) == 60
    idle = found(Figures(server=SERVER))
    assert value(idle["ringhaul_longest_standstill_seconds"]) == 0
    assert value(idle["ringhaul_oldest_unclaimed_unit_seconds"]) == 0


def test_workers_beats_and_queues() -> None:
    newer = Worker("host2", 3, 8, version="1.2", readable=Readable(1, 3))
    workers = [Worker("host1", 1, 4), Worker("host1", 2, 4), newer]
    figures = Figures(
        server=SERVER,
        workers=workers,
        beats={"h1:1": "line 3", "h2:7": ""},
        queues={"ringhaul.load": 5},
    )
    metrics = found(figures)
    assert value(metrics["ringhaul_workers"]) == 3
    assert value(metrics["ringhaul_worker_slots"]) == 16
    assert value(metrics["ringhaul_worker_hosts"]) == 2
    versions = metrics["ringhaul_worker_versions"]
    assert value(versions, version="", job_formats="1") == 2
    assert value(versions, version="1.2", job_formats="1-3") == 1
    assert value(metrics["ringhaul_beats"]) == 2
    assert value(metrics["ringhaul_schedule_file_ok"], beat="h1:1") == 0
    assert value(metrics["ringhaul_schedule_file_ok"], beat="h2:7") == 1
    assert value(metrics["ringhaul_queue_messages"], queue="ringhaul.load") == 5


def test_the_server_and_what_it_does_not_report() -> None:
    metrics = found(Figures(server=SERVER))
    assert value(metrics["ringhaul_redis_used_bytes"]) == 50
    assert value(metrics["ringhaul_redis_max_bytes"]) == 100
    assert value(metrics["ringhaul_redis_check_ok"], check="persistence") == 1
    off = ServerFacts(address="h:6379", appendonly=False, used_bytes=1, maxmemory_bytes=0)
    metrics = found(Figures(server=off))
    assert value(metrics["ringhaul_redis_check_ok"], check="persistence") == 0
    assert "ringhaul_redis_max_bytes" not in metrics, "without a limit there is no share of it"
    silent = found(Figures(server=ServerFacts(address="h:6379")))
    assert silent["ringhaul_redis_check_ok"].samples == []


def test_every_counter_is_there_before_it_counts() -> None:
    """Prometheus does not see the first increase of a new series."""
    metrics = found(Figures(server=SERVER))
    for name in ("rows", "rejected_records", "units_lost", "host_backoffs"):
        samples = metrics[f"ringhaul_{name}"].samples
        assert [sample.labels for sample in samples] == [{"kind": kind.value} for kind in JobKind]
        assert {sample.value for sample in samples} == {0}
    ended = metrics["ringhaul_jobs_ended"].samples
    assert len(ended) == len(JobKind) * (len(JobState) - 1)


def test_sums_by_kind() -> None:
    figures = {name: number for number, name in enumerate(FIGURES, start=1)}
    totals = {JobKind.LOAD: KindTotals(figures=figures, ended={"PARTIAL": 3})}
    metrics = found(Figures(server=SERVER, totals=totals))
    shown = {
        value(metric, kind="load")
        for metric in metrics.values()
        if metric.type == "counter" and metric.name != "ringhaul_jobs_ended"
    }
    assert shown == set(figures.values())
    assert value(metrics["ringhaul_rows"], kind="unload") == 0
    assert value(metrics["ringhaul_jobs_ended"], kind="load", state="PARTIAL") == 3


@pytest.mark.parametrize("latency_us", [0, 255, 256, 257, 1023, 1024, 5000, 10**7, 10**9])
def test_a_latency_is_counted_below_the_first_bound_that_it_does_not_reach(
    latency_us: int,
) -> None:
    buckets, total_s = histogram({bucket(latency_us): 2})
    for bound, requests in buckets:
        assert requests == (2 if latency_us < float(bound) * 1e6 else 0), bound
    assert total_s == pytest.approx(2 * latency_us / 1e6, rel=0.07, abs=1e-6)


def test_a_histogram_of_many() -> None:
    latencies = {bucket(us): us for us in (100, 300, 3000, 50_000, 10**8)}
    buckets, _ = histogram(latencies)
    assert [bound for bound, _ in buckets] == [*(f"{us / 1e6}" for us in BOUNDS_US), "+Inf"]
    counts = [requests for _, requests in buckets]
    assert counts == sorted(counts)
    assert counts[-1] == sum(latencies.values())
    assert histogram({})[0][-1] == ("+Inf", 0.0)


def test_sums_never_get_smaller_whatever_redis_lost() -> None:
    def rows(sums: NeverLess, **figures: int) -> int:
        read = {JobKind.LOAD: KindTotals(figures=figures)} if figures else {}
        return sums.totals(read)[JobKind.LOAD].figures["rows"]

    sums = NeverLess()
    assert rows(sums, rows=1000) == 1000
    assert rows(sums, rows=1500) == 1500
    assert rows(sums, rows=1400) == 1500, "the last second was lost"
    assert rows(sums, rows=1600) == 1700, "what was lost is done again"
    assert rows(sums) == 1700, "everything was lost"
    assert rows(sums, rows=5) == 1705


NOW_MS = 1_700_000_000_000


def test_schedules() -> None:
    last = Run(
        schedule="a",
        due_ms=NOW_MS,
        started_ms=NOW_MS + 2000,
        state=RunState.FAILED,
        notified=("ok", "HTTP 500", "TimeoutError"),
    )
    schedules = (
        ScheduleFigures(
            name="a",
            running=True,
            next_due_ms=NOW_MS + 60_000,
            last=last,
            health=Health(last, NOW_MS - 7000, 3, acknowledged=True),
        ),
        ScheduleFigures(name="b", paused=True),
    )
    metrics = found(Figures(server=SERVER, schedules=schedules))
    assert value(metrics["ringhaul_schedules"]) == 2
    due = metrics["ringhaul_schedule_next_due_timestamp_seconds"]
    assert [(one.labels, one.value) for one in due.samples] == [
        ({"schedule": "a"}, NOW_MS / 1000 + 60)
    ]
    outcomes = {
        (one.labels["schedule"], one.labels["outcome"])
        for one in metrics["ringhaul_schedule_last_outcome"].samples
        if one.value
    }
    assert outcomes == {("a", "failed")}
    # While a run goes on, how the last one ended is still told
    ends = metrics["ringhaul_schedule_last_ended"]
    assert value(ends, schedule="a", outcome="failed") == 1
    assert value(ends, schedule="a", outcome="done") == 0
    assert value(ends, schedule="b", outcome="failed") == 0
    assert value(metrics["ringhaul_schedule_failures"], schedule="a") == 3
    assert value(metrics["ringhaul_schedule_failures"], schedule="b") == 0
    assert value(metrics["ringhaul_schedule_acknowledged"], schedule="a") == 1
    assert value(metrics["ringhaul_schedule_acknowledged"], schedule="b") == 0
    assert value(metrics["ringhaul_schedule_notifications_failed"], schedule="a") == 2
    assert value(metrics["ringhaul_schedule_notifications_failed"], schedule="b") == 0
    success = metrics["ringhaul_schedule_last_success_timestamp_seconds"]
    assert [(one.labels, one.value) for one in success.samples] == [
        ({"schedule": "a"}, NOW_MS / 1000 - 7)
    ]
    assert value(metrics["ringhaul_schedule_paused"], schedule="b") == 1
    assert value(metrics["ringhaul_schedule_running"], schedule="a") == 1
    dispatch = metrics["ringhaul_beat_last_dispatch_timestamp_seconds"]
    assert value(dispatch) == NOW_MS / 1000 + 2
    without = found(Figures(server=SERVER))
    assert [name for name in without if "schedule" in name] == ["ringhaul_schedule_file_ok"]


def test_jobs_are_no_label_unless_the_settings_say_so() -> None:
    unended = [
        status(10, job=f"ld-{number}", labels={"kind": SECRET, "table": SECRET}, units=8, pending=3)
        for number in range(JOBS_MAX + 5)
    ]
    figures = Figures(server=SERVER, unended=unended)
    text = str(list(found(figures).values()))
    assert "ld-1" not in text and SECRET not in text
    metrics = found(figures, jobs=True)
    own = [metric for name, metric in metrics.items() if name.startswith("ringhaul_job_")]
    assert len(own) == 10
    for metric in own:
        assert len({sample.labels["job_id"] for sample in metric.samples}) == JOBS_MAX
        assert {sample.labels["kind"] for sample in metric.samples} == {"other"}
    assert SECRET not in str(own)


def test_no_text_of_a_job_is_in_a_metric() -> None:
    texts = {
        "last_error": SECRET,
        "declined": SECRET,
        "trouble": SECRET,
        "labels": {"kind": "load", "command": SECRET, "table": SECRET, "bytes_total": "7"},
        "damage": (),
    }
    figures = Figures(
        server=ServerFacts(address=SECRET),
        unended=[status(10, **texts)],
        workers=[Worker(SECRET, 1, 1, (SECRET,))],
        schedules=[ScheduleFigures(name="a", last=Run(schedule="a", due_ms=1, reason=SECRET))],
    )
    assert SECRET not in str(found(figures, jobs=True))


def test_the_figures_of_a_running_job() -> None:
    one = status(
        20,
        units=8,
        pending=6,
        done=2,
        leased=3,
        totals={"rows": 100, "rejected": 1, "bytes": 10, "retries": 4},
        live=Live(rows=50, rejected=2, bytes=5, in_flight=9),
        labels={"kind": "load", "bytes_total": "60"},
    )
    metrics = found(Figures(server=SERVER, unended=[one]), jobs=True)
    values = {
        name.removeprefix("ringhaul_job_"): value(metric, job_id="ld-7f3a9c", kind="load")
        for name, metric in metrics.items()
        if name.startswith("ringhaul_job_") and name != "ringhaul_job_units"
    }
    assert values == {
        "progress_ratio": 0.25,
        "rows": 150,
        "rejected_records": 3,
        "bytes": 15,
        "request_retries": 4,
        "requests_in_flight": 9,
        "standstill_seconds": 20.5,
        "elapsed_seconds": 20,
        "paused": 0,
    }
    states = metrics["ringhaul_job_units"].samples
    assert [one.labels["state"] for one in states] == list(UNIT_STATES)


def test_names_are_registered_once() -> None:
    """Prometheus refuses a page in which a metric occurs twice."""
    figures = Figures(server=SERVER, schedules=())
    names = [metric.name for metric in metrics_of(figures, {}, jobs=True)]
    assert len(names) == len(set(names))
    assert all(name.startswith("ringhaul_") for name in names)

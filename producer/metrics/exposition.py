"""Turns figures into metrics for Prometheus.

Labels have few values: states, kinds of job, queues, names of schedules in the file, checks. Ids of
jobs are a label only if the settings say so, and then of at most `JOBS_MAX` jobs. Nothing comes
from rows, paths or messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import inf

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from producer.figures.speed import recent_snapshot
from producer.figures.standing import Condition
from producer.metrics.figures import Figures, ScheduleFigures
from ringhaul.dataplane.latency import bucket_ceiling_us
from ringhaul.ledger.job_status import DAMAGED, JobStatus
from ringhaul.ledger.kinds import KINDS, JobKind
from ringhaul.ledger.server_checks import Level, check_server
from ringhaul.ledger.states import JobState
from ringhaul.ledger.totals import KindTotals
from ringhaul.schedule.runs import RunState

#: How many running jobs have their own metrics; the oldest are left out.
JOBS_MAX = 100
JOB_STATES = (*(state.value for state in JobState), "PAUSED", DAMAGED)
UNIT_STATES = ("waiting", "published", "running", "done", "quarantined")
#: Bounds of the latency histogram in microseconds: from 0.26 ms to 17 s. Powers of two are bounds
#: of the ledger's buckets too, so the counts are exact.
BOUNDS_US = tuple(1 << power for power in range(8, 25))
#: Figure in the ledger -> name and help of its counter, which has the label `kind`.
COUNTERS: Mapping[str, tuple[str, str]] = {
    "rows": ("ringhaul_rows", "Rows written, read or compared, of committed units."),
    "rejected": ("ringhaul_rejected_records", "Records rejected, of committed units."),
    "bytes": ("ringhaul_bytes", "Bytes of input or output, of committed units."),
    "retries": ("ringhaul_request_retries", "Requests that were sent again, of committed units."),
    "streamed": (
        "ringhaul_streamed_bytes",
        "Bytes of SSTables that nodes took, of committed units.",
    ),
    "units": ("ringhaul_units_committed", "Units that were committed."),
    "failed": ("ringhaul_units_failed", "Units given back because of an error."),
    "lost": ("ringhaul_units_lost", "Units whose process or host was lost."),
    "quarantined": ("ringhaul_units_quarantined", "Units given up, because they kill workers."),
    "created": ("ringhaul_jobs_created", "Jobs created."),
    "backoffs": ("ringhaul_host_backoffs", "Nodes left alone for a while, by units."),
    "shrinks": ("ringhaul_window_shrinks", "Units in which the window of requests shrank."),
}


#: Gauges of each running job, after `ringhaul_job_`, with their help.
JOB_GAUGES: Mapping[str, str] = {
    "progress_ratio": "Share that is done, from 0 to 1.",
    "rows": "Rows so far, units in progress included.",
    "rejected_records": "Rejected records so far, units in progress included.",
    "bytes": "Bytes so far, units in progress included.",
    "request_retries": "Requests that were sent again, of committed units.",
    "requests_in_flight": "Unanswered requests.",
    "standstill_seconds": "How long the job has made no progress.",
    "elapsed_seconds": "Since its first unit was claimed.",
    "paused": "Whether the job is paused.",
}


def metrics_of(
    figures: Figures, totals: Mapping[JobKind, KindTotals], *, jobs: bool
) -> Iterator[Metric]:
    """Return the metrics of these figures.

    `totals`: the figures' totals, corrected by `NeverLess`. `jobs`: whether to add metrics of each
    running job.
    """
    yield from _job_metrics(figures)
    yield from _totals(totals)
    yield from _fleet_metrics(figures)
    yield from _server_metrics(figures)
    if figures.schedules is not None:
        yield from _schedule_metrics(figures.schedules)
    if jobs:
        yield from _single_jobs(figures.unended)


def up(value: int) -> Metric:
    """Return the metric that says whether the ledger answered."""
    return GaugeMetricFamily("ringhaul_up", "Whether the ledger in Redis answers.", value)


def duration(seconds: float) -> Metric:
    """Return the metric for the time that reading the ledger took."""
    text = "How long reading the ledger took."
    return GaugeMetricFamily("ringhaul_scrape_duration_seconds", text, seconds)


def _labelled(
    name: str, text: str, label: str, values: Mapping[str, float], order: Sequence[str]
) -> Metric:
    """A gauge with one label, 0 for each value of `order` that has none."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for value in (*order, *sorted(values.keys() - set(order))):
        family.add_metric([value], values.get(value, 0))
    return family


def _job_metrics(figures: Figures) -> Iterator[Metric]:
    known = {state: jobs for state, jobs in figures.jobs.items() if state in JOB_STATES}
    yield _labelled("ringhaul_jobs", "Jobs in the ledger by state.", "state", known, JOB_STATES)
    yield _labelled(
        "ringhaul_jobs_without_work",
        "Running jobs that wait for a slot, or that no live worker works on.",
        "condition",
        {str(condition): jobs for condition, jobs in figures.conditions.items()},
        tuple(Condition),
    )
    units: Counter[str] = Counter()
    running = [status for status in figures.unended if not status.damage]
    for status in running:
        units.update(unit_states(status))
    text = "Units of the jobs that have not ended, by state."
    yield _labelled("ringhaul_units", text, "state", units, UNIT_STATES)
    yield GaugeMetricFamily(
        "ringhaul_uncommitted_rows",
        "Rows of units that are in progress; they are in ringhaul_rows_total later.",
        sum(status.live.rows for status in running),
    )
    yield GaugeMetricFamily(
        "ringhaul_requests_in_flight",
        "Unanswered requests to Cassandra, over all workers.",
        sum(status.live.in_flight for status in running),
    )
    oldest_s = [
        (status.now_ms - status.oldest_issued_ms) / 1000
        for status in running
        if status.oldest_issued_ms is not None and not status.paused
    ]
    yield GaugeMetricFamily(
        "ringhaul_oldest_unclaimed_unit_seconds",
        "How long the oldest published unit has waited for a worker.",
        max([0.0, *oldest_s]),
    )
    yield GaugeMetricFamily(
        "ringhaul_longest_standstill_seconds",
        "Longest time that a running job has made no progress.",
        max([0.0, *(status.still_s for status in running)]),
    )


def unit_states(status: JobStatus) -> dict[str, int]:
    """Return how many units of a job are in each of `UNIT_STATES`."""
    return {
        "waiting": max(status.pending - status.issued - status.leased, 0),
        "published": status.issued,
        "running": status.leased,
        "done": status.done,
        "quarantined": status.quarantined,
    }


def _totals(totals: Mapping[JobKind, KindTotals]) -> Iterator[Metric]:
    """Counters. All exist from the start: the first increase of a new series would not count."""
    for figure, (name, text) in COUNTERS.items():
        family = CounterMetricFamily(name, text, labels=["kind"])
        for kind in JobKind:
            family.add_metric([kind.value], totals.get(kind, _NONE).figures.get(figure, 0))
        yield family
    ended = CounterMetricFamily(
        "ringhaul_jobs_ended", "Jobs that ended, by their state then.", labels=["kind", "state"]
    )
    for kind in JobKind:
        for state in JobState:
            if state is not JobState.RUNNING:
                number = totals.get(kind, _NONE).ended.get(state.value, 0)
                ended.add_metric([kind.value, state.value], number)
    yield ended
    latency = HistogramMetricFamily(
        "ringhaul_request_latency_seconds",
        "Time from a request to Cassandra to its answer, of committed units. The sum is estimated "
        "from buckets that are 12 % wide.",
        labels=["kind"],
    )
    for kind, found in totals.items():
        buckets, total_s = histogram(found.latencies)
        latency.add_metric([kind.value], buckets, total_s)
    yield latency


_NONE = KindTotals()


def histogram(latencies: Mapping[int, int]) -> tuple[list[tuple[str, float]], float]:
    """Return requests by bucket of the ledger as [(bound in seconds, requests up to it)], and the
    estimated sum of their latencies in seconds."""
    cumulated, total_us, below = [], 0.0, 0
    ordered = sorted(latencies.items())
    place = 0
    for bound in (*BOUNDS_US, inf):
        while place < len(ordered) and bucket_ceiling_us(ordered[place][0]) < bound:
            index, requests = ordered[place]
            lowest_us = bucket_ceiling_us(index - 1) + 1 if index else 0
            total_us += requests * (lowest_us + bucket_ceiling_us(index)) / 2
            below += requests
            place += 1
        cumulated.append(("+Inf" if bound == inf else f"{bound / 1e6}", float(below)))
    return cumulated, total_us / 1e6


def _fleet_metrics(figures: Figures) -> Iterator[Metric]:
    workers = figures.workers
    yield GaugeMetricFamily("ringhaul_workers", "Workers that are alive.", len(workers))
    yield GaugeMetricFamily(
        "ringhaul_worker_slots",
        "Units that all living workers can process at once.",
        sum(worker.slots for worker in workers),
    )
    yield GaugeMetricFamily(
        "ringhaul_worker_hosts", "Hosts with a worker.", len({worker.host for worker in workers})
    )
    versions = GaugeMetricFamily(
        "ringhaul_worker_versions",
        "Workers by their version of ringhaul, and by the formats of jobs that they read.",
        labels=("version", "job_formats"),
    )
    counts = Counter((worker.version, str(worker.readable)) for worker in workers)
    for labels, count in sorted(counts.items()):
        versions.add_metric(labels, count)
    yield versions
    yield GaugeMetricFamily("ringhaul_beats", "Beats that are alive.", len(figures.beats))
    files = GaugeMetricFamily(
        "ringhaul_schedule_file_ok",
        "Whether a beat can read its schedule file; if not, it goes on with the last version.",
        labels=("beat",),
    )
    for beat, problem in sorted(figures.beats.items()):
        files.add_metric([beat], int(not problem))
    yield files
    yield _labelled(
        "ringhaul_queue_messages",
        "Messages that wait in the queues of units; own: those of jobs with their own workers.",
        "queue",
        figures.queues,
        (),
    )


def _server_metrics(figures: Figures) -> Iterator[Metric]:
    """What the server reports; it may refuse to."""
    server = figures.server
    if server.used_bytes is not None:
        yield GaugeMetricFamily(
            "ringhaul_redis_used_bytes", "Memory that Redis uses.", server.used_bytes
        )
    if server.maxmemory_bytes:
        yield GaugeMetricFamily(
            "ringhaul_redis_max_bytes", "maxmemory of Redis, if it is set.", server.maxmemory_bytes
        )
    family = GaugeMetricFamily(
        "ringhaul_redis_check_ok",
        "Whether a check of the Redis server, as by `ringhaul doctor`, found no problem.",
        labels=["check"],
    )
    for check in check_server(server):
        family.add_metric([check.name], check.level is Level.OK)
    yield family


def _schedule_metrics(schedules: Sequence[ScheduleFigures]) -> Iterator[Metric]:
    yield GaugeMetricFamily("ringhaul_schedules", "Schedules in the file.", len(schedules))
    next_due, last_due, outcome, ended, success, failures, acked, unsent, paused, running = (
        GaugeMetricFamily(f"ringhaul_schedule_{name}", text, labels=labels)
        for name, text, labels in (
            (
                "next_due_timestamp_seconds",
                "First due time for which no run has started and that was not skipped. In the "
                "past: overdue.",
                ["schedule"],
            ),
            ("last_due_timestamp_seconds", "Due time of the last run.", ["schedule"]),
            (
                "last_outcome",
                "1 for the state of the last run, which may be running, or skipped.",
                ["schedule", "outcome"],
            ),
            ("last_ended", "1 for how the last run ended.", ["schedule", "outcome"]),
            (
                "last_success_timestamp_seconds",
                "When the last run ended that was done.",
                ["schedule"],
            ),
            ("failures", "Runs in a row that failed, up to the last.", ["schedule"]),
            (
                "acknowledged",
                "Whether somebody has acknowledged that the last run failed.",
                ["schedule"],
            ),
            (
                "notifications_failed",
                "Notifications of the last run that ended which reached nobody.",
                ["schedule"],
            ),
            ("paused", "Whether the schedule is paused.", ["schedule"]),
            ("running", "Whether a run has not ended.", ["schedule"]),
        )
    )
    dispatched_ms = 0
    for one in schedules:
        paused.add_metric([one.name], one.paused)
        running.add_metric([one.name], one.running)
        if one.next_due_ms is not None:
            next_due.add_metric([one.name], one.next_due_ms / 1000)
        if one.last is not None:
            last_due.add_metric([one.name], one.last.due_ms / 1000)
            dispatched_ms = max(dispatched_ms, one.last.started_ms or 0)
        for state in RunState:
            is_it = one.last is not None and one.last.state is state
            outcome.add_metric([one.name, state.value.lower()], is_it)
        failures.add_metric([one.name], one.health.failures)
        acked.add_metric([one.name], one.health.acknowledged)
        notified = () if one.health.ended is None else one.health.ended.notified
        unsent.add_metric([one.name], sum(outcome != "ok" for outcome in notified))
        if one.health.success_ms is not None:
            success.add_metric([one.name], one.health.success_ms / 1000)
        for state in (RunState.DONE, RunState.FAILED):
            is_it = one.health.ended is not None and one.health.ended.state is state
            ended.add_metric([one.name, state.value.lower()], is_it)
    yield from (
        next_due,
        last_due,
        outcome,
        ended,
        success,
        failures,
        acked,
        unsent,
        paused,
        running,
    )
    if dispatched_ms:
        yield GaugeMetricFamily(
            "ringhaul_beat_last_dispatch_timestamp_seconds",
            "When a beat last started a run.",
            dispatched_ms / 1000,
        )


def _single_jobs(unended: Sequence[JobStatus]) -> Iterator[Metric]:
    """Metrics of the newest jobs that have not ended, with the figures of `ringhaul status`."""
    labels = ["job_id", "kind"]  # Prometheus itself gives the label `job`
    families = {
        name: GaugeMetricFamily(f"ringhaul_job_{name}", text, labels=labels)
        for name, text in JOB_GAUGES.items()
    }
    units = GaugeMetricFamily("ringhaul_job_units", "Units by state.", labels=[*labels, "state"])
    for status in [one for one in unended if not one.damage][:JOBS_MAX]:
        snapshot = recent_snapshot(status, [])
        kind = status.labels.get("kind", "")
        job = [status.job, kind if kind in KINDS else "other"]
        for name, value in (
            ("progress_ratio", snapshot.share),
            ("rows", snapshot.rows),
            ("rejected_records", snapshot.rejected),
            ("bytes", snapshot.bytes_done),
            ("request_retries", snapshot.retries),
            ("requests_in_flight", status.live.in_flight),
            ("standstill_seconds", status.still_s),
            ("elapsed_seconds", snapshot.elapsed_s),
            ("paused", status.paused),
        ):
            families[name].add_metric(job, value)
        for state, number in unit_states(status).items():
            units.add_metric([*job, state], number)
    yield from families.values()
    yield units

"""Prepare trials of `ringhaul tune`: the planned load, its table, workers, and a sample."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import psutil

from config.cores import usable_cores
from producer.inputs.completion import complete_load
from producer.inputs.stdin_spool import spool_path, spool_sources
from producer.options.tune import TuneOptions
from producer.plan.heads import Heads
from producer.plan.json_layout import with_layout
from producer.plan.load import plan_load
from producer.plan.titles import with_separator
from producer.report.reporter import Shown
from producer.request.load import load_draft
from producer.services.embedded import default_workers
from producer.services.preflight import Visibility
from producer.services.start import Services
from producer.services.workers import JobWorkers, choose_workers, standing_ledger
from producer.text import bytes_text, count_text, time_text
from producer.tune.limits import SourceRate
from producer.tune.sample import Sample, cut_sample
from producer.tune.scratch_table import ScratchTable, left_behind
from producer.tune.setup import Knob, Setup, Space, counts_of_workers, make_space
from producer.tune.source_rate import measure_source
from producer.tune.trials import Trials
from producer.tune.worker_groups import WorkerGroups
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import ClusterError, UsageError
from ringhaul.plain_text import lines_of
from ringhaul.records.job import LoadJob
from ringhaul.storage.streams import is_stream
from tasks.transforms import transforms_of

#: About how many trials fit into the time, and bounds of the seconds of a trial.
TRIALS = 80
TRIAL_MIN_S, TRIAL_MAX_S = 0.5, 5.0
#: How long the first load runs, in trials: connections, caches and the server's compiler get warm.
#: It runs again, twice as long, until this many rows were written, or this share of the time is up.
FIRST_TRIALS = 2.0
ROWS_MIN = 5_000
FIRST_SHARE = 0.15
#: How often the sample grows at most, while the rate is not within this share of the estimate.
CALIBRATIONS = 3
CLOSE = 1.3
SOURCE_S = 1.0
ROUND_TRIPS = 20
#: What is left for the report, in seconds.
LAST_S = 0.7
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)
#: Memory of a worker process, for how many are tried.
WORKER_BYTES = 250 * 2**20


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What all trials of a run share."""

    trials: Trials
    start: Setup  #: the settings as they are
    counts: Sequence[int]  #: numbers of worker processes to choose from; empty: standing workers
    workers: JobWorkers
    source: SourceRate
    round_trip_ms: float


def prepare(
    stack: ExitStack,
    options: TuneOptions,
    services: Services,
    run: str,
    ends_s: float,
    shown: Shown,
    counts: Sequence[int] = (),
) -> Prepared:
    """Plan the load, create its scratch table and start workers; `stack` removes both.

    `run`: names the run. `ends_s`: when the command has to be over, on the monotonic clock.
    `counts`: numbers of worker processes to choose from, instead of what suits the host.
    Raises as a load does, before anything is created.
    """
    stack.callback(_set_handlers, {number: signal.getsignal(number) for number in _INTERRUPTS})
    job, workers = _plan(options, services, shown)
    cluster = services.opening.view()
    start = _start_setup(options, services, job)
    transforms = transforms_of(services.settings, job.transforms)
    source = measure_source(job, SOURCE_S, transforms)
    round_trip_ms = _round_trip_ms(cluster)
    if options.in_place:
        _refuse_lists(job)
        _refuse_rows(cluster, job.table, options)
        table = job.table
    else:
        session = services.opening.session()
        scratch = ScratchTable(session, services.settings, job.table, run)
        stack.callback(scratch.drop, ends_s - LAST_S)
        stack.callback(_ignore_interrupts)
        table = scratch.create()
    shown.say(_first_lines(run, job, table, options, workers))
    trials = Trials(
        run=run,
        settings=services.settings,
        for_workers=services.for_workers,
        job=replace(job, table=table),
        max_errors=services.settings.load.max_errors,
        slots=workers.slots,
        label=workers.label,
        broker=services.broker,
    )
    return Prepared(
        trials=trials,
        start=start,
        counts=_start_workers(stack, trials, start, options, counts),
        workers=workers,
        source=source,
        round_trip_ms=round_trip_ms,
    )


def first_loads(prepared: Prepared, stops_s: float, *, repeat: bool) -> tuple[Sample, float, Space]:
    """Load the beginning until everything is warm. From that, choose the sample, the seconds of a
    trial, and the space of setups.

    `stops_s`: when trials end, on the monotonic clock. `repeat`: a small source is loaded several
    times. Raises `ClusterError` if no row was written.
    """
    trials, start, counts = prepared.trials, prepared.start, prepared.counts
    if trials.groups is not None:
        trials.groups.wait(trials.ledger)
    left_s = stops_s - time.monotonic()
    seconds = min(max(left_s / TRIALS, TRIAL_MIN_S), TRIAL_MAX_S)
    if counts and counts[-1] > start.workers:  # all processes open their connections
        trials.first(start.having(Knob.WORKERS, counts[-1]), seconds)
    bound_s, all_loaded = seconds * FIRST_TRIALS, False
    figures = None
    while figures is None or figures.rows < ROWS_MIN:
        figures, all_loaded = trials.first(start, bound_s)
        if all_loaded or bound_s > left_s * FIRST_SHARE:
            break
        bound_s *= 2
    if not figures.rows:
        raise ClusterError(
            f"no row of the sample was written in {bound_s:.0f} s: see `ringhaul load --dry-run` "
            "and `ringhaul doctor`, or give more with --budget"
        )
    rate = figures.rate
    for _ in range(CALIBRATIONS):
        sample = cut_sample(
            trials.job,
            records_wanted=max(int(rate * seconds), 1),
            loaded=figures.rows,
            loaded_bytes=figures.bytes_count,
            all_loaded=all_loaded,
            repeat=repeat,
        )
        took = trials.measure(start, sample, seconds)
        trials.figures.clear()  # it was warming up
        if not sample.records or took < rate * CLOSE:
            break
        rate = took
    space = make_space(start, worker_counts=counts, sample_bytes=sample.bytes_count)
    if all(one.file.whole or one.format == "parquet" for one in trials.job.sources):
        # The units of such sources are files or row groups, whatever is set.
        space = {**space, Knob.UNIT_BYTES: [start.unit_bytes]}
    return sample, seconds, space


def sample_text(sample: Sample) -> str:
    """Return what a trial loads, for people."""
    size = bytes_text(sample.bytes_count)
    if not sample.records:
        return f"a trial is the beginning of {count_text(len(sample.sources), 'file')}, {size}"
    again = f" (the files {sample.passes} times)" if sample.passes > 1 else ""
    return f"a trial is {count_text(sample.records, 'record')}, {size}{again}"


def _plan(options: TuneOptions, services: Services, shown: Shown) -> tuple[LoadJob, JobWorkers]:
    """Plan the load whose records are tried. Raises as a load does, before anything is written."""
    loaded = services.loaded
    for source in filter(is_stream, options.sources):
        raise UsageError(f"a trial reads its sources again and again: give files, not {source}")
    completed = complete_load(options)
    shown.show(completed.notes)
    request = load_draft(completed.options, loaded)
    spool = spool_path(loaded.settings.state_dir, services.job_id)
    ledger = standing_ledger(services)
    files = spool_sources(
        completed.options.sources, request.dialect, request.file_format, spool, completed.places
    )
    with Heads(files) as heads, Visibility(ledger) as visibility:
        request = with_separator(request, heads)
        request, note = with_layout(request, heads)
        if note is not None:
            shown.say(note)
        visibility.start(files)
        cluster = services.opening.view()
        workers = choose_workers(services, ledger, cluster, request.keyspace)
        if workers.warning:
            shown.warn(workers.warning)
        job = plan_load(request, heads, cluster, loaded.settings, workers.slots)
        visibility.judge(workers.workers, shown.warn)
    for statement in left_behind(cluster, request.keyspace):
        shown.warn(f"another run has a scratch table; if it was killed, run: {statement};")
    return job, workers


def _start_setup(options: TuneOptions, services: Services, job: LoadJob) -> Setup:
    """Return the settings as they are: what the others are compared with."""
    load, count = services.loaded.settings.load, 0
    if standing_ledger(services) is None:
        count = services.loaded.settings.worker.concurrency or default_workers()
        count = min(count, options.workers or count)
    return Setup(
        strategy=job.strategy,
        workers=count,
        batch_rows=load.batch_rows_max,
        in_flight=load.in_flight_requests_max,
        unit_bytes=load.unit_bytes,
    )


def _refuse_lists(job: LoadJob) -> None:
    """Raise `UsageError` for lists to which each trial would append: see `appends`."""
    if job.lists:
        raise UsageError(
            f"--in-place writes the same rows again and again, and {job.lists[0]} is a list that "
            "is not frozen: its elements would be repeated. Leave --in-place out"
        )


def _refuse_rows(cluster: ClusterView, table: TableSchema, options: TuneOptions) -> None:
    """Raise `UsageError` if the table has a row and the user did not allow for that."""
    if options.overwrite:
        return
    keyspace, name = quote_identifier(table.keyspace), quote_identifier(table.table)
    key = quote_identifier(table.partition_key[0])
    if cluster.has_row(f"SELECT {key} FROM {keyspace}.{name} LIMIT 1"):
        raise UsageError(
            f"{table.name} has rows, and --in-place writes the sample's rows over those with the "
            "same keys: leave --in-place out to use a scratch table, or add --overwrite"
        )


def _start_workers(
    stack: ExitStack,
    trials: Trials,
    start: Setup,
    options: TuneOptions,
    counts: Sequence[int],
) -> Sequence[int]:
    """Start workers of this command, if it has any; return the numbers of them to choose from."""
    if start.workers:
        room = psutil.virtual_memory().available // WORKER_BYTES
        fit = max(int(room), start.workers)
        usual = counts_of_workers(usable_cores(), start.workers, options.workers, fit)
        counts = sorted({start.workers, *counts}) if counts else usual
        trials.groups = WorkerGroups(trials.for_workers, trials.run, counts)
        stack.enter_context(trials.groups.running())
    stack.callback(trials.abandon)
    stack.callback(_ignore_interrupts)
    return counts


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C until the stack is closed: only a clean-up is left, whose time is bounded."""
    _set_handlers(dict.fromkeys(_INTERRUPTS, signal.SIG_IGN))


def _set_handlers(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        # None: set by other code than Python's.
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _round_trip_ms(cluster: ClusterView) -> float:
    """Return the lowest time of a trivial request, while nothing else runs."""
    lowest_s = float("inf")
    for _ in range(ROUND_TRIPS):
        began_s = time.perf_counter()
        cluster.has_row("SELECT key FROM system.local")
        lowest_s = min(lowest_s, time.perf_counter() - began_s)
    return lowest_s * 1000


def _first_lines(
    run: str, job: LoadJob, table: TableSchema, options: TuneOptions, workers: JobWorkers
) -> str:
    where = "in place" if options.in_place else f"scratch table {table.name}, dropped at the end"
    return lines_of(
        [
            f"tune {run}  {job.table.name}   {count_text(len(job.sources), 'file')}"
            f"  {bytes_text(job.total_bytes)}   {workers.text}"
            f"   within {time_text(options.budget_s)}",
            f"  {where}",
        ]
    )

"""Run `ringhaul tune`: plan the load, try setups on a sample of it, say what limits, keep the best.

The time is bounded hard: an alarm ends whatever is running some seconds before the budget is over,
and the rest is for cleaning up.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import psutil
from cassandra.cluster import Session

from config.cores import usable_cores
from producer.inputs.from_manifest import as_unloaded
from producer.inputs.stdin_spool import spool_path, spool_sources
from producer.inputs.urlfile import NO_PLACES, read_urlfile
from producer.outputs.stdout import json_text, print_message
from producer.outputs.whole_file import check_replacing, whole_file
from producer.plan.load import plan_load
from producer.plan.source_rate import measure_source
from producer.plan.trial import Sample, cut_sample
from producer.report.reporter import Shown
from producer.request.load import load_request
from producer.request.options import TuneOptions
from producer.run.trials import Trials
from producer.services.embedded import default_workers
from producer.services.preflight import Visibility
from producer.services.scratch_table import ScratchTable, left_behind
from producer.services.start import Services
from producer.services.worker_groups import WorkerGroups
from producer.services.workers import JobWorkers, choose_workers, standing_ledger
from producer.text import bytes_text, count_text, rate_text, time_text
from producer.tuning.limits import Evidence, SourceRate, Verdict, evidence_lines, judge
from producer.tuning.search import Found, search
from producer.tuning.settings_file import edited, section_text
from producer.tuning.setup import Knob, Setup, Space, counts_of_workers, make_space
from producer.tuning.table import (
    median_figures,
    race_line,
    setup_text,
    table_lines,
    to_json,
    wrapped,
)
from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.errors import EXIT_COMPLETE, ClusterError, UsageError
from ringhaul.plain_text import lines_of
from ringhaul.records.job import LoadJob
from tasks.transforms import transforms_of

#: Share of the budget that is kept for cleaning up, and its bounds in seconds: a busy node takes
#: seconds to drop a table.
END_SHARE, END_MIN_S, END_MAX_S = 0.15, 4.0, 15.0
#: About so many trials fit into the time; bounds of the seconds of one.
TRIALS = 80
TRIAL_MIN_S, TRIAL_MAX_S = 0.5, 5.0
#: How long the first load runs, in trials: connections, caches and the server's compiler get warm.
#: It runs again, twice as long, until this many rows were written, or this share of the time is up.
FIRST_TRIALS = 2.0
ROWS_MIN = 5_000
FIRST_SHARE = 0.15
#: The sample grows at most so often, while the rate is not within this of what it was taken to be.
CALIBRATIONS = 3
CLOSE = 1.3
SOURCE_S = 1.0
ROUND_TRIPS = 20
#: What is left for the report, in seconds.
LAST_S = 0.7
#: Pause between two alarms.
AGAIN_S = 0.5
#: Memory of a worker process, for how many are tried.
WORKER_BYTES = 250 * 2**20
FILE_NAME = "ringhaul.toml"


class _TimeOver(KeyboardInterrupt):
    """The time for trials is over. Like Ctrl-C, so that nothing takes it for a failure, least of
    all of a user's transform."""


def run_tune(options: TuneOptions, services: Services, run: str, ends_s: float) -> int:
    """Run `ringhaul tune` with the services that were started for it; the exit code.

    `run`: names the run. `ends_s`: when the command has to be over, on the monotonic clock.
    """
    shown = Shown.from_options(options)
    file = _settings_file(options, services)
    budget_s = ends_s - time.monotonic()
    stops_s = ends_s - min(max(budget_s * END_SHARE, END_MIN_S), END_MAX_S)
    with ExitStack() as stack:
        try:
            with _until(stops_s):
                job, workers = _plan(options, services, shown)
                session = services.opening.session()
                start = _start_setup(options, services, job)
                transforms = transforms_of(services.settings, job.transforms)
                source = measure_source(job, SOURCE_S, transforms)
                round_trip_ms = _round_trip_ms(session)
                table = _table(stack, job, session, options, services, run, ends_s)
                shown.say(_first_lines(run, job, table, options, workers))
                trials = Trials(
                    run=run,
                    settings=services.settings,
                    job=replace(job, table=table),
                    max_errors=services.settings.load.max_errors,
                    slots=workers.slots,
                    label=workers.label,
                    broker=services.broker,
                )
                counts = _start_workers(stack, trials, start, options)
        except _TimeOver:
            raise _too_short(0) from None
        found = Found(best=start)
        try:
            with _until(stops_s):
                _search(found, trials, counts, stops_s, shown, repeat=not options.in_place)
        except _TimeOver:
            if not found.tried:
                raise _too_short(trials.count) from None
    evidence = _evidence(found, trials, source, round_trip_ms, workers)
    _report(found, start, trials, evidence, shown)
    _write(found, evidence, file, options, services, shown)
    return EXIT_COMPLETE


def _too_short(trials: int) -> UsageError:
    return UsageError(
        f"the time was over before anything could be compared, after "
        f"{count_text(trials, 'trial')}: give more with --budget"
    )


@contextmanager
def _until(stops_s: float) -> Iterator[None]:
    """Raise `_TimeOver` in the block when the time has come, whatever it is waiting for."""

    def over(number: int, frame: FrameType | None) -> None:
        raise _TimeOver

    before = signal.signal(signal.SIGALRM, over)
    # Again and again: it may be raised where it is ignored, as in a `__del__`.
    signal.setitimer(signal.ITIMER_REAL, max(stops_s - time.monotonic(), 0.001), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _plan(options: TuneOptions, services: Services, shown: Shown) -> tuple[LoadJob, JobWorkers]:
    """Plan the load whose records are tried. Raises as a load does, before anything is written."""
    loaded = services.loaded
    if "-" in options.sources:
        raise UsageError("a trial reads its sources again and again: give files, not -")
    places = NO_PLACES
    if options.urlfile is not None:
        places = read_urlfile(options.urlfile, options.sources)
        options = replace(options, sources=(*options.sources, *places))
    load, notes = as_unloaded(options)
    for line in notes:
        (shown.warn if line.startswith("warning") else shown.say)(line)
    request = load_request(load, loaded)
    spool = spool_path(loaded.settings.state_dir, services.job_id)
    files = spool_sources(load.sources, request.dialect, request.file_format, spool, places)
    ledger = standing_ledger(services)
    with Visibility(ledger) as visibility:
        visibility.start(files)
        session = services.opening.session()
        workers = choose_workers(services, ledger, session, request.keyspace)
        if workers.warning:
            shown.warn(workers.warning)
        job = plan_load(request, files, session, loaded.settings, workers.slots)
        visibility.judge(workers.workers, shown.warn)
    for statement in left_behind(session.cluster.metadata, request.keyspace):
        shown.warn(f"a run that was killed left its scratch table: {statement};")
    return job, workers


def _table(
    stack: ExitStack,
    job: LoadJob,
    session: Session,
    options: TuneOptions,
    services: Services,
    run: str,
    ends_s: float,
) -> TableSchema:
    """Return the table of the trials: a scratch table that `stack` drops, or the job's own."""
    if options.in_place:
        _refuse_rows(session, job.table, options)
        return job.table
    scratch = ScratchTable(session, services.settings, job.table, run)
    stack.callback(scratch.drop, ends_s - LAST_S)
    stack.callback(_ignore_interrupts)
    return scratch.create()


def _start_workers(
    stack: ExitStack, trials: Trials, start: Setup, options: TuneOptions
) -> Sequence[int]:
    """Start workers of this command, if it has any; return the numbers of them to choose from."""
    counts: Sequence[int] = ()
    if start.workers:
        room = psutil.virtual_memory().available // WORKER_BYTES
        fit = max(int(room), start.workers)
        counts = counts_of_workers(usable_cores(), start.workers, options.workers, fit)
        trials.groups = WorkerGroups(trials.settings, trials.run, counts)
        stack.enter_context(trials.groups.running())
    stack.callback(trials.abandon)
    stack.callback(_ignore_interrupts)
    return counts


def _ignore_interrupts() -> None:
    """Take no Ctrl-C from here on: what is left is cleaning up, which is bounded."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


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


def _refuse_rows(session: Session, table: TableSchema, options: TuneOptions) -> None:
    """Raise `UsageError` if the table has a row and the user did not allow for that."""
    if options.overwrite:
        return
    keyspace, name = quote_identifier(table.keyspace), quote_identifier(table.table)
    key = quote_identifier(table.partition_key[0])
    if session.execute(f"SELECT {key} FROM {keyspace}.{name} LIMIT 1").one() is not None:
        raise UsageError(
            f"{table.name} has rows, and --in-place writes the sample's rows over those of the "
            "same keys: leave --in-place out to use a scratch table, or add --overwrite"
        )


def _first_loads(
    trials: Trials, start: Setup, counts: Sequence[int], stops_s: float, *, repeat: bool
) -> tuple[Sample, float, Space]:
    """Load the beginning until all is warm, and choose by that the sample, the seconds of a trial,
    and the space.

    Raises `ClusterError` if no row was written.
    """
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
        # Their units are files or row groups, whatever is set.
        space = {**space, Knob.UNIT_BYTES: [start.unit_bytes]}
    return sample, seconds, space


def _search(
    found: Found,
    trials: Trials,
    counts: Sequence[int],
    stops_s: float,
    shown: Shown,
    *,
    repeat: bool,
) -> None:
    """Run the search to its end; `found` is complete at any time."""
    if trials.groups is not None:
        trials.groups.wait(trials.ledger)
    sample, seconds, space = _first_loads(trials, found.best, counts, stops_s, repeat=repeat)
    shown.say(f"  {_sample_text(sample)}, about {seconds:.1f} s")
    began_s = time.monotonic()
    steps = search(found, space, lambda: (time.monotonic() - began_s) / (stops_s - began_s))
    said = 0
    rate: float | None = None
    while True:
        try:
            setup = next(steps) if rate is None else steps.send(rate)
        except StopIteration:
            break
        for race in found.races[said : len(found.races) - 1]:
            if line := race_line(race):
                shown.say(lines_of(wrapped(line, "  ", "    ")))
            said += 1
        rate = trials.measure(setup, sample, seconds)


def _sample_text(sample: Sample) -> str:
    size = bytes_text(sample.bytes_count)
    if not sample.records:
        return f"a trial is the beginning of {count_text(len(sample.sources), 'file')}, {size}"
    again = f" (the files {sample.passes} times)" if sample.passes > 1 else ""
    return f"a trial is {count_text(sample.records, 'record')}, {size}{again}"


def _evidence(
    found: Found,
    trials: Trials,
    source: SourceRate,
    round_trip_ms: float,
    workers: JobWorkers,
) -> Evidence:
    best = median_figures(trials.figures[found.best])
    own = trials.groups is not None
    return Evidence(
        rate=best.rate,
        bytes_s=best.bytes_count / max(best.seconds, 0.001),
        workers=found.best.workers or workers.slots,
        cpu_us_per_row=best.cpu_us_per_row or 0.0,
        p50_ms=best.p50_ms,
        p99_ms=best.p99_ms,
        round_trip_ms=round_trip_ms,
        source=source,
        retries=best.retries,
        cores=usable_cores() if own else None,
        busy=best.busy if own else None,
    )


def _round_trip_ms(session: Session) -> float:
    """Return the lowest time of a trivial request, when nothing else is under way."""
    lowest_s = float("inf")
    for _ in range(ROUND_TRIPS):
        began_s = time.perf_counter()
        session.execute("SELECT key FROM system.local")
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


def _report(found: Found, start: Setup, trials: Trials, evidence: Evidence, shown: Shown) -> None:
    verdict = judge(evidence)
    if shown.as_json:
        print_message(json_text(to_json(found, start, trials.figures, evidence, verdict)))
    else:
        print(lines_of(list(_report_lines(found, start, trials, evidence, verdict))))


def _report_lines(
    found: Found, start: Setup, trials: Trials, evidence: Evidence, verdict: Verdict
) -> Iterator[str]:
    yield from table_lines(found, trials.figures)
    yield ""
    yield from wrapped(f"{verdict.limit}: {verdict.reason}", " limit     ")
    for line in evidence_lines(evidence):
        yield f"           {line}"
    yield from wrapped(verdict.advice, " advice    ")
    changed = [knob for knob in Knob if found.best.value(knob) != start.value(knob)]
    if not changed:
        yield f" best      the settings as they are, {rate_text(evidence.rate)} rows/s"
    else:
        gain = "" if found.gain is None else f", {found.gain:.2f} times the rate of before"
        yield from wrapped(f"{setup_text(found.best, changed)}{gain}", " best      ")
    if start.workers == 0:
        yield from wrapped(
            "worker processes: those that run are not this command's, and --broker none starts "
            "some that are",
            " not tried ",
        )


def _settings_file(options: TuneOptions, services: Services) -> Path | None:
    """Return the file that the winner goes to; None: nowhere. Raises `UsageError` if it cannot be
    written."""
    if options.no_write:
        return None
    file = options.write or services.loaded.config_file or Path(FILE_NAME)
    check_replacing(str(file))
    return file


def _write(
    found: Found,
    evidence: Evidence,
    file: Path | None,
    options: TuneOptions,
    services: Services,
    shown: Shown,
) -> None:
    """Write what was compared and won into the settings file, with the evidence."""
    values = {
        str(knob): found.best.value(knob)
        for knob in Knob
        if knob in found.tried and (knob is not Knob.WORKERS or found.best.workers)
    }
    if file is None:
        shown.say(lines_of([" not written:", *section_text(values).splitlines()]))
        return
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    text = edited(before, values, {"load": _comments(found, evidence, options)})
    with whole_file(str(file)) as out:
        out.write(text.encode())
    shown.say(f" wrote     {file}")
    for key in values:
        origin = services.loaded.origins[key]
        if origin.startswith("env"):
            shown.warn(f"warning: {origin} overrides {key} of the file")


def _comments(found: Found, evidence: Evidence, options: TuneOptions) -> Sequence[str]:
    verdict = judge(evidence)
    gain = "" if found.gain is None else f", {found.gain:.2f} times that of the settings before"
    lines = [
        f"by `ringhaul tune` on {time.strftime('%Y-%m-%d')}, for {options.table}: "
        f"{rate_text(evidence.rate)} rows/s{gain}",
        f"limit: {verdict.limit}: {verdict.reason}",
        *map(race_line, found.races),
    ]
    return [part for line in filter(None, lines) for part in wrapped(line, "", "  ")]

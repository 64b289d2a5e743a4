"""Run one unit of a lookup or an exec: rows of values to requests, responses to part files.

A plain function of its inputs, like `scan.run.run_read_unit`. Values that cannot be bound, rows
that the server refuses, rows whose condition did not hold and keys without a row are logged with
their place in the input. The last two kinds may be nearly all rows: the unit only logs its share.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from cassandra.cluster import Session

from ringhaul.breadcrumb import TRAIL, Loss
from ringhaul.cluster.connect import consistency_level
from ringhaul.cluster.prepared import Marked
from ringhaul.dataplane.connection import WireUnsupported
from ringhaul.dataplane.pacing import UNTHROTTLED, Pacing, Throttle
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.output.parts import PartInfo, PartSet
from ringhaul.process_memory import rss_peak_bytes
from ringhaul.records.careful_blocks import careful_blocks
from ringhaul.records.reading import check_source, read_unit
from ringhaul.records.rejects import Reject, RejectLog
from ringhaul.records.rows import EncodedRows, RowEncoder
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.exec import Bound, Exec, Statement, bind_texts
from ringhaul.statements.in_order import Ints
from ringhaul.statements.job import SpanUnit, StatementJob
from ringhaul.statements.lookup import Lookup, LookupHooks, LookupPlan
from ringhaul.statements.options import ReadOptions, RequestHooks, RequestStats
from ringhaul.statements.parameter_ranges import parse_span, rows_between
from ringhaul.statements.result import join_extra

#: Rows of values from ranges that are bound together.
SPAN_BLOCK_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class StatementTarget:
    """The destination of a unit's requests; a worker process keeps it from unit to unit."""

    session: Session
    plane: ConnectionPool
    statement: Statement
    retries_max: int
    request_timeout_s: float


@dataclass(frozen=True, kw_only=True)
class StatementHooks:
    """Callbacks of one unit; see `units.account.UnitHooks`."""

    tick: Callable[[int, int, int], None]
    #: Limits of the complete job, in rows of values and bytes of requests and responses.
    throttle: Throttle = UNTHROTTLED
    #: Places where earlier attempts of the unit were lost.
    losses: Sequence[Loss] = ()


@dataclass(kw_only=True)
class StatementOutcome:
    """The outcome of a unit, before it is committed."""

    records: int = 0
    missing: int = 0
    not_applied: int = 0
    not_kept: int = 0  #: part of `missing` and `not_applied` that the log does not list
    stats: RequestStats
    #: Rows of values, or keys, that could not be bound or requested, or that the server refused. A
    #: key that was given twice counts twice.
    rejected: int = 0
    log: RejectLog
    parts: list[PartInfo]
    undo: Callable[[], None] | None = None  #: removes the parts
    elapsed_ms: int = 0
    cpu_ms: int = 0
    rss_bytes_max: int = 0

    @property
    def extra(self) -> bytes:
        """The bytes to commit besides the numbers."""
        return join_extra(self.parts, self.log.blob())

    @property
    def latencies(self) -> Counter[int]:
        return self.stats.latencies


def run_statement_unit(
    spec: str,
    number: int,
    job_id: str,
    job: StatementJob,
    target: StatementTarget,
    hooks: StatementHooks,
) -> StatementOutcome:
    """Run the requests of one unit. Returns when every row of values is accounted for.

    Raises `SourceChanged`, `SourceCorrupt` and `ClusterError` (terminal), `RequestFailed` and
    `OutputUnavailable` (transient), and whatever `hooks.tick` raises to stop it.
    """
    return _StatementUnit(spec, job, target, hooks).run(number, job_id)


def _withdraw(files: PartSet) -> None:
    # Files that cannot be removed now are orphans, which are removed at the end of the job.
    with suppress(OutputUnusable, OutputUnavailable):
        files.withdraw()


class _StatementUnit:
    def __init__(
        self, spec: str, job: StatementJob, target: StatementTarget, hooks: StatementHooks
    ) -> None:
        self._spec, self._job, self._hooks = spec, job, hooks
        self._listed_left = job.listed_max(spec)
        self._outcome = StatementOutcome(stats=RequestStats(), log=RejectLog(), parts=[])
        self._places: list[tuple[int, EncodedRows]] = []
        self._pacing, self._bytes_paid = Pacing(hooks.throttle, self._tick), 0
        self._engine = self._open(target)
        self._outcome.stats = self._engine.stats

    def run(self, number: int, job_id: str) -> StatementOutcome:
        started, cpu_started = time.monotonic(), time.process_time()
        job, outcome = self._job, self._outcome
        files = None
        if job.output is not None:
            files = PartSet(
                job.output.url,
                job.output.format,
                [name for name, _ in job.result],
                [kind for _, kind in job.result],
                job=job_id,
                unit=number,
                attempt=secrets.token_hex(3),
                rows_max=job.output.rows_max,
                bytes_max=job.output.bytes_max,
            )
        try:
            for rows in self._engine.rows(self._values(), ordered=job.ordered):
                if files is not None:
                    files.write(rows.batch)
                self._tick()
            self._throttle(0)  # pay for the last responses
            if not job.spans:
                check_source(LoadUnit.unpack(self._spec), job.values)
            if files is not None:
                files.roll()
                outcome.parts, outcome.undo = list(files.parts), partial(_withdraw, files)
        except BaseException as error:
            if files is not None:
                _withdraw(files)
            if isinstance(error, WireUnsupported):
                raise error.without_fallback(job.kind) from error
            raise
        finally:
            self._engine.close()
        outcome.elapsed_ms = int((time.monotonic() - started) * 1000)
        outcome.cpu_ms = int((time.process_time() - cpu_started) * 1000)
        outcome.rss_bytes_max = rss_peak_bytes()
        return outcome

    def _open(self, target: StatementTarget) -> Exec | Lookup:
        job = self._job
        options = ReadOptions(
            consistency=consistency_level(job.consistency),
            timestamp_us=job.timestamp_us,
            retries_max=target.retries_max,
            request_timeout_s=target.request_timeout_s,
        )
        if job.table is None:
            hooks = RequestHooks(
                tick=self._tick,
                throttle=self._throttle,
                on_reject=self._rejected,
                on_doubt=self._doubted,
                leave=self._pacing.leave,
                on_not_applied=self._not_applied,
                place=self._place,
            )
            return Exec(target.session, target.plane, target.statement, options, hooks)
        plan = LookupPlan.of(job.table, job.key, job.columns)
        lookup_hooks = LookupHooks(
            tick=self._tick,
            throttle=self._throttle,
            on_reject=self._rejected,
            on_doubt=self._doubted,
            leave=self._pacing.leave,
            on_missing=self._missing,
        )
        prepared = target.statement.prepared
        return Lookup(target.session, target.plane, plan, prepared, options, lookup_hooks)

    def _tick(self) -> None:
        stats = self._outcome.stats
        self._hooks.tick(stats.answered, self._outcome.rejected, stats.bytes)

    def _throttle(self, rows: int) -> None:
        bytes_so_far = self._outcome.stats.bytes
        self._pacing.pay(rows, bytes_so_far - self._bytes_paid)
        self._bytes_paid = bytes_so_far

    def _values(self) -> Iterator[Bound]:
        if self._job.spans:
            return self._of_spans(SpanUnit.unpack(self._spec))
        return self._of_source(LoadUnit.unpack(self._spec))

    def _of_spans(self, unit: SpanUnit) -> Iterator[Bound]:
        job = self._job
        spans = [parse_span(text) for text in job.spans]
        order = [[span.name for span in spans].index(name) for name in job.markers]
        marked = self._marked()
        for first in range(unit.first, unit.end, SPAN_BLOCK_ROWS):
            end = min(first + SPAN_BLOCK_ROWS, unit.end)
            TRAIL.at("convert", " ".join(job.spans), first + 1, first, end)
            columns = rows_between(spans, first, end)
            texts = [columns[place].cast(pa.binary()) for place in order]
            numbers = np.arange(first, end, dtype=np.int64)
            bound, bad = bind_texts(marked, numbers, texts, job.values.text)
            TRAIL.stage("ask")
            self._outcome.records += end - first
            self._outcome.rejected += len(bad)
            for number, name, reason in bad:
                self._outcome.log.add([self._reject_of_span(number, "cast", name, reason)])
            if len(bound.numbers):
                yield bound

    def _of_source(self, unit: LoadUnit) -> Iterator[Bound]:
        job = self._job.values
        source = job.sources[unit.source]
        self._encoder = RowEncoder(job, source, source_ordinal=unit.source_ordinal)
        order = [source.columns.index(name) for name in self._job.markers]
        path = source.file.path
        TRAIL.at("read", path, unit.first_line)
        for block, loss in careful_blocks(read_unit(unit, job, self._tick), self._hooks.losses):
            first, line = block.position.ordinal, block.position.line
            end = first + block.records_count
            TRAIL.at("convert", path, line, first, end)
            if loss is None:
                rows, refused, records = self._encoder.encode(block)
            else:
                parts = list(self._encoder.left_out(block, loss))
                refused = [reject for part in parts for reject in part.rejects]
                rows, records = [], len(refused)
            TRAIL.stage("ask")
            self._outcome.records += records
            self._outcome.rejected += len(refused)
            self._outcome.log.add(refused)
            for found in rows:  # at most one: no column is static here
                self._places.append((first, found))
                yield Bound(first + found.records, [found.columns[place] for place in order])
                self._forget_settled()
            # The last requests are on their way while more is read, and afterwards.
            TRAIL.at("ask", path, unit.first_line, unit.first_ordinal, end)
            if end >= self._encoder.ordinal_end:
                return

    def _marked(self) -> Marked:
        table = self._job.values.table
        return Marked(table.column_names, tuple(table.types.values()))

    def _forget_settled(self) -> None:
        """Drop the blocks once none of their rows can be rejected any more."""
        stats, outcome = self._outcome.stats, self._outcome
        settled = stats.answered + stats.in_doubt + outcome.rejected
        if settled == outcome.records:
            self._places.clear()

    def _rejected(self, number: int, reason: str) -> None:
        # Requests are counted differently: one may be for many keys, and a null key is never
        # requested.
        self._outcome.rejected += 1
        self._log(number, "write" if self._job.table is None else "read", reason)

    def _doubted(self, number: int, reason: str) -> None:
        self._log(number, "doubt", f"it is unknown whether it was applied: {reason}")

    def _missing(self, numbers: Ints) -> None:
        self._outcome.missing += len(numbers)
        for number in numbers[: self._listed(len(numbers))].tolist():
            self._log(number, "missing", "no row has this key")

    def _not_applied(self, number: int, reason: str) -> None:
        self._outcome.not_applied += 1
        if self._listed(1):
            self._log(number, "condition", reason)

    def _listed(self, count: int) -> int:
        """Return how many of `count` more rows may be listed."""
        listed = min(count, self._listed_left)
        self._listed_left -= listed
        self._outcome.not_kept += count - listed
        return listed

    def _log(self, number: int, stage: str, reason: str) -> None:
        self._outcome.log.add([self._reject(number, stage, reason)])

    def _place(self, number: int) -> str:
        reject = self._reject(number, "write", "")
        return f"{reject.file}, line {reject.line}"

    def _reject(self, number: int, stage: str, reason: str) -> Reject:
        if self._job.spans:
            return self._reject_of_span(number, stage, None, reason)
        first, rows = next(pair for pair in reversed(self._places) if pair[0] <= number)
        return self._encoder.reject(rows.block, number - first, stage, None, reason)

    def _reject_of_span(self, number: int, stage: str, column: str | None, reason: str) -> Reject:
        spans = [parse_span(text) for text in self._job.spans]
        values = [texts[0].as_py() for texts in rows_between(spans, number, number + 1)]
        text = ",".join(values)
        return Reject(
            file=" ".join(self._job.spans),
            offset=number,
            length=len(text),
            line=number + 1,
            stage=stage,
            column=column,
            reason=reason,
            data=text.encode(),
        )

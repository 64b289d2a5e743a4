"""`concurrent`: single statements through the driver's own `execute_concurrent`.

The plain pattern of the driver's documentation, kept as the alternative that uses nothing of
ringhaul's except the encoded values.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.concurrent import execute_concurrent
from cassandra.query import UNSET_VALUE, BoundStatement
from numpy.typing import NDArray

from ringhaul.cluster.connect import Reconnecting
from ringhaul.cql.cells import NULL_LENGTH, Cells
from ringhaul.dataplane import latency
from ringhaul.dataplane.base import (
    FAILED_ALONE,
    RequestFailed,
    RequestOptions,
    Target,
    exhausted_error,
)
from ringhaul.dataplane.blame import Blame, Cause, Controlled, Ruling, Suspect, cause_of
from ringhaul.dataplane.control import Control
from ringhaul.dataplane.distance import Distance
from ringhaul.dataplane.pacing import TICK_S
from ringhaul.dataplane.retry import Verdict, backoff_s, classify, message
from ringhaul.dataplane.routing import Routing
from ringhaul.errors import ClusterError
from ringhaul.load.write.base import WriterHooks
from ringhaul.records.rows import EncodedRows, bound_values

#: The driver does not say through which node a row went.
_ANY_HOST = ""
#: Rows handed to one `execute_concurrent`, more if the nodes are far: bounds what it still sends
#: after a stop.
SLICE_ROWS = 1000
#: The same for each request in flight if the job limits those, so that a change of the limit takes
#: effect soon.
SLICE_ROWS_PER_REQUEST = 32


class ConcurrentWriter:
    """The writer that the module describes; its interface is `base.Writer`."""

    def __init__(self, target: Target, options: RequestOptions, hooks: WriterHooks) -> None:
        session, prepared = target.session, target.prepared
        self.stats = hooks.stats
        self._session = session
        self._reconnecting = Reconnecting(session)
        self._prepared = prepared
        self._options = options
        self._hooks = hooks
        self._jitter = random.Random()
        self._routing = Routing(session, target.keyspace)
        self._blame = Blame(options.retries_max)
        self._control = Control(session, prepared, options.consistency)
        self._distance = Distance()  # to the nearest node
        self._ticked_at = time.monotonic()
        self._profile = session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, request_timeout=options.request_timeout_s
        )

    def write(self, rows: EncodedRows) -> None:
        statements = [
            self._bind(values) for values in zip(*map(_values, rows.columns), strict=True)
        ]
        sets = self._routing.assign(rows.keys)[0]
        first = 0
        while first < len(statements):
            leave = self._hooks.leave()
            count = min(
                self._distance.reach(SLICE_ROWS),
                leave.rows,
                SLICE_ROWS_PER_REQUEST * leave.requests,
            )
            part = range(first, min(first + count, len(statements)))
            self._hooks.throttle(len(part))
            self._write_slice(rows, statements, part, sets)
            first = part.stop

    def flush(self) -> None:
        """`write` returns only when every row was answered."""

    def close(self) -> None:
        """Nothing outlives `write`."""

    def _bind(self, values: tuple[object, ...]) -> BoundStatement:
        bound = BoundStatement(self._prepared, consistency_level=self._options.consistency)
        bound.values = list(values)
        return bound

    def _write_slice(
        self,
        rows: EncodedRows,
        statements: list[BoundStatement],
        pending: range | list[int],
        sets: NDArray[np.int32],
    ) -> None:
        options = self._options
        far = self._distance.reach(options.requests_in_flight_max)
        in_flight = min(far, options.requests_far_max, self._hooks.leave().requests)
        suspects: dict[int, Suspect] = {}
        for tries in itertools.count():
            if tries:
                self.stats.retries += len(pending)
                self._reconnecting.begin()
                self._date_later(rows, statements, pending, tries)
                self._pause(backoff_s(tries, self._jitter))
            started = time.perf_counter()
            # Consumed one by one, so that the lease is renewed while a node lets requests time out.
            results = execute_concurrent(
                self._session,
                [(statements[row], ()) for row in pending],
                concurrency=in_flight,
                raise_on_first_error=False,
                results_generator=True,
                execution_profile=self._profile,
            )
            failed = []
            written = 0
            for row, (success, outcome) in zip(pending, results, strict=True):
                self._tick()
                if row == pending[0]:
                    self._distance.saw(time.perf_counter() - started, time.monotonic())
                if success:
                    written += 1
                    self.stats.written += 1
                    self._blame.took(_ANY_HOST, int(sets[row]), time.monotonic())
                    continue
                verdict = classify(outcome)
                if verdict is Verdict.FATAL:
                    raise ClusterError(f"the cluster refuses all writes: {message(outcome)}")
                if verdict is Verdict.ROW:
                    self._hooks.on_reject(rows, row, message(outcome))
                    continue
                number, cause = int(sets[row]), cause_of(outcome)
                if cause is not Cause.MOMENT:
                    suspects[row] = self._blame.suspect(
                        suspects.get(row), _ANY_HOST, number, (id(rows), row), 1, time.monotonic()
                    )
                failed.append((row, outcome))
            failed = [
                pair for pair in failed if not self._settled(rows, *pair, sets, suspects, tries)
            ]
            # `execute_concurrent` reports no time per statement, only the mean over those in flight
            # together can be computed.
            share = in_flight / len(pending)
            mean_us = int((time.perf_counter() - started) * 1e6 * min(share, 1.0))
            self.stats.latencies[latency.bucket(mean_us)] += written
            if not failed:
                return
            pending = [row for row, _ in failed]

    def _settled(
        self,
        rows: EncodedRows,
        row: int,
        error: BaseException,
        sets: NDArray[np.int32],
        suspects: Mapping[int, Suspect],
        tries: int,
    ) -> bool:
        """Return whether a failed row is to blame, and was rejected. Raises if the cluster is."""
        number, suspect, cause = int(sets[row]), suspects.get(row), cause_of(error)

        def control() -> Controlled:
            self._tick()
            return self._control.take(bound_values(rows, row))

        if cause is Cause.UNCLEAR:
            assert suspect is not None
            ruling = self._blame.rule(suspect, number, control)
            if ruling in (Ruling.CLUSTER, Ruling.OPEN):
                place = self._hooks.place(rows, row)
                raise exhausted_error(ruling, "a write", suspect.times, message(error), place)
            if ruling is Ruling.AGAIN:
                return False
        elif cause is Cause.MOMENT or not self._blame.rule_at_last(
            suspect, self._options.retries_max - tries, number, control
        ):
            if tries < self._options.retries_max:
                return False
            raise RequestFailed(
                f"a write failed {tries + 1} times, the last time with: {message(error)}"
            )
        assert suspect is not None
        self._hooks.on_reject(rows, row, f"{message(error)}; {FAILED_ALONE} {suspect.times} times")
        return True

    @staticmethod
    def _date_later(
        rows: EncodedRows, statements: list[BoundStatement], pending: Sequence[int], tries: int
    ) -> None:
        """Date repeated rows later, if they must not be written twice at the same time."""
        later = rows.later(tries)
        if later.timestamp_at is None:
            return
        timestamps = _values(later.columns[later.timestamp_at])
        for row in pending:
            statements[row].values[later.timestamp_at] = timestamps[row]

    def _pause(self, pause_s: float) -> None:
        due = time.monotonic() + pause_s
        while (left := due - time.monotonic()) > 0:
            time.sleep(min(left, TICK_S))
            self._tick()

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._ticked_at >= TICK_S:
            self._ticked_at = now
            self._hooks.tick()


def _values(cells: Cells) -> list[object]:
    """Return a column as `BoundStatement.values` has it: bytes, None for null, or unset."""
    values: list[object] = cells.values.cast(pa.binary()).to_pylist()
    for row in (cells.lengths < 0).nonzero()[0]:
        values[row] = None if cells.lengths[row] == NULL_LENGTH else UNSET_VALUE
    return values

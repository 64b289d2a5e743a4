"""The ledger of jobs, through which every change to a job is made.

Each method runs one script, so each is atomic, and each may be repeated (see `connection`). For
each unit a worker calls `claim`, `renew` between blocks, then `commit` or `release`, then `issue`.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from ringhaul.breadcrumb import Loss
from ringhaul.causes import CANCELLED
from ringhaul.errors import UsageError
from ringhaul.ledger import keys
from ringhaul.ledger.answers import (
    Claimed,
    Commit,
    Issued,
    Lease,
    Refusal,
    Renewed,
    Reserved,
    Swept,
)
from ringhaul.ledger.audit import JobDamaged, unreadable
from ringhaul.ledger.connection import PATIENCE_MS, Caller
from ringhaul.ledger.history import BY_COMMAND
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.pace import NO_PACE, Limits, Pace
from ringhaul.ledger.reading import OWN_FIELDS, JobMissing, JobOver, JobTaken, Reader
from ringhaul.ledger.shares import NORMAL, WEIGHTS
from ringhaul.ledger.states import RESUMABLE, JobState

#: Most units that one `issue` returns or one `sweep` examines: limits how long a script runs.
UNITS_PER_SCRIPT_MAX = 1000
#: Units that a command appends by one `add_units`.
BATCH_UNITS = 500
#: Delay before a declined unit is issued again that workers of another cluster or version can do.
OTHERS_DELAY_MS = 3000
_REASON_CHARS_MAX = 500


def new_token() -> str:
    """Return a new name for an attempt; every claim of a message needs its own name."""
    return secrets.token_hex(8)


class Ledger(Reader):
    """Reads and changes jobs.

    `starts_max`, `fails_max`, `unclaimed_ms` are written into the jobs that this object creates;
    scripts read them there, so that all workers agree.

    Every method raises LedgerUnavailable (transient) if Redis does not serve within `patience_ms`,
    and LedgerRefused if it does not accept the user.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        starts_max: int = 3,
        fails_max: int = 5,
        unclaimed_ms: int = 30_000,
        patience_ms: int = PATIENCE_MS,
        scripts: Mapping[str, str] | None = None,
    ) -> None:
        """`starts_max`: attempts of a unit that may die before it is quarantined.

        `fails_max`: times that a unit may be released with blame; one more fails the job.
        `unclaimed_ms`: a unit not claimed this long after it was issued is issued again.
        `patience_ms`, `scripts`: see `Caller`.
        """
        self.caller = Caller(client, patience_ms=patience_ms, scripts=scripts)
        self.starts_max = starts_max
        self.fails_max = fails_max
        self.unclaimed_ms = unclaimed_ms

    def with_patience(self, patience_ms: int) -> "Ledger":
        """Return the same ledger with another patience, for callers with other work to do."""
        return Ledger(
            self.caller.client,
            starts_max=self.starts_max,
            fails_max=self.fails_max,
            unclaimed_ms=self.unclaimed_ms,
            patience_ms=patience_ms,
        )

    # The producer's side.

    def create(
        self,
        job: str,
        labels: Mapping[str, str],
        spec_json: str,
        *,
        error_limit: ErrorLimit | None = None,
        starts_max: int | None = None,
        pace: Pace = NO_PACE,
        priority: str = NORMAL,
        by: str = BY_COMMAND,
    ) -> None:
        """Create a running job without units. Idempotent.

        `labels` are shown by `status`. `starts_max` overrides this ledger's for the job (1 for
        writes that must not be repeated). `priority`: one of `shares.WEIGHTS`. `by`, here and in
        other methods: who does that, for the job's history.

        Raises:
          UsageError: the id is malformed, or belongs to another job.
        """
        clash = OWN_FIELDS & labels.keys()
        if clash:
            raise ValueError(f"labels with names that the ledger uses: {sorted(clash)}")
        limit = error_limit or ErrorLimit()
        meta: dict[str, str | int] = {
            **labels,
            "records_max": limit.records_max,
            "per_million_max": limit.per_million_max,
            "starts_max": self.starts_max if starts_max is None else starts_max,
            "fails_max": self.fails_max,
            "unclaimed_ms": self.unclaimed_ms,
            "pace": pace.pack(),
            "priority": priority,
        }
        pairs: list[str | int] = [word for pair in meta.items() for word in pair]
        answer = self._script("create", job, spec_json, by, *pairs)
        if answer == -1:
            raise JobTaken(f"the job id {job} is taken by another job")
        if answer == -2:
            raise JobTaken(
                f"the job id {job} belongs to a job that Redis lost parts of: use another id"
            )
        self._list(job)

    def add_units(self, job: str, epoch: int, first_unit: int, specs: Sequence[str]) -> int | None:
        """Append units; existing units are left alone, so a call may be repeated.

        Returns the number of units the job has now. If it is less than `first_unit`, earlier units
        are missing (Redis came back without the end of its log) and nothing was appended: add again
        from there. None: the job does not run in this epoch.

        Specs of up to 64 bytes are stored compactly.
        """
        count = int(self._script("add_units", job, epoch, first_unit, *specs))
        if first_unit == 0:  # a worker may have to start for them; sweeps count later units
            count_open_units(self.caller)
        return None if count < 0 else count

    def seal(self, job: str, epoch: int, units_count: int) -> int | None:
        """Mark all `units_count` units as added; the job ends when no unit is left.

        Returns the number of units the job has. If it is not `units_count` the job is not sealed:
        add the missing units and seal again. None: the job does not run in this epoch.
        """
        count = int(self._script("seal", job, epoch, units_count))
        count_open_units(self.caller)
        return None if count < 0 else count

    def cancel(self, job: str, *, by: str = BY_COMMAND, cause: str = CANCELLED) -> JobState:
        """End a running job; workers stop at their next block. Returns the state after it.

        `cause`: `INTERRUPTED` if its command ends before a user decides about the job.
        """
        return self._end(job, JobState.CANCELLED, "", by, cause=cause)

    def fail(
        self, job: str, reason: str, *, epoch: int | None = None, by: str = "", cause: str = ""
    ) -> JobState:
        """End a running job that cannot continue. Returns the state after it.

        `epoch`: end the job only in this epoch; a job that was resumed since continues. `cause`:
        see `ringhaul.causes`.
        """
        return self._end(job, JobState.FAILED, reason, by, epoch, cause=cause)

    def resume(
        self, job: str, *, error_limit: ErrorLimit | None = None, by: str = BY_COMMAND
    ) -> int:
        """Run an ended job's units that are not done. Returns the new epoch.

        The rejects so far no longer count against the limit. If nothing is left to do, the job ends
        again at once. If splitting was interrupted, the job needs its missing units and a `seal`,
        as after creation.

        Raises:
          JobMissing; JobDamaged: part of it was lost; UsageError: the job runs, or is in a final
            state.
        """
        before = self.status(job)
        self.check(job)
        if before.state not in RESUMABLE:
            raise JobOver(f"job {job} cannot be resumed: it is {before.state}")
        limit: tuple[str | int, str | int] = ("", "")
        if error_limit is not None:
            limit = (error_limit.records_max, error_limit.per_million_max)
        epoch, state = self._script("resume", job, before.epoch, *limit, by)
        if epoch == -1:  # lost just now
            raise JobDamaged(job, ["the units marked as done do not add up"])
        if epoch != before.epoch + 1:
            raise JobOver(f"job {job} was resumed by another command: it is {state.decode()}")
        self._list(job)
        count_open_units(self.caller)
        return int(epoch)

    def pause(self, job: str, *, by: str = BY_COMMAND) -> JobState:
        """Pause a running job: no unit is issued or claimed, and workers release those they have.

        Returns the job's state; RUNNING means that it is paused now. Raises JobMissing.
        """
        return self._state_after("pause", job, by)

    def may_publish(self, job: str, token: str, *, lease_ms: int, leave_ms: int = 0) -> int:
        """Acquire the right to write the manifest or the result of an ended job.

        One caller at a time has it, for `lease_ms`, until `note_published`. Returns 0: write it
        now; -1: it was written already, or the job has not ended; else the ms after which to try
        again, with the same `token`. `leave_ms`: this long after the job's end, it is left to
        others.
        """
        return int(self._script("publish", job, token, lease_ms, leave_ms))

    def not_published(self, job: str, token: str) -> None:
        """Release the right to write after a failure, so that others can try."""
        self._script("publish", job, token, 0, 0)

    def note_published(self, job: str) -> None:
        """Record that the manifest or the result of an ended job was written."""
        self._script("published", job)

    def unpause(self, job: str, *, by: str = BY_COMMAND) -> bool:
        """Continue a paused job. Returns whether it was paused. Raises JobMissing."""
        answer: int = self._script("unpause", job, by)
        if answer < 0:
            raise JobMissing(job)
        count_open_units(self.caller)
        return answer == 1

    def throttle(self, job: str, pace: Pace, *, by: str = BY_COMMAND) -> JobState:
        """Replace the pace of a running job.

        Returns the job's state: if it runs, the pace is set. Raises JobMissing.
        """
        words = str(pace) or "no limits"
        return self._state_after("throttle", job, pace.pack(), by, words)

    def priority(self, job: str, priority: str, *, by: str = BY_COMMAND) -> JobState:
        """Replace the priority of a running job, one of `shares.WEIGHTS`.

        Returns the job's state: if it runs, the priority is set. Raises JobMissing.
        """
        if priority not in WEIGHTS:
            raise UsageError(f'no priority "{priority}": give one of {", ".join(WEIGHTS)}')
        return self._state_after("priority", job, priority, by)

    def make_durable(self, timeout_ms: int = 2000) -> bool:
        """Wait until this client's writes are on the server's disk.

        Returns False if that took longer, or if the server has no append-only file. Worth the wait
        (up to a second) before a producer that will not come back says "detached".
        """
        try:
            numbers: list[int] = self.caller.command("WAITAOF", 1, 0, timeout_ms)
        except redis.ResponseError:
            return False
        return numbers[0] >= 1

    # Producer and worker.

    def issue(self, job: str, window: int) -> Issued:
        """Return units to publish now, so that at most `window` are issued or leased."""
        epoch, *labels = self._script("issue", job, window, UNITS_PER_SCRIPT_MAX)
        queue, kind, traceparent = (label.decode() for label in labels[:3])
        return Issued(epoch, labels[3:], queue, kind, traceparent)

    def sweep(self, job: str) -> Swept:
        """Let units be issued again whose lease expired or whose message was lost."""
        state, expired, unclaimed = self._script("sweep", job, UNITS_PER_SCRIPT_MAX)
        return Swept(JobState(state.decode()) if state else None, expired, unclaimed)

    # The worker's side.

    def claim(
        self,
        job: str,
        unit: int,
        epoch: int,
        token: str,
        lease_ms: int,
        *,
        created_ms: int | None = None,
    ) -> Claimed | Refusal:
        """Lease a unit for `lease_ms`. Repeated with the same token, it returns the same attempt.

        `created_ms`: creation time of the expected job, from `job_made`: an id may be reused once
        its job is forgotten.
        """
        meant = "" if created_ms is None else created_ms
        word, *rest = self._script("claim", job, unit, epoch, token, lease_ms, meant)
        if word != b"CLAIMED":
            return Refusal(word.decode())
        attempt, spec, pace, running, now_ms = rest
        return Claimed(attempt, spec.decode(), _limits(pace, running, now_ms), now_ms)

    def decline(
        self, job: str, unit: int, epoch: int, *, delay_ms: int = 0, reason: str = ""
    ) -> Lease:
        """Give back the unit of a message that this worker cannot process, to be issued again.

        `reason` is shown while the job has no unit in progress, until the next claim.
        """
        words = reason[:_REASON_CHARS_MAX]
        return Lease(self._script("decline", job, unit, epoch, delay_ms, words).decode())

    def renew(
        self,
        job: str,
        unit: int,
        token: str,
        lease_ms: int,
        live: Live | None = None,
        trouble: str = "",
    ) -> Renewed:
        """Extend the lease to `lease_ms` from now, and report progress and `trouble`.

        `live`: what this attempt has done so far; `trouble`: why it makes no progress.
        """
        progress = live.pack() if live else ""
        words = trouble[:_REASON_CHARS_MAX]
        word, *limits = self._script("renew", job, unit, token, lease_ms, progress, words)
        return Renewed(Lease(word.decode()), _limits(*limits))

    def checkpoint(self, job: str, unit: int, token: str, cursor: bytes) -> Lease:
        """Save this attempt's position durably, so that the next attempt can continue from it."""
        return Lease(self._script("checkpoint", job, unit, token, cursor).decode())

    def reserve(self, job: str, unit: int, token: str, rows: int, limit: int) -> Reserved:
        """Reserve rows of the LIMIT for a unit that has or wants `rows`, for later attempts too."""
        word, has, left = self._script("reserve", job, unit, token, rows, limit)
        return Reserved(Lease(word.decode()), has, left)

    def commit(
        self,
        job: str,
        unit: int,
        epoch: int,
        token: str,
        result: str,
        totals: Mapping[str, int],
        latencies: Mapping[str, int] | None = None,
        extra: bytes = b"",
    ) -> Commit:
        """Count a finished unit. Only the first commit of a unit counts, by any attempt.

        `totals` are added to the job's; `rows` and `rejected` among them are records and count
        towards the job's limit of errors. `latencies` are counts by bucket. `extra`: see `extras`.
        """
        counts = [word for pair in totals.items() for word in pair]
        counts += [word for pair in (latencies or {}).items() for word in pair]
        return Commit(
            self._script("commit", job, unit, epoch, token, result, extra, len(totals), *counts)
        )

    def release(
        self,
        job: str,
        unit: int,
        token: str,
        reason: str = "",
        *,
        blamed: bool = False,
        delay_ms: int = 0,
        fatal: bool = False,
        cause: str = "",
    ) -> Lease:
        """Give the unit back unfinished, to be retried after `delay_ms`.

        The attempt does not count as a start. `blamed`: whether the unit itself is at fault (not a
        shutdown or an outage); more than `fails_max` such faults fail the job with `reason`.
        `fatal`: whether the job fails at once. `cause`: the cause of the failure (see
        `ringhaul.causes`). An attempt that has lost its unit changes nothing.
        """
        words = (reason[:_REASON_CHARS_MAX], int(blamed), delay_ms, int(fatal), cause)
        return Lease(self._script("release", job, unit, token, *words).decode())

    def stop(self, job: str, unit: int, token: str, live: Live, extra: bytes) -> Lease:
        """End the job because this unfinished attempt alone has too many rejects.

        `live`: what it did; `extra`: its rejects, kept until a resume. Totals include neither.
        """
        return Lease(self._script("stop", job, unit, token, live.pack(), extra).decode())

    def lost(
        self,
        job: str,
        unit: int,
        token: str,
        *,
        fatal: str = "",
        loss: Loss | None = None,
        epoch: int | None = None,
    ) -> Lease:
        """End the lease of an attempt whose process died, without waiting for it to expire.

        `fatal`: why the job cannot continue; it fails, unless the attempt had lost its unit before.
        `loss`: where the process was. If fewer records were processed together than at the last
        loss, the attempt does not count against the unit. The loss is recorded once per token, also
        for an attempt that had lost its unit, if `epoch` is current and the unit is not done.
        """
        words = fatal[:_REASON_CHARS_MAX]
        where = ("", 0, "") if loss is None else (loss.pack(), loss.together, loss.words)
        meant = "" if epoch is None else epoch
        return Lease(self._script("lost", job, unit, token, words, *where, meant).decode())

    def _script(self, name: str, job: str, *arguments: str | int | bytes) -> Any:
        try:
            return self.caller.script(name, keys.job_key(job, "meta"), *arguments)
        except redis.ResponseError as error:
            # Arguments are checked before, so a script fails because of a key's type or content.
            damage = unreadable(job, str(error))
            if damage is None:
                raise
            raise damage from error

    def _end(
        self,
        job: str,
        state: JobState,
        reason: str,
        by: str,
        epoch: int | None = None,
        *,
        cause: str,
    ) -> JobState:
        meant = "" if epoch is None else epoch
        words = (reason[:_REASON_CHARS_MAX], meant, by, cause)
        return self._state_after("end", job, state.value, *words)

    def _state_after(self, name: str, job: str, *arguments: str | int) -> JobState:
        """Run a script that returns the job's state. Raises JobMissing."""
        after: bytes = self._script(name, job, *arguments)
        if not after:
            raise JobMissing(job)
        count_open_units(self.caller)
        return JobState(after.decode())

    def _list(self, job: str) -> None:
        """Add the job to the lists that `jobs` and the sweep use.

        After its creation, and again on a repeat: a producer that died in between leaves at worst a
        job that no worker handles.
        """
        created_ms = self.status(job).created_ms
        self.caller.command("ZADD", keys.JOBS, created_ms, job)
        self.caller.command("SADD", keys.RUNNING, job)


def _limits(pace: bytes, running: int, now_ms: int) -> Limits:
    """Return the current limits of one of the running units."""
    return Pace.unpack(pace).at(now_ms).shared(running)

"""The ledger of jobs: the door through which every change of a job goes.

Each method is one script, so each is atomic, and each may be repeated (see `connection`). A worker
does, per unit: `claim`, `renew` between blocks, then `commit` or `release`, then `issue`.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import redis

from ringhaul.breadcrumb import Loss
from ringhaul.ledger import keys
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.connection import PATIENCE_MS, Caller
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.open_units import count_open_units
from ringhaul.ledger.pace import NO_LIMITS, NO_PACE, Limits, Pace
from ringhaul.ledger.reading import OWN_FIELDS, JobMissing, JobOver, JobTaken, Live, Reader
from ringhaul.ledger.shares import NORMAL
from ringhaul.ledger.states import RESUMABLE, JobState

#: Units in one answer of `issue`, or looked at by one `sweep`: bounds how long a script runs.
UNITS_PER_SCRIPT_MAX = 1000
_REASON_CHARS_MAX = 500
_ERROR_CHARS_MAX = 200
#: How a script ends that meets a key of another type, or text where a number belongs.
_UNREADABLE = re.compile(
    r"WRONGTYPE|hash value is not an integer|attempt to (?:compare|perform arithmetic|concatenate)"
    r"|attempt to call|number expected|bad argument|not an integer|value is not a valid float"
)


@dataclass(frozen=True)
class Claimed:
    """The unit is this attempt's until the lease runs out."""

    attempt: int  #: 1-based; counts starts that were not given back.
    spec: str
    limits: Limits = NO_LIMITS  #: On the job, and on what this unit may have in flight.
    at_ms: int = field(default=0, compare=False)  #: When that was, by Redis's clock.


class Refusal(Enum):
    """Why a claim got no unit. The message that led to it is to be dropped in every case."""

    OTHER = "OTHER"  #: The id is another job's than the one that was meant.
    STOP = "STOP"  #: The job does not run, or not in this epoch.
    DONE = "DONE"  #: The unit is committed.
    PAUSED = "PAUSED"  #: The job is paused; the unit is issued again when it goes on.
    BUSY = "BUSY"  #: Another attempt has it, or it will be issued again at its turn.
    BAD = "BAD"  #: The unit was given up.
    UNKNOWN = "UNKNOWN"  #: There is no such job or unit.


class Lease(Enum):
    """Whether an attempt still has its unit."""

    OK = "OK"
    PAUSE = "PAUSE"  #: The job is paused: `release` the unit, or finish it if that cannot be.
    LOST = "LOST"  #: Another attempt's, or done: drop the work.
    STOP = "STOP"  #: The job does not run any more: stop at the block's end, then `release`.
    GONE = "GONE"  #: There is no such job any more: Redis lost it. Drop the work.


class Renewed(NamedTuple):
    """What a renewal of a lease hands back."""

    lease: Lease
    limits: Limits = NO_LIMITS  #: On the job, and on what this unit may have in flight.


class Commit(IntEnum):
    """What became of a commit."""

    COUNTED = 1
    REPEATED = 0  #: The unit had been counted, by another attempt or by this very call repeated.
    STALE = -1  #: Another epoch, no such unit, or the job's figures are settled.


class Issued(NamedTuple):
    """Units to publish now, with the epoch that their messages carry."""

    epoch: int
    units: list[int]
    queue: str = ""  #: The job's labels of these names; empty: none.
    kind: str = ""


class Swept(NamedTuple):
    """What a sweep found."""

    state: JobState | None  #: None: no such job.
    expired: int  #: Leases that had run out.
    unclaimed: int  #: Units issued and not claimed in time.


def new_token() -> str:
    """A name for one attempt; make a new one for every claim of a message."""
    return secrets.token_hex(8)


class Ledger(Reader):
    """Reads and changes jobs.

    `starts_max`, `fails_max`, `unclaimed_ms` are written into the jobs that this object creates;
    scripts take them from there, so that all workers agree.

    Every method raises LedgerUnavailable (transient) when Redis does not serve for `patience_ms`,
    and LedgerRefused when it does not accept the user.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        max_starts: int = 3,
        fails_max: int = 5,
        unclaimed_ms: int = 30_000,
        patience_ms: int = PATIENCE_MS,
        scripts: Mapping[str, str] | None = None,
    ) -> None:
        """`max_starts`: attempts of a unit that may die before it is given up.

        `fails_max`: times that a unit may be released with blame; one more fails the job.
        `unclaimed_ms`: a unit issued this long ago and not claimed is issued again.
        `patience_ms`, `scripts`: see `Caller`.
        """
        self.caller = Caller(client, patience_ms=patience_ms, scripts=scripts)
        self.max_starts = max_starts
        self.fails_max = fails_max
        self.unclaimed_ms = unclaimed_ms

    def with_patience(self, patience_ms: int) -> "Ledger":
        """The same ledger, for a caller who has other things to do while Redis is away."""
        return Ledger(
            self.caller.client,
            max_starts=self.max_starts,
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
        max_starts: int | None = None,
        pace: Pace = NO_PACE,
        priority: str = NORMAL,
    ) -> None:
        """Make a running job without units. Repeating the call changes nothing.

        `labels` are shown by `status`. `max_starts` overrides this ledger's for the job (1 for
        writes that must not be repeated). `priority`: one of `shares.WEIGHTS`.

        Raises:
          UsageError: the id is not one, or belongs to another job.
        """
        clash = OWN_FIELDS & labels.keys()
        if clash:
            raise ValueError(f"labels with names the ledger uses itself: {sorted(clash)}")
        limit = error_limit or ErrorLimit()
        meta: dict[str, str | int] = {
            **labels,
            "records_max": limit.records_max,
            "per_million_max": limit.per_million_max,
            "starts_max": self.max_starts if max_starts is None else max_starts,
            "fails_max": self.fails_max,
            "unclaimed_ms": self.unclaimed_ms,
            "pace": pace.pack(),
            "priority": priority,
        }
        pairs: list[str | int] = [word for pair in meta.items() for word in pair]
        answer = self._script("create", job, spec_json, *pairs)
        if answer == -1:
            raise JobTaken(f"the job id {job} is taken by another job")
        if answer == -2:
            raise JobTaken(
                f"the job id {job} is that of a job of which Redis lost part: give another id"
            )
        self._list(job)

    def add_units(self, job: str, epoch: int, first_unit: int, specs: Sequence[str]) -> int | None:
        """Append units; those that exist are left alone, so a call may be repeated.

        Returns the number of units the job has now. If it is less than `first_unit`, units before
        are missing (Redis came back without the end of its log) and nothing was appended: add
        again from there. None: the job does not run in this epoch.

        Specs of up to 64 bytes are kept compactly.
        """
        count = int(self._script("add_units", job, epoch, first_unit, *specs))
        if first_unit == 0:  # a worker may have to be started for them; more are counted by sweeps
            count_open_units(self.caller)
        return None if count < 0 else count

    def seal(self, job: str, epoch: int, units_count: int) -> int | None:
        """Say that all `units_count` units were added; the job ends when none is left.

        Returns the number of units the job has. If it is not `units_count` the job is not sealed:
        add the missing ones and seal again. None: the job does not run in this epoch.
        """
        count = int(self._script("seal", job, epoch, units_count))
        count_open_units(self.caller)
        return None if count < 0 else count

    def cancel(self, job: str) -> JobState:
        """End a running job; workers stop at their next block. Returns the state after it."""
        return self._end(job, JobState.CANCELLED, "")

    def fail(self, job: str, reason: str, *, epoch: int | None = None) -> JobState:
        """End a running job that cannot go on. Returns the state after it.

        `epoch`: the one that is meant; a job that was resumed since goes on.
        """
        return self._end(job, JobState.FAILED, reason, epoch)

    def resume(self, job: str, *, error_limit: ErrorLimit | None = None) -> int:
        """Run an ended job's units that are not done. Returns the new epoch.

        The rejects so far do not count against the limit any more. If nothing is left to do the
        job is over again at once. A job whose splitting was cut short needs its missing units and
        a `seal`, as at first.

        Raises:
          JobMissing; JobDamaged: part of it was lost; UsageError: the job runs, or is over for
            good.
        """
        before = self.status(job)
        self.check(job)
        if before.state not in RESUMABLE:
            raise JobOver(f"job {job} cannot be resumed: it is {before.state}")
        limit: tuple[str | int, str | int] = ("", "")
        if error_limit is not None:
            limit = (error_limit.records_max, error_limit.per_million_max)
        epoch, state = self._script("resume", job, before.epoch, *limit)
        if epoch == -1:  # lost just now
            raise JobDamaged(job, ["which units are done does not add up"])
        if epoch != before.epoch + 1:
            raise JobOver(f"job {job} was resumed by another command: it is {state.decode()}")
        self._list(job)
        count_open_units(self.caller)
        return int(epoch)

    def pause(self, job: str) -> JobState:
        """Let no unit of a running job be issued or claimed; workers give back those they have.

        Returns the job's state: one that runs is paused now. Raises JobMissing.
        """
        return self._state_after("pause", job)

    def may_publish(self, job: str, token: str, *, lease_ms: int, leave_ms: int = 0) -> int:
        """Ask to write the manifest or the result of a job that is over: one at a time may, for
        `lease_ms`, until `note_published`.

        Returns 0: write it now; -1: it was written already, or the job is not over; else how many
        ms later to ask again, with the same `token`. `leave_ms`: so long from the job's end on it
        is left to others.
        """
        return int(self._script("publish", job, token, lease_ms, leave_ms))

    def not_published(self, job: str, token: str) -> None:
        """It could not be written: let others try."""
        self._script("publish", job, token, 0, 0)

    def note_published(self, job: str) -> None:
        """Keep in mind that the manifest or the result of a job that is over is there."""
        self._script("published", job)

    def unpause(self, job: str) -> bool:
        """Let a paused job go on. Returns whether it was paused. Raises JobMissing."""
        answer: int = self._script("unpause", job)
        if answer < 0:
            raise JobMissing(job)
        count_open_units(self.caller)
        return answer == 1

    def throttle(self, job: str, pace: Pace) -> JobState:
        """Set the pace of a running job, in the place of the one it had.

        Returns the job's state: of one that runs the pace is set. Raises JobMissing.
        """
        return self._state_after("throttle", job, pace.pack())

    def make_durable(self, timeout_ms: int = 2000) -> bool:
        """Wait until what this client wrote is on the server's disk.

        Returns False if that took longer, or if the server keeps no append-only file. Worth its
        wait (up to a second) before a producer that will not come back says "detached".
        """
        try:
            numbers: list[int] = self.caller.command("WAITAOF", 1, 0, timeout_ms)
        except redis.ResponseError:
            return False
        return numbers[0] >= 1

    # Both sides.

    def issue(self, job: str, window: int) -> Issued:
        """Units to publish now, so that at most `window` are issued or leased."""
        epoch, queue, kind, *units = self._script("issue", job, window, UNITS_PER_SCRIPT_MAX)
        return Issued(epoch, units, queue.decode(), kind.decode())

    def sweep(self, job: str) -> Swept:
        """Let units be issued again whose lease ran out or whose message was lost."""
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
        """Take a unit for `lease_ms`. Repeated with the same token, it gives the same attempt.

        `created_ms`: of the job that is meant, as `job_made` tells: an id may be used again once
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
        """Its message came to a worker that cannot take the unit: let it be issued again.

        `reason`: is shown while no unit of the job is worked on, until one is claimed.
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
        """Keep the unit for `lease_ms` from now and show what this attempt has done so far, and
        what keeps it from getting on, in words."""
        progress = f"{live.rows},{live.rejected},{live.bytes}" if live else ""
        words = trouble[:_REASON_CHARS_MAX]
        word, *limits = self._script("renew", job, unit, token, lease_ms, progress, words)
        return Renewed(Lease(word.decode()), _limits(*limits))

    def checkpoint(self, job: str, unit: int, token: str, cursor: bytes) -> Lease:
        """Keep where this attempt has got to for good, so that the next one goes on from there."""
        return Lease(self._script("checkpoint", job, unit, token, cursor).decode())

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
        """Count a finished unit. Only the first commit of a unit counts, whoever makes it.

        `totals` are added to the job's; `rows` and `rejected` among them are records and are held
        against the job's limit of errors. `latencies` are counts by bucket. `extra`: see `extras`.
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
    ) -> Lease:
        """Give the unit back unfinished, to be tried again after `delay_ms`.

        Not counted as a start. `blamed`: the unit's own error (not a shutdown or an outage); one
        blame more than `fails_max` fails the job with `reason`. `fatal`: it fails the job at once.
        An attempt that has lost its unit changes nothing.
        """
        words = (reason[:_REASON_CHARS_MAX], int(blamed), delay_ms, int(fatal))
        return Lease(self._script("release", job, unit, token, *words).decode())

    def stop(self, job: str, unit: int, token: str, live: Live, extra: bytes) -> Lease:
        """End the job: this attempt, which is not done, has by itself too many rejects for it.

        `live`: what it did; `extra`: its rejects, kept until a resume. Neither is counted.
        """
        progress = f"{live.rows},{live.rejected},{live.bytes}"
        return Lease(self._script("stop", job, unit, token, progress, extra).decode())

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
        """The attempt's process died: do not wait for its lease to run out.

        `fatal`: why the job cannot go on; it fails, unless the attempt had lost its unit before.
        `loss`: where the process was. If fewer records were at work together than at the last
        loss, the attempt is not held against the unit. It is noted once for each token, and of an
        attempt that lost its unit before, too: in `epoch`, while the unit has to be done.
        """
        words = fatal[:_REASON_CHARS_MAX]
        where = ("", 0, "") if loss is None else (loss.pack(), loss.together, loss.words)
        meant = "" if epoch is None else epoch
        return Lease(self._script("lost", job, unit, token, words, *where, meant).decode())

    def losses(self, job: str, unit: int) -> list[Loss]:
        """Where the attempts of a unit were that were lost, as far as it is known."""
        found: bytes | None = self.caller.command("HGET", keys.job_key(job, "losses"), unit)
        return [Loss.unpack(line) for line in (found or b"").decode().splitlines()]

    def _script(self, name: str, job: str, *arguments: str | int | bytes) -> Any:
        try:
            return self.caller.script(name, keys.job_key(job, "meta"), *arguments)
        except redis.ResponseError as error:
            # Arguments are checked before: a script fails by the type, or the text, of a key.
            if not _UNREADABLE.search(str(error)):
                raise
            raise JobDamaged(
                job, [f"its keys cannot be read ({str(error)[:_ERROR_CHARS_MAX]})"]
            ) from error

    def _end(self, job: str, state: JobState, reason: str, epoch: int | None = None) -> JobState:
        meant = "" if epoch is None else epoch
        return self._state_after("end", job, state.value, reason[:_REASON_CHARS_MAX], meant)

    def _state_after(self, name: str, job: str, *arguments: str | int) -> JobState:
        """Run a script that answers with the job's state. Raises JobMissing."""
        after: bytes = self._script(name, job, *arguments)
        if not after:
            raise JobMissing(job)
        count_open_units(self.caller)
        return JobState(after.decode())

    def _list(self, job: str) -> None:
        """Put the job where `jobs` and the sweep find it: after it exists, and again on a repeat,
        so that a producer that died in between leaves at worst a job that nobody works on."""
        created_ms = self.status(job).created_ms

        self.caller.command("ZADD", keys.JOBS, created_ms, job)
        self.caller.command("SADD", keys.RUNNING, job)


def _limits(pace: bytes, running: int, now_ms: int) -> Limits:
    """What holds now for one of the units that run."""
    return Pace.unpack(pace).at(now_ms).shared(running)

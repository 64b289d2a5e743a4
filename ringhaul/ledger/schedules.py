"""The state of schedules: which due times are settled, and which beat runs the current run.

Any number of beats watch the same schedules. A single beat makes the run of a due time and holds it
by a lease; if it does not renew the lease, another beat takes the run over.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.ledger import new_token
from ringhaul.schedule.arrivals import REMEMBER_MS, Remembered
from ringhaul.schedule.record import BadRecord
from ringhaul.schedule.runs import Run, RunState
from ringhaul.schedule.times import due_ms_of, run_id

#: Runs kept in a schedule's history, including due times that were skipped.
RUNS_KEPT = 200
#: A timing that no beat has looked at for this long, while beats look at another timing, comes from
#: an older version of the file. Beats look every second, or some seconds late if Redis or a disk
#: is slow.
UNSEEN_MAX_MS = 60_000
#: How often to record that a timing is still looked at.
_SEEN_EVERY_MS = 10_000
#: A wish for a run that no beat has fulfilled for this long is void: a beat that comes up hours
#: later must not surprise anybody.
WANTED_MAX_MS = 600_000
#: Runs looked at for the health of a schedule that earlier versions ran.
_RUNS_OF_OLD = 20
#: Files queried at once.
_PATHS_PER_READ = 1000
#: Longest text about a schedule file that a beat reports, and how long it is kept.
_PROBLEM_CHARS_MAX = 1000
_PROBLEM_TTL_S = 24 * 3600


class Claim(Enum):
    """The outcome of claiming a due time."""

    CLAIMED = "CLAIMED"
    BUSY = "BUSY"  #: A run of the schedule has not ended.
    PAUSED = "PAUSED"
    MOVED = "MOVED"  #: Another beat has settled this or a later due time.
    KNOWN = "KNOWN"  #: The due time already has a run.


class Standing(NamedTuple):
    """The state of a schedule."""

    now_ms: int  #: The server's clock at this moment.
    #: The latest settled due time; None: no beat has looked at the schedule yet.
    settled_ms: int | None
    #: When a beat first saw the schedule with its timing; None: not requested.
    since_ms: int | None
    paused_ms: int | None  #: Since when.
    run: str | None  #: The run that has not ended.
    lease_ms: int  #: Until when its beat alone may continue it.
    wanted_ms: int | None = None  #: Since when a run now is requested.


class Wait(NamedTuple):
    """How long the files of a schedule wait after runs that failed without being their fault."""

    troubles: int  #: Such runs in a row.
    until_ms: int  #: No run starts before, unless by hand.


class Health(NamedTuple):
    """How the runs of a schedule ended lately. Runs that go on and due times that were skipped do
    not count."""

    ended: Run | None = None  #: The run that ended last.
    success_ms: int | None = None  #: When the last run ended that was done.
    failures: int = 0  #: Runs in a row that failed, up to the last.
    acknowledged: bool = False  #: Somebody has seen that the last run failed.


#: No run has ended yet.
NO_HEALTH = Health()


def is_wanted(standing: Standing) -> bool:
    """Return whether a run was requested lately, and none has started since."""
    wanted_ms = standing.wanted_ms
    return wanted_ms is not None and standing.now_ms - wanted_ms <= WANTED_MAX_MS


class ScheduleBook:
    """The schedules on one Redis. Methods raise as `Caller.script` does.

    Every method may be repeated: a claim is bound to the token of this object, which a beat creates
    once.
    """

    def __init__(self, caller: Caller, *, token: str | None = None) -> None:
        self._caller = caller
        self._token = token or new_token()

    def standing(self, name: str, timing: str = "") -> Standing:
        """Return the state of a schedule without changing it.

        `timing`: the timing to return `since_ms` for.
        """
        return self._look(name, timing, self._caller.reading_script, "1")

    def look(self, name: str, timing: str) -> Standing:
        """Return the state of a schedule, for a beat that looks at it with a timing.

        A schedule that is new or has a new timing starts now: earlier due times do not count. So
        does a schedule that returns to a timing which no beat has looked at for `UNSEEN_MAX_MS`,
        while beats looked at another timing.
        """
        return self._look(name, timing, self._caller.script, "")

    def _look(self, name: str, timing: str, script: Callable[..., Any], only_look: str) -> Standing:
        limits = (keys.SCHEDULE_TTL_S, _SEEN_EVERY_MS, UNSEEN_MAX_MS)
        key = keys.schedule_key(name, "state")
        words: list[bytes] = script("schedule_look", key, timing, *limits, only_look)
        now, settled, since, paused, run, lease, wanted = (word.decode() for word in words)
        return Standing(
            now_ms=int(now),
            settled_ms=int(settled) if settled else None,
            since_ms=int(since) if since else None,
            paused_ms=int(paused) if paused else None,
            run=run or None,
            lease_ms=int(lease or 0),
            wanted_ms=int(wanted) if wanted else None,
        )

    def claim(
        self,
        run: Run,
        *,
        settled_ms: int | None,
        lease_ms: int,
        before: Run | None = None,
    ) -> Claim:
        """Create the run of a due time, and lease it for `lease_ms`.

        `settled_ms`: see `Standing`, 0 if nothing is settled yet; None for a run by hand, which
        ignores settled due times and pauses. `before`: this due time's earlier run, to continue.
        """
        by_hand = run.by_hand or settled_ms is None
        answer: bytes = self._script(
            "schedule_claim",
            run.schedule,
            run.id,
            run.due_ms,
            "" if settled_ms is None else settled_ms,
            _pack(run),
            self._token,
            lease_ms,
            "" if before is None else _pack(before),
            RUNS_KEPT,
            keys.SCHEDULE_TTL_S,
            int(by_hand),
        )
        return Claim(answer.decode())

    def pass_over(self, run: Run, *, settled_ms: int, instead_of: Run | None = None) -> bool:
        """Settle a due time that gets no run, and those before it.

        `instead_of`: the run to remove from the history for it.
        """
        old = "" if instead_of is None else instead_of.id
        words = (run.id, run.due_ms, settled_ms, _pack(run), RUNS_KEPT, old, keys.SCHEDULE_TTL_S)
        return bool(self._script("schedule_pass", run.schedule, *words))

    def take_over(self, name: str, lease_ms: int) -> Run | None:
        """Take over and return the run whose lease its beat let expire; None without such a run."""
        run = self.standing(name).run
        record: bytes | None = self._script("schedule_take", name, self._token, lease_ms)
        return _unpack(name, run or "", record) if record else None

    def keep(
        self,
        run: Run,
        *,
        lease_ms: int,
        files: Mapping[str, Remembered] | None = None,
        end: bool = False,
        wait: Wait | None = None,
    ) -> bool:
        """Save the progress of the run, and renew its lease for `lease_ms` (0: release it).

        `files`: remembered in the same step. `end`: the run has ended. `wait`: the new value of
        `wait`. Returns False if another beat has the run by now.
        """
        state = str(run.state) if end else ""
        words: list[str | int] = [run.id, self._token, lease_ms, _pack(run), state]
        words += (keys.SCHEDULE_TTL_S, *(("", "") if wait is None else wait))
        for path, remembered in (files or {}).items():
            words += (path, remembered.pack())
        answer: bytes = self._script("schedule_keep", run.schedule, *words)
        return answer == b"OK"

    def renew(self, run: Run, lease_ms: int) -> bool:
        """Renew the lease of the run. False: another beat has it by now."""
        words = (run.id, self._token, lease_ms, "", "", keys.SCHEDULE_TTL_S, "", "")
        answer: bytes = self._script("schedule_keep", run.schedule, *words)
        return answer == b"OK"

    def pause(self, name: str) -> None:
        """Let no run start from now on."""
        now_ms = self.standing(name).now_ms
        key = keys.schedule_key(name, "state")
        self._caller.command("HSETNX", key, "paused_ms", now_ms)
        self._caller.command("EXPIRE", key, keys.SCHEDULE_TTL_S)

    def resume(self, name: str) -> None:
        """Let runs start again, from the next due time on. Does nothing if not paused."""
        standing = self.standing(name)
        if standing.paused_ms is None:
            return
        key = keys.schedule_key(name, "state")
        self._caller.command("HSET", key, "settled_ms", standing.now_ms)
        self._caller.command("HDEL", key, "paused_ms")

    def acknowledge(self, name: str, run: str) -> None:
        """Note that somebody has seen that this run failed, until the next run ends."""
        key = keys.schedule_key(name, "state")
        self._caller.command("HSET", key, "acked_run", run)
        self._caller.command("EXPIRE", key, keys.SCHEDULE_TTL_S)

    def want_run(self, name: str) -> bool:
        """Ask beats to run the schedule now, within `WANTED_MAX_MS`. Returns False if somebody has
        already done so. `claim` of a run by hand fulfils the wish."""
        key, standing = keys.schedule_key(name, "state"), self.standing(name)
        if is_wanted(standing):
            return False
        self._caller.command("HSET", key, "wanted_ms", standing.now_ms)
        self._caller.command("EXPIRE", key, keys.SCHEDULE_TTL_S)
        return True

    def give_up_wish(self, name: str) -> None:
        """Forget that somebody wants a run: nothing is left to do about it."""
        self._caller.command("HDEL", keys.schedule_key(name, "state"), "wanted_ms")

    def run(self, name: str, run: str) -> Run | None:
        """Return one run of the history."""
        record: bytes | None = self._caller.command("HGET", keys.schedule_key(name, "records"), run)
        return _unpack(name, run, record) if record else None

    def runs(self, name: str, limit: int) -> list[Run]:
        """Return the newest runs first, in the order in which they started or were skipped."""
        ids: list[bytes] = self._caller.command(
            "ZREVRANGE", keys.schedule_key(name, "runs"), 0, limit - 1
        )
        found = (self.run(name, run.decode()) for run in ids)
        return [run for run in found if run is not None]

    def health(self, name: str) -> Health:
        """Return how the runs of a schedule ended lately."""
        fields = ("ended_run", "ended_state", "success_ms", "failures", "acked_run")
        key = keys.schedule_key(name, "state")
        words: list[bytes | None] = self._caller.command("HMGET", key, *fields)
        run, state, success, failures, acked = (word.decode() if word else "" for word in words)
        if not run:  # no run has ended since this is kept
            return health_of(self.runs(name, _RUNS_OF_OLD))
        ended = self.run(name, run)
        if ended is None:  # skipped due times have taken its place in the history
            ended = Run(schedule=name, due_ms=due_ms_of(run), state=RunState(state))
        success_ms = int(success) if success else None
        return Health(ended, success_ms, int(failures or 0), acknowledged=acked == run)

    def wait(self, name: str) -> Wait:
        """Return how long the files of a schedule wait."""
        words: list[bytes | None] = self._caller.command(
            "HMGET", keys.schedule_key(name, "state"), "troubles", "wait_ms"
        )
        return Wait(*(int(word or 0) for word in words))

    def remembered(self, name: str, paths: Sequence[str]) -> dict[str, Remembered]:
        """Return what is known about these files."""
        key = keys.schedule_key(name, "files")
        known: dict[str, Remembered] = {}
        for first in range(0, len(paths), _PATHS_PER_READ):
            chosen = paths[first : first + _PATHS_PER_READ]
            found: list[bytes | None] = self._caller.command("HMGET", key, *chosen)
            for path, text in zip(chosen, found, strict=True):
                if text is not None:
                    known[path] = Remembered.unpack(text.decode())
        return known

    def forget(self, name: str, there: Collection[str], now_ms: int) -> int:
        """Record which files are not in `there`, and forget those missing for `REMEMBER_MS`.

        Returns how many are forgotten.
        """
        key, cursor, gone = keys.schedule_key(name, "files"), 0, 0
        while True:
            cursor, found = self._caller.command("HSCAN", key, cursor, "COUNT", _PATHS_PER_READ)
            words: list[str] = []
            for path, text in ((path.decode(), text.decode()) for path, text in found.items()):
                new = _gone(text, path in there, now_ms)
                if new != text:
                    words += (path, text, new)
            if words:
                gone += self._script("schedule_gone", name, *words)
            if cursor == 0:
                return gone

    def keep_files(self, name: str) -> None:
        """Renew the TTL of what is remembered about files."""
        self._caller.command("EXPIRE", keys.schedule_key(name, "files"), keys.SCHEDULE_TTL_S)

    def _script(self, script: str, name: str, *arguments: str | int) -> Any:
        return self._caller.script(script, keys.schedule_key(name, "state"), *arguments)


class Beats:
    """The living beats, as "host:pid". Methods raise as `Caller.script` does."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def heartbeat(self, beat: str, ttl_ms: int, problem: str = "") -> None:
        """Count a beat as alive for `ttl_ms`. `problem`: why it cannot read its schedule file."""
        self._caller.script("heartbeat", keys.BEATS, beat, ttl_ms)
        if problem:
            self._caller.command("HSET", keys.BEAT_PROBLEMS, beat, problem[:_PROBLEM_CHARS_MAX])
            self._caller.command("EXPIRE", keys.BEAT_PROBLEMS, _PROBLEM_TTL_S)
        else:
            self._caller.command("HDEL", keys.BEAT_PROBLEMS, beat)

    def leave(self, beat: str) -> None:
        """Remove a beat at its shutdown."""
        self._caller.command("ZREM", keys.BEATS, beat)
        self._caller.command("HDEL", keys.BEAT_PROBLEMS, beat)

    def problems(self) -> dict[str, str]:
        """Return for each living beat why it cannot read its schedule file; empty if it can."""
        found: dict[bytes, bytes] = self._caller.command("HGETALL", keys.BEAT_PROBLEMS)
        return {
            beat: found.get(beat.encode(), b"").decode("utf-8", "replace") for beat in self.alive()
        }

    def alive(self) -> list[str]:
        """Return the beats whose heartbeat has not expired, sorted."""
        members: list[bytes] = self._caller.reading_script("slots", keys.BEATS)
        return sorted(member.decode() for member in members)


def health_of(runs: Sequence[Run]) -> Health:
    """Return how runs ended, of which the newest are first."""
    ended = [run for run in runs if run.state in (RunState.DONE, RunState.FAILED)]
    done = next((n for n, run in enumerate(ended) if run.state is RunState.DONE), None)
    return Health(
        next(iter(ended), None),
        None if done is None else ended[done].ended_ms,
        len(ended) if done is None else done,
    )


def _pack(run: Run) -> str:
    return json.dumps(run.to_json(), separators=(",", ":"))


def _unpack(name: str, run: str, record: bytes) -> Run | None:
    """Parse a record of the history.

    A malformed record becomes a failed run that says so; None: `run` does not name a due time.
    """
    try:
        due_ms = due_ms_of(run)
    except ValueError:
        return None
    try:
        found = Run.from_json(json.loads(record))
        if (found.schedule, run_id(found.due_ms)) != (name, run):
            raise BadRecord("it belongs to another run")
        return found
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, BadRecord) else "it is not JSON"
    reason = f"its record in Redis cannot be read: {why}"
    return Run(schedule=name, due_ms=due_ms, state=RunState.FAILED, reason=reason)


def _gone(text: str, there: bool, now_ms: int) -> str:
    """Return what to remember of a file that exists or not; "": nothing."""
    file = Remembered.unpack(text)
    if there:
        return text if file.gone_ms is None else replace(file, gone_ms=None).pack()
    if file.gone_ms is None:
        return replace(file, gone_ms=now_ms).pack()
    return "" if file.gone_ms < now_ms - REMEMBER_MS else text

"""The truth about schedules: which due times are settled, who runs the run that is not over.

Any number of beats look at the same schedules. Each due time's run is made by one of them, and kept
by a lease; one whose beat was not heard of for that long is taken over by another.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.ledger import new_token
from ringhaul.schedule.arrivals import REMEMBER_MS, Remembered
from ringhaul.schedule.runs import BadRecord, Run, RunState
from ringhaul.schedule.times import due_ms_of, run_id

#: Runs of a schedule that its history has, passed over due times among them.
RUNS_KEPT = 200
#: A timing at which nobody looks for so long, while others look at another, is another file's of
#: before. Beats look every second, one that waits for Redis or a slow disk some seconds later.
UNSEEN_MAX_MS = 60_000
#: How often it is written down that somebody looks.
_SEEN_EVERY_MS = 10_000
#: Files asked about at once.
_PATHS_PER_READ = 1000


class Claim(Enum):
    """What became of the claim of a due time."""

    CLAIMED = "CLAIMED"
    BUSY = "BUSY"  #: A run of the schedule is not over.
    PAUSED = "PAUSED"
    MOVED = "MOVED"  #: Another beat has settled this due time, or a later one.
    KNOWN = "KNOWN"  #: The due time has a run already.


class Standing(NamedTuple):
    """Where a schedule stands."""

    now_ms: int  #: The server's clock at this look.
    #: Due times up to this one are settled; None: no beat has looked at the schedule yet.
    settled_ms: int | None
    #: When a beat first saw the schedule with its timing; None: nobody asked for that.
    since_ms: int | None
    paused_ms: int | None  #: Since when.
    run: str | None  #: The run that is not over.
    lease_ms: int  #: Until when it is its beat's alone.


class Wait(NamedTuple):
    """How long the files of a schedule wait after runs that failed by no fault of theirs."""

    troubles: int  #: Such runs in a row.
    until_ms: int  #: No run begins before, unless by hand.


class ScheduleBook:
    """The schedules on one Redis. Methods raise as `Caller.script` does.

    Every method may be repeated: a claim is bound to the token of this object, which a beat makes
    once.
    """

    def __init__(self, caller: Caller, *, token: str | None = None) -> None:
        self._caller = caller
        self._token = token or new_token()

    def standing(self, name: str) -> Standing:
        """Where a schedule stands. Nothing is changed."""
        return self._look(name, "")

    def look(self, name: str, timing: str) -> Standing:
        """The same for a beat. A schedule that it sees for the first time begins now, and so does
        one with another timing: due times before that are none. So does one that goes back to a
        timing at which nobody looked for `UNSEEN_MAX_MS`, while somebody looked at another."""
        return self._look(name, timing)

    def _look(self, name: str, timing: str) -> Standing:
        limits = (keys.SCHEDULE_TTL_S, _SEEN_EVERY_MS, UNSEEN_MAX_MS)
        words: list[bytes] = self._script("schedule_look", name, timing, *limits)
        now, settled, since, paused, run, lease = (word.decode() for word in words)
        return Standing(
            now_ms=int(now),
            settled_ms=int(settled) if settled else None,
            since_ms=int(since) if since else None,
            paused_ms=int(paused) if paused else None,
            run=run or None,
            lease_ms=int(lease or 0),
        )

    def claim(
        self,
        run: Run,
        *,
        settled_ms: int | None,
        lease_ms: int,
        before: Run | None = None,
    ) -> Claim:
        """Make the run of a due time, and take it for `lease_ms`.

        `settled_ms`: as `standing` told, 0 if it told none; None: by hand, whatever is settled. By
        hand a pause does not count. `before`: the run that this due time has, to be gone on with.
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
        """Settle the due time of a run that is none, and those before it.

        `instead_of`: leaves the history for it.
        """
        old = "" if instead_of is None else instead_of.id
        words = (run.id, run.due_ms, settled_ms, _pack(run), RUNS_KEPT, old, keys.SCHEDULE_TTL_S)
        return bool(self._script("schedule_pass", run.schedule, *words))

    def take_over(self, name: str, lease_ms: int) -> Run | None:
        """The run whose beat was not heard of for its lease: now it is ours."""
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
        """Write down how far the run is, and keep it for `lease_ms`; 0 lets it go at once.

        `files`: remembered with it, in one step. `end`: it is over. `wait`: what `wait` tells then.
        False: it is another's by now.
        """
        words: list[str | int] = [run.id, self._token, lease_ms, _pack(run), int(end)]
        words += (keys.SCHEDULE_TTL_S, *(("", "") if wait is None else wait))
        for path, remembered in (files or {}).items():
            words += (path, remembered.pack())
        answer: bytes = self._script("schedule_keep", run.schedule, *words)
        return answer == b"OK"

    def renew(self, run: Run, lease_ms: int) -> bool:
        """Keep the run for `lease_ms` from now. False: it is another's by now."""
        words = (run.id, self._token, lease_ms, "", 0, keys.SCHEDULE_TTL_S, "", "")
        answer: bytes = self._script("schedule_keep", run.schedule, *words)
        return answer == b"OK"

    def pause(self, name: str) -> None:
        """No run begins from now on."""
        now_ms = self.standing(name).now_ms
        key = keys.schedule_key(name, "state")
        self._caller.command("HSETNX", key, "paused_ms", now_ms)
        self._caller.command("EXPIRE", key, keys.SCHEDULE_TTL_S)

    def resume(self, name: str) -> None:
        """Runs begin again, from the next due time on. One that is not paused stays as it is."""
        standing = self.standing(name)
        if standing.paused_ms is None:
            return
        key = keys.schedule_key(name, "state")
        self._caller.command("HSET", key, "settled_ms", standing.now_ms)
        self._caller.command("HDEL", key, "paused_ms")

    def run(self, name: str, run: str) -> Run | None:
        """One run of the history."""
        record: bytes | None = self._caller.command("HGET", keys.schedule_key(name, "records"), run)
        return _unpack(name, run, record) if record else None

    def runs(self, name: str, limit: int) -> list[Run]:
        """The newest runs first, in the order in which they began or were passed over."""
        ids: list[bytes] = self._caller.command(
            "ZREVRANGE", keys.schedule_key(name, "runs"), 0, limit - 1
        )
        found = (self.run(name, run.decode()) for run in ids)
        return [run for run in found if run is not None]

    def wait(self, name: str) -> Wait:
        """How long the files of a schedule wait."""
        words: list[bytes | None] = self._caller.command(
            "HMGET", keys.schedule_key(name, "state"), "troubles", "wait_ms"
        )
        return Wait(*(int(word or 0) for word in words))

    def remembered(self, name: str, paths: Sequence[str]) -> dict[str, Remembered]:
        """What is known of these files."""
        key = keys.schedule_key(name, "files")
        known: dict[str, Remembered] = {}
        for first in range(0, len(paths), _PATHS_PER_READ):
            asked = paths[first : first + _PATHS_PER_READ]
            found: list[bytes | None] = self._caller.command("HMGET", key, *asked)
            for path, text in zip(asked, found, strict=True):
                if text is not None:
                    known[path] = Remembered.unpack(text.decode())
        return known

    def forget(self, name: str, there: Collection[str], now_ms: int) -> int:
        """Write down which files are not among those `there`, and forget those that were not for
        `REMEMBER_MS`. How many are forgotten."""
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
        """What is remembered of files lives on from now."""
        self._caller.command("EXPIRE", keys.schedule_key(name, "files"), keys.SCHEDULE_TTL_S)

    def _script(self, script: str, name: str, *arguments: str | int) -> Any:
        return self._caller.script(script, keys.schedule_key(name, "state"), *arguments)


class Beats:
    """The beats that are alive, as "host:pid". Methods raise as `Caller.script` does."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def heartbeat(self, beat: str, ttl_ms: int) -> None:
        """Count a beat as alive for `ttl_ms`."""
        self._caller.script("heartbeat", keys.BEATS, beat, ttl_ms)

    def leave(self, beat: str) -> None:
        """Count it no more."""
        self._caller.command("ZREM", keys.BEATS, beat)

    def alive(self) -> list[str]:
        """The beats heard of within their time to live, sorted."""
        members: list[bytes] = self._caller.script("slots", keys.BEATS)
        return sorted(member.decode() for member in members)


def _pack(run: Run) -> str:
    return json.dumps(run.to_json(), separators=(",", ":"))


def _unpack(name: str, run: str, record: bytes) -> Run | None:
    """A record of the history. One that no ringhaul wrote is a run that failed, and says so; None:
    its name tells no due time."""
    try:
        due_ms = due_ms_of(run)
    except ValueError:
        return None
    try:
        found = Run.from_json(json.loads(record))
        if (found.schedule, run_id(found.due_ms)) != (name, run):
            raise BadRecord("it is of another run")
        return found
    except (ValueError, RecursionError) as error:
        why = error if isinstance(error, BadRecord) else "it is no JSON"
    reason = f"its record in Redis cannot be read: {why}"
    return Run(schedule=name, due_ms=due_ms, state=RunState.FAILED, reason=reason)


def _gone(text: str, there: bool, now_ms: int) -> str:
    """What is to be remembered of a file that is there, or is not; "": nothing."""
    file = Remembered.unpack(text)
    if there:
        return text if file.gone_ms is None else replace(file, gone_ms=None).pack()
    if file.gone_ms is None:
        return replace(file, gone_ms=now_ms).pack()
    return "" if file.gone_ms < now_ms - REMEMBER_MS else text

"""The truth about schedules: which due times are settled, who runs the run that is not over.

Any number of beats look at the same schedules. Each due time's run is made by one of them, and kept
by a lease; one whose beat was not heard of for that long is taken over by another.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.ledger import new_token
from ringhaul.schedule.arrivals import Remembered
from ringhaul.schedule.runs import Run

#: Runs of a schedule that its history has, passed over due times among them.
RUNS_KEPT = 200
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
        one with another timing: due times before that are none."""
        return self._look(name, timing)

    def _look(self, name: str, timing: str) -> Standing:
        words: list[bytes] = self._script("schedule_look", name, timing, keys.SCHEDULE_TTL_S)
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

        `settled_ms`: as `standing` told; None: by hand, whatever is settled or paused. `before`:
        the run that this due time has, to be gone on with.
        """
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
        )
        return Claim(answer.decode())

    def pass_over(self, run: Run, *, settled_ms: int, instead_of: Run | None = None) -> bool:
        """Settle the due time of a run that is none, and those before it.

        `instead_of`: leaves the history for it.
        """
        old = "" if instead_of is None else instead_of.id
        words = (run.id, run.due_ms, settled_ms, _pack(run), RUNS_KEPT, old)
        return bool(self._script("schedule_pass", run.schedule, *words))

    def take_over(self, name: str, lease_ms: int) -> Run | None:
        """The run whose beat was not heard of for its lease: now it is ours."""
        record: bytes | None = self._script("schedule_take", name, self._token, lease_ms)
        return _unpack(record) if record else None

    def keep(
        self,
        run: Run,
        *,
        lease_ms: int,
        files: Mapping[str, Remembered] | None = None,
        end: bool = False,
    ) -> bool:
        """Write down how far the run is, and keep it for `lease_ms`; 0 lets it go at once.

        `files`: remembered with it, in one step. `end`: it is over. False: it is another's by now.
        """
        words: list[str | int] = [run.id, self._token, lease_ms, _pack(run), int(end)]
        words.append(keys.SCHEDULE_TTL_S)
        for path, remembered in (files or {}).items():
            words += (path, remembered.pack())
        answer: bytes = self._script("schedule_keep", run.schedule, *words)
        return answer == b"OK"

    def renew(self, run: Run, lease_ms: int) -> bool:
        """Keep the run for `lease_ms` from now. False: it is another's by now."""
        words = (run.id, self._token, lease_ms, "", 0, keys.SCHEDULE_TTL_S)
        answer: bytes = self._script("schedule_keep", run.schedule, *words)
        return answer == b"OK"

    def pause(self, name: str) -> None:
        """No run begins from now on."""
        now_ms = self.standing(name).now_ms
        self._caller.command("HSETNX", keys.schedule_key(name, "state"), "paused_ms", now_ms)

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
        return _unpack(record) if record else None

    def runs(self, name: str, limit: int) -> list[Run]:
        """The newest runs first, in the order in which they began or were passed over."""
        ids: list[bytes] = self._caller.command(
            "ZREVRANGE", keys.schedule_key(name, "runs"), 0, limit - 1
        )
        found = (self.run(name, run.decode()) for run in ids)
        return [run for run in found if run is not None]

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

    def forget(self, name: str, there: Collection[str], before_ms: int) -> int:
        """Forget files that are not among those `there`, and of which nothing has become since
        `before_ms`. How many they were."""
        key, cursor, gone = keys.schedule_key(name, "files"), 0, 0
        while True:
            cursor, found = self._caller.command("HSCAN", key, cursor, "COUNT", _PATHS_PER_READ)
            old = [
                path
                for path, text in found.items()
                if path.decode() not in there and Remembered.unpack(text.decode()).ms < before_ms
            ]
            if old:
                gone += self._caller.command("HDEL", key, *(path.decode() for path in old))
            if cursor == 0:
                return gone

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


def _unpack(record: bytes) -> Run:
    return Run.from_json(json.loads(record))

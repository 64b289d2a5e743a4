"""Read what the ledger knows about jobs. Nothing here changes a job."""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import redis

from ringhaul.breadcrumb import Loss
from ringhaul.errors import UsageError
from ringhaul.ledger import keys
from ringhaul.ledger.audit import JobDamaged, find_damage, unpack_held
from ringhaul.ledger.connection import PATIENCE_MS, Caller
from ringhaul.ledger.forget import forget_gone
from ringhaul.ledger.job_status import JobStatus, UnitAtWork, sum_live, unreadable
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.ledger.pace import Pace
from ringhaul.ledger.shares import NORMAL
from ringhaul.ledger.states import JobState

#: Fields of the meta hash that the ledger uses; all others are the producer's labels.
OWN_FIELDS = frozenset(
    """
    state epoch units left next sealed silent created_ms started_ms finished_ms last_error
    end_cause
    records_max per_million_max rejected_before seen_before starts_max fails_max unclaimed_ms
    error_ms error_done trouble trouble_ms declined declined_ms paused_ms paused_total_ms idle_ms
    pace priority progress_ms
    published_ms publisher publisher_ms kept sum_tot sum_lat counted kept_epoch limited
    """.split()  # noqa: SIM905
)
#: Most units that `units_at_work` returns.
UNITS_AT_WORK_MAX = 10_000
#: Extras fetched at once: one can be megabytes.
_BLOBS_PER_READ = 16
REASON_CHARS_MAX = 200


class JobTaken(UsageError):
    """The id of a new job belongs to another job."""


class JobOver(UsageError):
    """The job cannot be continued: it has nothing left to do."""


class JobMissing(UsageError):
    """The ledger knows no job with this id."""

    def __init__(self, job: str) -> None:
        self.job = job
        super().__init__(
            f"there is no job {job}: `ringhaul status` lists the jobs; one that ended more than "
            f"{keys.JOB_TTL_S // 86_400} days ago is forgotten"
        )


class JobMade(NamedTuple):
    """Spec and creation time of a job."""

    spec: str  #: JSON
    created_ms: int  #: Distinguishes it from an earlier job with the same id.


class Reader:
    """Reads jobs from Redis."""

    def __init__(self, client: redis.Redis, *, patience_ms: int = PATIENCE_MS) -> None:
        self.caller = Caller(client, patience_ms=patience_ms)

    def status(self, job: str) -> JobStatus:
        """Return a job's status. Raises JobMissing, or JobDamaged if it cannot be read."""
        found = self._status(job)
        if found is None:
            raise self._missing(job)
        return found

    def find_damage(self, job: str) -> list[str]:
        """Return what is inconsistent in a job's data because Redis lost part of it; empty if none.

        One script, which examines every key of the job: for the end of a job and for lists, not for
        each poll of a watching command. Raises JobMissing.
        """
        answer = self.caller.reading_script("audit", keys.job_key(job, "meta"))
        try:
            held = unpack_held(answer)
        except ValueError as error:
            return [f"its counts are unreadable ({error})"]
        if not isinstance(held, list):
            return find_damage(held)
        if not held:
            raise JobMissing(job)
        if "meta" in held:
            return ["its state (key meta) has another type"]
        return [f"its state (key meta) is lost; of its other keys {', '.join(held)} remain"]

    def check(self, job: str) -> None:
        """Raise JobDamaged if part of a job was lost, JobMissing if it does not exist."""
        damage = self.find_damage(job)
        if damage:
            raise JobDamaged(job, damage)

    def _missing(self, job: str) -> JobMissing | JobDamaged:
        """Return the error for a job without a meta key: it is damaged if other keys remain."""
        try:
            damage = self.find_damage(job)
        except JobMissing as error:
            return error
        # Without damage it was created just after the read that missed it.
        return JobDamaged(job, damage) if damage else JobMissing(job)

    def jobs(self, limit: int = 100) -> list[JobStatus]:
        """Return the newest jobs first, at most `limit` of them."""
        forget_gone(self.caller, keys.JOBS)
        found: list[JobStatus] = []
        offset = 0
        while len(found) < limit:
            names: list[bytes] = self.caller.command(
                "ZREVRANGE", keys.JOBS, offset, offset + limit - 1
            )
            if not names:
                break
            offset += len(names)
            for name in names:
                status = self._listed(name.decode())
                if status is not None:
                    found.append(status)
                else:  # its keys expired
                    self.caller.command("ZREM", keys.JOBS, name.decode())
                    offset -= 1
        return found[:limit]

    def listed(self, jobs: Iterable[str]) -> list[JobStatus]:
        """Return the status of each of the jobs that still exists, in the order of `jobs`."""
        statuses = (self._listed(job) for job in jobs)
        return [status for status in statuses if status is not None]

    def unended(self) -> list[JobStatus]:
        """Return the jobs that run or are paused, the newest first."""
        names: set[bytes] = self.caller.command("SMEMBERS", keys.RUNNING)
        statuses = (self._listed(name.decode()) for name in names)
        found = [status for status in statuses if status is not None and not status.finished]
        return sorted(found, key=lambda status: (-status.created_ms, status.job))

    def job_spec(self, job: str) -> str:
        """Return the JSON that the job was created with. Raises JobMissing, JobDamaged."""
        with reading(job):
            spec: bytes | None = self.caller.command("GET", keys.job_key(job, "spec"))
        if spec is None:
            raise self._missing(job)
        return spec.decode()

    def job_made(self, job: str) -> JobMade:
        """Return the job's spec and creation time. Raises JobMissing, JobDamaged."""

        def look() -> list[bytes | None]:
            pipeline = self.caller.client.pipeline(transaction=True)
            pipeline.get(keys.job_key(job, "spec"))
            pipeline.hget(keys.job_key(job, "meta"), "created_ms")
            return pipeline.execute()

        with reading(job):
            spec, created_ms = self.caller.insist(look)
            if spec is None or created_ms is None:
                raise self._missing(job)
            return JobMade(spec.decode(), int(created_ms))

    def unit_spec(self, job: str, unit: int) -> str | None:
        """Return the spec of one unit; None if the job has no such unit."""
        spec: bytes | None = self.caller.command("HGET", keys.bucket_key(job, "units", unit), unit)
        return None if spec is None else spec.decode()

    def unit_specs(self, job: str) -> Iterator[tuple[int, str]]:
        """Return (unit, spec) of all units in order."""
        return self._buckets(job, "units")

    def results(
        self, job: str, exclude: Collection[int] = frozenset()
    ) -> Iterator[tuple[int, str]]:
        """Return (unit, result of the attempt that counted) of the committed units in order.

        `exclude`: buckets of `keys.UNITS_PER_BUCKET` units to skip.
        """
        return self._buckets(job, "results", exclude)

    def unit_ends(self, job: str) -> Sequence[int]:
        """Return for each unit, up to the last that is known, the ms from the job's creation to its
        commit. 0: not committed, or by a worker of a version that did not keep it."""
        with reading(job):
            kept: bytes = self.caller.command("GET", keys.job_key(job, "ends")) or b""
            return struct.unpack(f">{len(kept) // 4}I", kept[: len(kept) // 4 * 4])

    def unit_fails(self, job: str) -> dict[int, int]:
        """Return how often each unfinished unit was given back with blame."""
        with reading(job):
            found: dict[bytes, bytes] = self.caller.command("HGETALL", keys.job_key(job, "fails"))
            return {int(unit): int(count) for unit, count in _numbered(found)}

    def records_max(self, job: str) -> int:
        """Return how many records may be rejected; one more stops the job. -1: no such limit."""
        found: bytes | None = self.caller.command("HGET", keys.job_key(job, "meta"), "records_max")
        return -1 if found is None else int(found)

    def error_limit(self, job: str) -> ErrorLimit:
        """Return how many records may be rejected before the job is stopped."""
        fields = ("records_max", "per_million_max")
        with reading(job):
            found = self.caller.command("HMGET", keys.job_key(job, "meta"), *fields)
            records_max, per_million_max = (-1 if one is None else int(one) for one in found)
        return ErrorLimit(records_max=records_max, per_million_max=per_million_max)

    def cursor(self, job: str, unit: int) -> bytes | None:
        """Return the saved position of an unfinished unit; None: start from its beginning."""
        found: bytes | None = self.caller.command("HGET", keys.job_key(job, "cursors"), unit)
        return found

    def losses(self, job: str, unit: int) -> list[Loss]:
        """Return where the lost attempts of a unit were, as far as known."""
        found: bytes | None = self.caller.command("HGET", keys.job_key(job, "losses"), unit)
        return [Loss.unpack(line) for line in (found or b"").decode().splitlines()]

    def extras(
        self, job: str, exclude: Collection[int] = frozenset()
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (unit, extra) of the committed units that left one, in order.

        An extra is what a unit leaves besides its numbers: rejected records of a load, parts of an
        unload, the partial table of a query. For a STOPPED job, this includes the rejects of units
        that were not committed; see `Ledger.stop`. `exclude`: units to skip.
        """
        key = keys.job_key(job, "extras")
        with reading(job):
            units = sorted(set(map(int, self.caller.command("HKEYS", key))).difference(exclude))
        for first in range(0, len(units), _BLOBS_PER_READ):
            chosen = units[first : first + _BLOBS_PER_READ]
            with reading(job):
                blobs: list[bytes | None] = self.caller.command("HMGET", key, *chosen)
            for unit, blob in zip(chosen, blobs, strict=True):
                if blob is not None:
                    yield unit, blob

    def extra(self, job: str, unit: int) -> bytes | None:
        """Return the extra of a committed unit; None if it has none or is not committed."""
        found: bytes | None = self.caller.command("HGET", keys.job_key(job, "extras"), unit)
        return found

    def quarantined_units(self, job: str) -> dict[int, str]:
        """Return the quarantined units, with the reason."""
        with reading(job):
            found: dict[bytes, bytes] = self.caller.command("HGETALL", keys.job_key(job, "bad"))
            return {unit: reason for unit, reason in sorted(_numbered(found))}

    def units_at_work(self, job: str, limit: int = UNITS_AT_WORK_MAX) -> list[UnitAtWork]:
        """Return the units of a job in progress, the longest-running first."""

        def look() -> list[Any]:
            pipeline = self.caller.client.pipeline(transaction=True)
            pipeline.zrange(keys.job_key(job, "begun"), 0, limit - 1, withscores=True)
            for part in ("owner", "starts", "live"):
                pipeline.hgetall(keys.job_key(job, part))
            pipeline.time()
            return pipeline.execute()

        with reading(job):
            begun, owners, starts, live, (seconds, micros) = self.caller.insist(look)
        now_ms = seconds * 1000 + micros // 1000
        return [
            UnitAtWork(
                job=job,
                unit=int(unit),
                worker=owners[unit].decode().partition("@")[2],
                attempt=int(starts.get(unit, b"1")),
                seconds=max(now_ms - begun_ms, 0) / 1000,
                live=sum_live([live[unit]] if unit in live else []),
            )
            for unit, begun_ms in begun
            if unit in owners
        ]

    def latencies(self, job: str) -> dict[str, int]:
        """Return requests by latency bucket, over the committed units."""
        with reading(job):
            return _counts(self.caller.command("HGETALL", keys.job_key(job, "lat")))

    def _buckets(
        self, job: str, part: str, exclude: Collection[int] = frozenset()
    ) -> Iterator[tuple[int, str]]:
        units = self.status(job).units
        for first in range(0, units, keys.UNITS_PER_BUCKET):
            if first // keys.UNITS_PER_BUCKET in exclude:
                continue
            key = keys.bucket_key(job, part, first)
            with reading(job):
                found: dict[bytes, bytes] = self.caller.command("HGETALL", key)
                numbered = sorted(_numbered(found))
            yield from numbered

    def _listed(self, job: str) -> JobStatus | None:
        """Return a job as shown in lists, including its damage; None if it no longer exists."""
        try:
            status = self._status(job)
            damage = tuple(self.find_damage(job))
        except JobMissing:
            return None
        except JobDamaged as error:
            return unreadable(job, error.damage)
        return unreadable(job, damage) if status is None else replace(status, damage=damage)

    def _status(self, job: str) -> JobStatus | None:
        with reading(job):
            return self._read_status(job)

    def _read_status(self, job: str) -> JobStatus | None:
        def look() -> list[Any]:
            pipeline = self.caller.client.pipeline(transaction=True)
            pipeline.hgetall(keys.job_key(job, "meta"))
            pipeline.hgetall(keys.job_key(job, "tot"))
            pipeline.hvals(keys.job_key(job, "live"))
            pipeline.hlen(keys.job_key(job, "bad"))
            pipeline.zcard(keys.job_key(job, "issued"))
            pipeline.zcard(keys.job_key(job, "lease"))
            pipeline.zcard(keys.job_key(job, "suspects"))
            pipeline.hvals(keys.job_key(job, "fails"))
            pipeline.zrange(keys.job_key(job, "issued"), 0, 0, withscores=True)
            pipeline.time()
            return pipeline.execute()

        raw_meta, totals, live, bad, issued, leased, suspects, fails, oldest, (seconds, micros) = (
            self.caller.insist(look)
        )
        if not raw_meta:
            return None
        meta = {field.decode(): value.decode() for field, value in raw_meta.items()}

        def time_ms(field: str) -> int | None:
            return int(meta[field]) if field in meta else None

        units, left = int(meta["units"]), int(meta["left"])
        return JobStatus(
            job=job,
            state=JobState(meta["state"]),
            epoch=int(meta["epoch"]),
            sealed=meta["sealed"] == "1",
            units=units,
            pending=left,
            done=units - left - bad,
            quarantined=bad,
            issued=issued,
            leased=leased,
            suspects=suspects,
            totals=_counts(totals),
            live=sum_live(live),
            created_ms=int(meta["created_ms"]),
            started_ms=time_ms("started_ms"),
            finished_ms=time_ms("finished_ms"),
            now_ms=seconds * 1000 + micros // 1000,
            last_error=meta.get("last_error"),
            cause=meta.get("end_cause", ""),
            error_ms=time_ms("error_ms"),
            error_done=int(meta.get("error_done", "0")),
            declined=meta.get("declined"),
            declined_ms=time_ms("declined_ms"),
            trouble=meta.get("trouble"),
            trouble_ms=time_ms("trouble_ms"),
            published="published_ms" in meta,
            failing=len(fails),
            fails=sum(map(int, fails)),
            oldest_issued_ms=int(oldest[0][1]) if oldest else None,
            progress_ms=time_ms("progress_ms"),
            paused_ms=time_ms("paused_ms"),
            paused_total_ms=int(meta.get("paused_total_ms", "0")),
            idle_ms=int(meta.get("idle_ms", "0")),
            pace=Pace.unpack(meta.get("pace", "")),
            priority=meta.get("priority", NORMAL),
            labels={field: meta[field] for field in sorted(meta.keys() - OWN_FIELDS)},
        )


@contextmanager
def reading(job: str) -> Iterator[None]:
    """Raise JobDamaged for whatever cannot be read of a job within this context."""
    try:
        yield
    except redis.ResponseError as error:
        if not str(error).startswith(("WRONGTYPE", "Command # ")) or "WRONGTYPE" not in str(error):
            raise
        raise JobDamaged(job, ["one of its keys has another type"]) from error
    except (ValueError, KeyError, IndexError) as error:
        reason = f"its keys are unreadable ({type(error).__name__}: {error})"
        raise JobDamaged(job, [reason[:REASON_CHARS_MAX]]) from error


def _counts(found: dict[bytes, bytes]) -> dict[str, int]:
    return {field.decode(): int(value) for field, value in found.items()}


def _numbered(found: dict[bytes, bytes]) -> Iterator[tuple[int, str]]:
    return ((int(unit), value.decode()) for unit, value in found.items())

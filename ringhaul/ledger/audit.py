"""Whether what Redis holds of a job adds up.

Redis can lose single keys of a job: by a `maxmemory-policy` that evicts, or because somebody
deleted them. What is left looks like a smaller job. So each report first compares counts that are
kept in different keys, all read by one script at one moment. Pure, but for what it is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ringhaul.errors import EXIT_FATAL, Terminal

#: What users know the keys by.
_NAMES = {
    "meta": "its state",
    "spec": "what it is",
    "done": "which units are done",
    "bad": "which units were given up",
    "extras": "rejects, parts and partial results",
    "tot": "its totals",
    "lat": "its latencies",
}
#: The longest number that is taken for one; longer ones are not numbers of a ledger.
_DIGITS_MAX = 19


class JobDamaged(Terminal):
    """Part of what the ledger held of a job is gone or cannot be read."""

    exit_code = EXIT_FATAL

    def __init__(self, job: str, damage: Sequence[str]) -> None:
        self.job, self.damage = job, tuple(damage)
        super().__init__(
            f"job {job} is DAMAGED: {'; '.join(damage)}. Nobody can tell its counts, and it cannot "
            "be resumed. Keys of Redis were evicted, deleted or written by something else: "
            "`ringhaul doctor` looks at its settings. What the job wrote until then is still there"
        )


@dataclass(frozen=True, kw_only=True)
class Held:
    """What Redis holds of one job, at one moment. None: made by an older version."""

    units: int  #: that were split
    left: int  #: neither done nor given up
    specs: int  #: of units
    results: int
    has_spec: bool
    done: int  #: bits that are set
    bad: int
    extras: int
    live: int  #: units whose progress is kept: at work, or stopped until a resume
    kept: int | None  #: how many extras there should be
    sum_tot: int  #: over all fields
    sum_tot_due: int | None  #: what it should be
    sum_lat: int
    sum_lat_due: int | None
    counted: int | None  #: commits that the sums include; an older version's are not among them
    kept_is_known: bool  #: no older version resumed the job, which drops extras
    unreadable: tuple[str, ...] = ()  #: keys that have another type


def unpack_held(answer: Sequence[bytes | int | list[bytes]]) -> Held | list[str]:
    """The answer of the script `audit`; or the parts that are there without any meta.

    Raises `ValueError` for what is no number.
    """
    state, *rest = answer
    if state == b"":
        return [part.decode() for part in rest if isinstance(part, bytes)]
    units, left, kept, sum_tot, sum_lat, counted, epoch, kept_epoch, wrong, *counts = rest
    assert isinstance(wrong, bytes)
    specs, results, has_spec, done, bad, extras, live, totals, latencies = counts
    return Held(
        units=_number(units),
        left=_number(left),
        specs=_number(specs),
        results=_number(results),
        has_spec=bool(has_spec),
        done=_number(done),
        bad=_number(bad),
        extras=_number(extras),
        live=_number(live),
        kept=_maybe(kept),
        sum_tot=_sum(totals),
        sum_tot_due=_maybe(sum_tot),
        sum_lat=_sum(latencies),
        sum_lat_due=_maybe(sum_lat),
        counted=_maybe(counted),
        kept_is_known=kept_epoch in (b"", epoch),
        unreadable=tuple(wrong.decode().split()),
    )


def find_damage(held: Held) -> list[str]:
    """What does not add up, in words; empty if all of it does."""
    damage = [
        f"{_NAMES.get(part, part)} (key {part}) is of another type" for part in held.unreadable
    ]
    if not held.has_spec:
        damage.append("what it is (key spec) is gone")
    if held.specs != held.units:
        damage.append(f"{held.specs:,} of {held.units:,} units are there")
    done = held.units - held.left - held.bad
    if held.done != done:
        damage.append(f"{held.done:,} units are marked done and {done:,} should be")
    if held.results != held.done:
        damage.append(f"results of {held.results:,} units are there and {held.done:,} are done")
    # Workers of an older version may take part while hosts are brought up to date, one by one. What
    # they add is in none of the counts; nothing is taken away by that.
    mixed = held.counted is not None and held.counted < held.done
    if held.kept is not None and held.kept_is_known:
        most = held.extras if mixed else held.kept + held.live
        if not held.kept <= held.extras <= most:
            damage.append(
                f"{_NAMES['extras']} of {held.extras:,} units are there and {held.kept:,} should be"
            )
    if _differs(held.sum_tot, held.sum_tot_due, mixed=mixed):
        damage.append("its totals are not the sums of what was counted")
    if _differs(held.sum_lat, held.sum_lat_due, mixed=mixed):
        damage.append("its latencies are not all there")
    return damage


def _differs(there: int, due: int | None, *, mixed: bool) -> bool:
    """Whether a sum is not what it should be, or less than that where it has parts not counted."""
    return due is not None and (there < due if mixed else there != due)


def _number(value: object) -> int:
    if isinstance(value, bytes):
        if len(value) > _DIGITS_MAX:
            raise ValueError(f"not a number: {value[:20]!r}")
        return int(value)
    if not isinstance(value, int):
        raise ValueError(f"not a number: {value!r:.20}")
    return value


def _maybe(value: object) -> int | None:
    return None if value == b"" else _number(value)


def _sum(values: object) -> int:
    if not isinstance(values, list):
        raise ValueError("not a list of numbers")
    return sum(map(_number, values))

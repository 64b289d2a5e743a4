"""Check whether what Redis holds of a job is consistent.

Redis can lose single keys of a job: through a `maxmemory-policy` that evicts, or because they were
deleted. The rest looks like a smaller job. So each report first compares counts that are kept in
different keys, all read by one script at one moment. Pure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ringhaul.errors import EXIT_FATAL, Terminal

#: The keys in users' terms.
_NAMES = {
    "meta": "its state",
    "spec": "its description",
    "done": "which units are done",
    "bad": "which units were given up",
    "extras": "rejects, parts and partial results",
    "tot": "its totals",
    "lat": "its latencies",
}
#: The longest text that is taken for a number; longer texts are not numbers of a ledger.
_DIGITS_MAX = 19
_ERROR_CHARS_MAX = 200
#: Errors of a script that finds a key of another type, or text instead of a number.
_UNREADABLE = re.compile(
    r"WRONGTYPE|hash value is not an integer|attempt to (?:compare|perform arithmetic|concatenate)"
    r"|attempt to call|number expected|bad argument|not an integer|value is not a valid float"
)


class JobDamaged(Terminal):
    """Part of what the ledger held of a job is lost or unreadable."""

    exit_code = EXIT_FATAL

    def __init__(self, job: str, damage: Sequence[str]) -> None:
        self.job, self.damage = job, tuple(damage)
        super().__init__(
            f"job {job} is DAMAGED: {'; '.join(damage)}. Its counts are unknown, and it cannot "
            "be resumed. Keys of Redis were evicted, deleted or written by something else: "
            "`ringhaul doctor` checks its settings. What the job wrote until then still exists"
        )


def unreadable(job: str, error: str) -> JobDamaged | None:
    """Return what the error of a script says about a job's keys; None if it is about something
    else."""
    if not _UNREADABLE.search(error):
        return None
    return JobDamaged(job, [f"its keys are unreadable ({error[:_ERROR_CHARS_MAX]})"])


@dataclass(frozen=True, kw_only=True)
class Held:
    """Redis's data of one job, at one moment. None: made by an older version."""

    units: int  #: units split
    pending: int  #: neither done nor quarantined
    specs: int  #: units with a spec
    results: int
    has_spec: bool
    done: int  #: bits set
    quarantined: int
    extras: int
    live: int  #: units with live progress: in progress, or stopped until a resume
    kept: int | None  #: how many extras there should be
    sum_tot: int  #: sum over all fields
    sum_tot_due: int | None  #: what it should be
    sum_lat: int
    sum_lat_due: int | None
    counted: int | None  #: commits included in the sums; an older version's commits are not
    kept_is_known: bool  #: no older version resumed the job, which drops extras
    unreadable: tuple[str, ...] = ()  #: keys of another type


def unpack_held(answer: Sequence[bytes | int | list[bytes]]) -> Held | list[str]:
    """Return the response of the script `audit`; or the existing parts of a job without meta.

    Raises `ValueError` for text that is not a number.
    """
    state, *rest = answer
    if state == b"":
        return [part.decode() for part in rest if isinstance(part, bytes)]
    units, left, kept, sum_tot, sum_lat, counted, epoch, kept_epoch, wrong, *counts = rest
    assert isinstance(wrong, bytes)
    specs, results, has_spec, done, bad, extras, live, totals, latencies = counts
    return Held(
        units=_number(units),
        pending=_number(left),
        specs=_number(specs),
        results=_number(results),
        has_spec=bool(has_spec),
        done=_number(done),
        quarantined=_number(bad),
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
    """Return descriptions of what is inconsistent; empty if nothing is."""
    damage = [f"{_NAMES.get(part, part)} (key {part}) has another type" for part in held.unreadable]
    if not held.has_spec:
        damage.append("its description (key spec) is lost")
    if held.specs != held.units:
        damage.append(f"{held.specs:,} of {held.units:,} units exist")
    done = held.units - held.pending - held.quarantined
    if held.done != done:
        damage.append(f"{held.done:,} units are marked done and {done:,} should be")
    if held.results != held.done:
        damage.append(f"results of {held.results:,} units exist and {held.done:,} are done")
    # Workers of an older version may take part while hosts are updated one by one. What they add is
    # in no count; they never remove anything.
    mixed = held.counted is not None and held.counted < held.done
    if held.kept is not None and held.kept_is_known:
        most = held.extras if mixed else held.kept + held.live
        if not held.kept <= held.extras <= most:
            damage.append(
                f"{_NAMES['extras']} of {held.extras:,} units exist and {held.kept:,} should be"
            )
    if _differs(held.sum_tot, held.sum_tot_due, mixed=mixed):
        damage.append("its totals do not match what was counted")
    if _differs(held.sum_lat, held.sum_lat_due, mixed=mixed):
        damage.append("some of its latencies are lost")
    return damage


def _differs(there: int, due: int | None, *, mixed: bool) -> bool:
    """Return whether a sum differs from its due; in a mixed job only if it is smaller."""
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

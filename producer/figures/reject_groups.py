"""Rejects of a job grouped by stage, column and reason, with a few samples of each.

Reasons quote values: "12,50" is not a whole number. Groups are named by the rest of the reason, so
that a million bad values make one group, and so that reports without data of rows show none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from producer.spool_names import path_as_given
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.plain_text import as_line
from ringhaul.records.rejects import Reject, unpack_rejects
from ringhaul.statements.result import split_extra

GROUPS_MAX = 40
SAMPLES_MAX = 3
#: How much of a reason and of a record a sample shows.
REASON_CHARS_MAX = 240
RECORD_CHARS_MAX = 240

#: What reasons consist of besides values, as they are named here: the most telling first. A reason
#: without any of these is named after its stage: a server or a transform may quote a value in any
#: form.
_PHRASES = (
    "is not a timestamp",
    "is outside the timestamps that Cassandra can hold",
    "may be a date or milliseconds since 1970",
    "is not at midnight",
    "is not a date",
    "is more than a date",
    "is not a time of day",
    "has more than 9 digits after the second",
    "is past 23:59:59",
    "which the month lacks",
    "of a 12-hour clock",
    "is outside the offsets",
    "is not a whole number",
    "is not a decimal number",
    "is not a number",
    "has a scale outside",
    "has more digits than a double",
    "is outside the range of",
    "is outside",
    "is not one of the words for true",
    "is not a duration",
    "is not an IPv4 or IPv6 address",
    "is not a UUID",
    "is not base64",
    "is neither 0x",
    "is not the name of a zone",
    "has an exponent beyond",
    "is not hex",
    "invalid UTF-8",
    "half of a surrogate pair",
    "which JSON does not have",
    "INT96 outside the years",
    "holds a NUL byte",
    "null is not allowed",
    "an empty value is not allowed",
    "elements where the vector has",
    "elements where the tuple has",
    "not a [key, value] pair",
    "no field is named",
    "no column is named",
    "occurs twice in an object",
    "occurs twice in",
    "does not exist in",
    "not a JSON object",
    "is not an object",
    "nesting is too deep",
    "not JSON",
    "not a CQL literal",
    "not readable:",
    "empty partition key",
    "empty key",
    "partition key of",
    "a partition key is at most",
    "no row has this key",
    "the condition did not hold",
)
_QUOTED = re.compile('".*"', re.DOTALL)
_FIELDS = "has another number of fields"
#: The names of reasons that have none of the phrases, by stage.
_OF_STAGE = {
    "split": "the record has no end",
    "parse": "not a record of this format",
    "convert": "its worker was lost",
    "transform": "the transform failed",
    "cast": "not a value of this type",
    "key": "no usable key",
    "write": "refused by the server",
    "read": "could not be read",
    "doubt": "not known whether it was applied",
    "missing": "no row has this key",
    "condition": "the condition did not hold",
    "differs": "the table has another value",
}


@dataclass(frozen=True, kw_only=True)
class RejectSample:
    """One reject of a group."""

    place: str  #: File, line and byte; or the table.
    reason: str  #: Empty if data of rows is not shown.
    record: str  #: The first characters; empty if data of rows is not shown or not kept.


@dataclass(frozen=True, kw_only=True)
class RejectGroup:
    """Rejects of one stage, column and reason."""

    stage: str
    column: str  #: Empty: the whole record was rejected.
    reason: str  #: Without values of rows.
    count: int
    samples: tuple[RejectSample, ...]


@dataclass(frozen=True, kw_only=True)
class RejectGroups:
    """The rejects of a job, the largest groups first."""

    groups: tuple[RejectGroup, ...] = ()
    read: int = 0  #: Rejects that were grouped.
    others: int = 0  #: Rejects in groups that are not listed, because there are too many groups.
    whole: bool = True  #: All rejects were grouped, and not only the first.


def group_rejects(
    rejects: Iterable[Reject], job: str, *, show_data: bool, rejects_max: int | None = None
) -> RejectGroups:
    """Group the rejects, or the first `rejects_max` of them, which are of `job`."""
    counts: dict[tuple[str, str, str], int] = {}
    samples: dict[tuple[str, str, str], list[RejectSample]] = {}
    read, whole = 0, True
    for reject in rejects:
        if rejects_max is not None and read >= rejects_max:
            whole = False
            break
        read += 1
        group = (reject.stage, reject.column or "", reason_kind(reject.stage, reject.reason))
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= SAMPLES_MAX:
            samples.setdefault(group, []).append(_sample(reject, job, show_data=show_data))
    chosen = sorted(counts, key=lambda group: (-counts[group], group))[:GROUPS_MAX]
    groups = tuple(
        RejectGroup(
            stage=stage,
            column=column,
            reason=reason,
            count=counts[stage, column, reason],
            samples=tuple(samples[stage, column, reason]),
        )
        for stage, column, reason in chosen
    )
    others = read - sum(group.count for group in groups)
    return RejectGroups(groups=groups, read=read, others=others, whole=whole)


def rejects_of(ledger: Ledger, status: JobStatus) -> Iterator[Reject]:
    """Yield the rejects of a job of any kind in the order of the input; none for a job that can
    have none."""
    kind = JobKind.of_labels(status.labels)
    if kind.has_result or not (kind.runs_statements or _has_rejected(status)):
        return
    for _, extra in ledger.extras(status.job):
        yield from unpack_rejects(_log_of(kind, extra))


def reason_kind(stage: str, reason: str) -> str:
    """Return what a reason says, without the values that it quotes."""
    words = _QUOTED.sub("", reason)
    for phrase in _PHRASES:
        if phrase in words:
            return phrase
    if stage == "parse" and words.startswith("has ") and ", expected " in words:
        return _FIELDS
    return _OF_STAGE.get(stage, "rejected")


def _has_rejected(status: JobStatus) -> bool:
    """Return whether records were rejected, by committed units or by a unit that alone exceeded
    the limit."""
    return status.totals.get("rejected", 0) + status.live.rejected > 0


def _log_of(kind: JobKind, extra: bytes) -> bytes:
    if kind.is_load:
        return extra
    return split_extra(extra)[1]


def _sample(reject: Reject, job: str, *, show_data: bool) -> RejectSample:
    file = path_as_given(reject.file, job)
    place = f"{file}:{reject.line} byte {reject.offset:,}" if reject.line else file
    return RejectSample(
        place=as_line(place),
        reason=_cut(reject.reason, REASON_CHARS_MAX) if show_data else "",
        record=_record(reject) if show_data else "",
    )


def _record(reject: Reject) -> str:
    if reject.data is None:
        return ""
    return _cut(reject.data[: 4 * RECORD_CHARS_MAX].decode("utf-8", "replace"), RECORD_CHARS_MAX)


def _cut(text: str, chars_max: int) -> str:
    line = as_line(text[: chars_max + 1])
    return line if len(line) <= chars_max else f"{line[:chars_max]}..."

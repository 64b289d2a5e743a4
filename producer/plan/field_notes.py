"""Notes, once per job, about fields that are loaded in a surprising way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from producer.notes import Note
from producer.plan.partitions import partition_notes
from producer.request.load import LoadDraft
from ringhaul.cluster.schema import TableSchema, appends
from ringhaul.ledger.kinds import JobKind
from ringhaul.mapping.language import MappingText, Term
from ringhaul.records.job import LoadJob, LoadSource

#: How many fields are named; a file may write all its names in capitals.
SHOWN_MAX = 3


def field_notes(request: LoadDraft, job: LoadJob) -> list[Note]:
    """Return the notes about the fields of a load's or verification's sources."""
    verb = "loaded into" if request.kind is JobKind.LOAD else "compared with"
    lines = [
        # A table that is made for the files has its columns from them, and shows their names.
        *([] if request.mapping or request.create_table else case_notes(job.sources, verb=verb)),
        *left_out_notes(request, job.sources, job.table),
        *unused_times_notes(request, job.sources, job.table),
        *shifted_times_notes(request, job.sources, job.table),
    ]
    return [*map(Note, lines), *partition_notes(request, job.sources, job.table)]


def case_notes(sources: Sequence[LoadSource], *, verb: str = "loaded into") -> list[str]:
    """Return one line about such fields of all sources, or none. `verb`: what becomes of them."""
    pairs = {
        (field, column): None
        for source in sources
        for field, column in source.mapping
        if field != column and field.lower() == column.lower()
    }
    if not pairs:
        return []
    (field, column), *others = pairs
    parts = [f"field {field} is {verb} column {column}"]
    parts += [f"{field} {verb} {column}" for field, column in others[: SHOWN_MAX - 1]]
    if len(pairs) > SHOWN_MAX:
        parts.append(f"and {len(pairs) - SHOWN_MAX:,} more whose names differ in case")
    return [", ".join(parts)]


def left_out_notes(
    request: LoadDraft, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return one line about write times and TTLs that a verification leaves out, or none."""
    if request.kind is not JobKind.VERIFY:
        return []
    found: dict[str, None] = {}
    for source in sources:
        fields = source.results or source.fields
        if request.mapping:
            names = [name for name in _timed(request.mapping, fields) if name not in source.loaded]
        else:
            names = [*request.skipped(fields, table.column_names)]
        found |= dict.fromkeys(name for name in names if name not in request.skip_columns)
    if not found:
        return []
    why = "--times compares write times and TTLs"
    if request.times:  # what can be compared is a column of the table then
        why = "the table has no such time: a key has none, and each element of a collection its own"
    return [f"not compared: {_shown(found)} ({why})"]


def _timed(mapping: MappingText, fields: Sequence[str]) -> Iterator[str]:
    """Yield the fields that a mapping calls times of columns or rows."""
    for left, right in mapping.entries:
        if right is not None and right.times is not None and left.text in fields:
            yield left.text
        elif left.times is not None and right is not None and right.text in fields:
            yield right.text
    for name in fields:
        times = Term(name).times
        if times is not None and times[0] in mapping.every_time:
            yield name


def unused_times_notes(
    request: LoadDraft, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return the lines about fields with times that a load leaves out, because their columns have
    none here, and about an option for which there are no fields."""
    mapping = request.mapping
    if request.kind is not JobKind.LOAD or not mapping.every_time:
        return []
    lines = []
    found: dict[str, None] = {}
    for source in sources:
        for name in source.results or source.fields:
            times = Term(name).times
            if times is None or times[0] not in mapping.every_time or name in source.loaded:
                continue
            if name not in request.skip_columns and name not in table.column_names:
                found[name] = None
    if found:
        why = "a column of the key has none, and neither has one that is not loaded"
        lines.append(f"not loaded: {_shown(found)} ({why})")
    given = {
        "writetime": any(s.column_times or s.fixed_times or s.timestamp_field for s in sources),
        "ttl": any(s.column_ttls or s.fixed_ttls or s.ttl_field for s in sources),
    }
    unused = [name for name in mapping.every_time if not given[name]]
    if unused and not found:
        options = " and ".join(map(mapping.source_of, unused))
        lines.append(
            f"{options}: no loaded column has a time of its own. One that is not frozen has a time "
            "for each element"
        )
    return lines


def _shown(names: Collection[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
    return f"{', '.join([*names][:SHOWN_MAX])}{more}"


def shifted_times_notes(
    request: LoadDraft, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return one line about given write times that are not kept exactly, or none."""
    given = request.timestamp is not None or request.timestamp_field is not None
    given = given or any(
        source.column_times or source.timestamp_field or source.fixed_times for source in sources
    )
    if request.kind is not JobKind.LOAD or not given or request.exact_timestamps:
        return []
    loaded = {column for source in sources for column in source.columns}
    lists = [name for name in table.column_names if name in loaded and appends(table.type_of(name))]
    if not lists:
        return []
    return [
        f"write times are not kept exactly: {', '.join(lists[:SHOWN_MAX])} of {table.name} "
        f"{'is a list that is' if len(lists) == 1 else 'are lists that are'} not frozen, and rows "
        "are written a little later the longer the job takes, 1 us for each ms, so that a retry "
        "cannot double elements. To keep the times of the other columns, load the lists in a "
        "separate job (--skip-columns); --exact-timestamps keeps all, and rejects rows that would "
        "have to be sent again"
    ]

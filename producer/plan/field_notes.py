"""Say what becomes of fields in a way that a user may not expect, once for a job."""

from __future__ import annotations

from collections.abc import Sequence

from producer.plan.partitions import partition_notes
from producer.request.load import LoadRequest
from ringhaul.cluster.schema import TableSchema, appends
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.job import LoadJob, LoadSource

#: How many fields are named; a file may write all its names in capitals.
SHOWN_MAX = 3


def field_notes(request: LoadRequest, job: LoadJob) -> list[str]:
    """Return the lines about the fields of a load's or verification's sources."""
    verb = "loaded into" if request.kind is JobKind.LOAD else "compared with"
    return [
        # A table that is made for the files has its columns from them, and shows their names.
        *([] if request.mapping or request.create_table else case_notes(job.sources, verb=verb)),
        *([] if request.mapping else left_out_notes(request, job.sources, job.table)),
        *shifted_times_notes(request, job.sources, job.table),
        *partition_notes(request, job.sources, job.table),
    ]


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
    request: LoadRequest, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return one line about write times and TTLs that a verification leaves out, or none."""
    found = dict.fromkeys(
        name
        for source in sources
        for name in request.skipped(source.results or source.fields, table.column_names)
        if name not in request.skip_columns
    )
    if not found:
        return []
    names = ", ".join([*found][:SHOWN_MAX])
    more = f" and {len(found) - SHOWN_MAX:,} more" if len(found) > SHOWN_MAX else ""
    return [f"not compared: {names}{more} (--times compares write times and TTLs)"]


def shifted_times_notes(
    request: LoadRequest, sources: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    """Return one line about given write times that are not kept exactly, or none."""
    given = request.timestamp is not None or request.timestamp_field is not None
    given = given or any(source.column_times or source.timestamp_field for source in sources)
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

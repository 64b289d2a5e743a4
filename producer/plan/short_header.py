"""Notice a header that lacks the name of its first field, as R's `write.table` writes one.

Every record then has one field more than the header. To leave out the last one, which a message
about such a record may suggest, would shift all values.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from producer.plan.files import first_fields
from producer.plan.heads import LOOK_BYTES, SourceHead, without_first
from producer.request.input_draft import InputDraft
from producer.text import count_text
from ringhaul.cluster.schema import TableSchema
from ringhaul.formats.split import Position, read_blocks
from ringhaul.formats.suffixes import format_of
from ringhaul.option_names import input_option
from ringhaul.records.unit import TO_THE_END

#: How many records are looked at.
RECORDS_MAX = 100
#: What the first field is called if it is no column.
_NAME = "row"


def short_header(
    request: InputDraft,
    head: SourceHead,
    names: Sequence[str],
    start: Position,
    table: TableSchema,
) -> str:
    """Return what to do about a header that names one field fewer than each of the first records
    has; empty if no field lacks a name, or if the records' last field is empty, as a delimiter at
    the end of lines leaves it.

    `names`: the names in the header; `start`: the position behind it. `request`: how many records
    of the file are skipped. `table`: the table of the file, or the markers of a statement.
    """
    is_csv = format_of(head.file.path, request.file_format) == "csv"
    if not request.header or request.columns or not is_csv:
        return ""
    records = _longer_records(request, head, len(names) + 1, start)
    if not any(record[-1] for record in records):
        return ""
    extra = input_option("allow-extra-fields")
    return (
        f"each of its first {count_text(len(records), 'record')} has {len(names) + 1} fields, and "
        f"its header names {len(names)}. If the first field has no name, as in files of R's "
        f"write.table, {_advice(names, table)}; {extra} would leave out the last field "
        "instead, and shift all values"
    )


def _longer_records(
    request: InputDraft, head: SourceHead, count: int, start: Position
) -> list[list[bytes]]:
    """Return the fields of the first loaded records if each has `count` of them; else nothing."""
    dialect, skip = request.dialect, request.skip_rows
    start = start._replace(ordinal=0)
    with head.records(start.offset_bytes, TO_THE_END, dialect) as stream:
        for block in read_blocks(stream, dialect, block_bytes=LOOK_BYTES, start=start):
            if block.position.ordinal + block.records_count > skip:
                return _all_of(count, first_fields(without_first(block, skip), dialect))
    return []


def _all_of(count: int, records: Iterator[list[bytes]]) -> list[list[bytes]]:
    """Return the first records, if each has `count` fields."""
    found = []
    for record in islice(records, RECORDS_MAX):
        if len(record) != count:
            return []
        found.append(record)
    return found


def _advice(names: Sequence[str], table: TableSchema) -> str:
    """Return the options that name all fields: the first is the only column that must be there and
    is not, or it is left out."""
    option, skip = input_option("columns"), input_option("skip-columns")
    there = {name.lower() for name in names}
    missing = [c for c in table.primary_key or table.column_names if c.lower() not in there]
    name, left_out = (missing[0], "") if len(missing) == 1 else (_NAME, f" {skip} {_NAME}")
    if name in names or any("," in one or one != one.strip() or not one for one in names):
        return f"name all fields by {option}"
    return f"give {option} {shlex.quote(','.join([name, *names]))}{left_out}"

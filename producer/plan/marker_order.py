"""Check the order of fields that fill a statement's markers from a file without a header.

An UPDATE has its key last, and files usually have it first. If both orders fit the types, the
wrong one writes wrong rows without an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from producer.plan.heads import Heads
from producer.request.input_draft import InputDraft
from ringhaul.cql.cells import NULL_LENGTH
from ringhaul.cql.nested import encode_column
from ringhaul.errors import UsageError
from ringhaul.formats.csv_read import read_block
from ringhaul.formats.suffixes import format_of
from ringhaul.option_names import input_option
from ringhaul.records.blanks import without_empties
from ringhaul.records.job import LoadSource
from ringhaul.statements.values import StatementValues


def orders_by_markers(request: InputDraft) -> bool:
    """Return whether only the order of the statement's markers decides which field is which."""
    return not request.header and not request.columns and not request.mapping


def refuse_unsaid_order(request: InputDraft, names: Sequence[str]) -> None:
    """Raise `UsageError` for an update of counters, which cannot be undone by writing the right
    rows."""
    if orders_by_markers(request):
        columns, given = input_option("columns"), ",".join(names)
        raise UsageError(
            "the file has no header, and an addition to the counter of a wrong row cannot be "
            f"undone: name the fields, with {columns} {given} if they are in the markers' order"
        )


def order_warning(
    request: InputDraft,
    heads: Heads,
    job: StatementValues,
    names: Sequence[str],
    usual: Sequence[str],
) -> str:
    """Return a warning if the first records also fit the table's order of columns; empty if not.

    `names`: names of the fields, in the markers' order. `usual`: the names in the table's order.
    """
    if not orders_by_markers(request) or list(names) == list(usual):
        return ""
    source = next((one for one in job.sources if _is_csv(request, one)), None)
    if source is None or not _fits(heads, job, source, names, usual):
        return ""
    columns = input_option("columns")
    return (
        f"warning: {source.file.path} has no header, so its fields are taken in the markers' "
        f"order: {', '.join(names)}. They fit the table's order as well: {', '.join(usual)}. Give "
        f"the right one: {columns} {','.join(names)} or {columns} {','.join(usual)}"
    )


def _is_csv(request: InputDraft, source: LoadSource) -> bool:
    return format_of(source.file.path, request.file_format) == "csv"


def _fits(
    heads: Heads,
    job: StatementValues,
    source: LoadSource,
    names: Sequence[str],
    usual: Sequence[str],
) -> bool:
    skips = source is job.sources[0] or job.bounds_per_source
    block = heads[source.file].first_block(job.dialect, job.ordinal_first if skips else 0)
    if block.defect is not None:
        return False
    read = read_block(block, job.dialect, names, names)
    if not len(read.records):
        return False
    for name, values in zip(usual, read.columns, strict=True):
        kind = job.table.parsed_type(name)
        given = without_empties(kind, values)
        if encode_column(kind, given, job.text, null_length=NULL_LENGTH).faults:
            return False
    return True

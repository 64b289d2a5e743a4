"""Plan a lookup or an exec: its statement, the markers that fields fill, its units."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage

from config.settings import Loaded, Settings
from producer.notes import Note, warnings
from producer.options.statements import StatementOptions
from producer.outputs.stdout_parts import StdoutParts, beginning
from producer.plan.dialect_warnings import dialect_warnings
from producer.plan.empties import with_empties
from producer.plan.field_notes import case_notes
from producer.plan.heads import Heads
from producer.plan.marker_order import order_warning, refuse_unsaid_order
from producer.plan.plan import Plan
from producer.plan.sources import plan_sources, with_empty
from producer.request.conflicts import refuse_stdout_detach
from producer.request.input_draft import InputDraft
from producer.request.output import STDOUT, refuse_two_on_stdout, wants_header
from producer.text import count_text
from ringhaul.cluster.errors import translate_error
from ringhaul.cluster.prepared import Marked, Prepared, marked
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.types import CqlType, Fields
from ringhaul.destination.cql import UNITS_PER_SLOT
from ringhaul.errors import UsageError
from ringhaul.formats.write import refuse_blank_lines
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import Output
from ringhaul.records.job import ORDINAL_END, LoadSource
from ringhaul.statements.exec import APPLIED
from ringhaul.statements.idempotence import Effect, effect_of
from ringhaul.statements.job import SpanUnit, StatementJob
from ringhaul.statements.parameter_ranges import Span, parse_span, rows_count
from ringhaul.statements.result import split_extra
from ringhaul.statements.values import StatementValues
from tasks.cluster_settings import cluster_config

#: Bounds of a unit: bytes of a file, rows of ranges. Small, because all rows of a unit that must
#: not be repeated are in doubt if its worker dies.
UNIT_BYTES = (64 << 10, 4 << 20)


UNIT_ROWS = (1_000, 100_000)


@dataclass(frozen=True)
class PreparedStatement:
    """The statement of an exec: as the servers describe it, and what it does."""

    prepared: Prepared
    effect: Effect
    markers: Marked
    result: Marked  #: columns of the returned rows; empty for a plain write


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """The facts in which `lookup` and `exec` differ."""

    kind: JobKind
    markers: tuple[tuple[str, str], ...]  #: name and CQL type of each marker
    result: tuple[tuple[str, CqlType], ...]
    never_null: tuple[str, ...] = ()  #: columns of the result, as far as the schema shows
    user_types: tuple[tuple[str, Fields], ...] = ()
    target: str
    #: A lookup's table, key columns, and columns to read.
    table: TableSchema | None = None
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    #: An exec's statement, and whether it may run twice for a row.
    statement: str = ""
    repeatable: bool = True
    keyspace: str | None = None  #: keyspace of an exec's table, if known
    dated: bool = False  #: rows are written, at fixed times
    nulls: str = "tombstone"  #: see `InputRules`: how a field without a value is bound
    #: Name of a marker that repeats an earlier marker's value -> the earlier marker's name.
    repeated: tuple[tuple[str, str], ...] = ()
    #: Names of markers that are write times and TTLs.
    timestamps: tuple[str, ...] = ()
    ttls: tuple[str, ...] = ()
    #: Names of the markers in the order of their table's columns; empty: not known.
    usual_order: tuple[str, ...] = ()
    counters: bool = False  #: it adds to counters

    @property
    def fields(self) -> list[str]:
        """The names of the values of a row, in the order of the markers."""
        again = dict(self.repeated)
        return [name for name, _ in self.markers if name not in again]


def plan_statements(
    options: StatementOptions,
    request: InputDraft,
    facts: StatementFacts,
    output: Output,
    heads: Heads,
    ranges: Sequence[str],
    cluster: ClusterView,
    settings: Settings,
    slots: int,
) -> Plan:
    """Plan the job of a lookup or an exec, and where its rows go.

    `heads`, `ranges`: the files and the ranges of its values. `output`: where rows go if there
    are any. `slots`: worker processes that share the job. Raises `UsageError` for options that do
    not fit the statement, and for values that do not fit its markers.
    """
    to_stdout = options.output == STDOUT
    if facts.result:
        refuse_two_on_stdout(options.output, options)
        if to_stdout:
            refuse_stdout_detach(options)
    spans = [parse_span(text) for text in ranges]
    values = values_job(request, facts, heads, spans, slots)
    notes = _value_notes(request, facts, heads, values)
    refuse_blank_lines(output.format, nullable_names(facts))
    job = StatementJob(
        kind=facts.kind,
        cluster_name=cluster.name,
        values=values,
        spans=tuple(ranges),
        result=facts.result,
        ordered=options.order == "input",
        timestamp_us=first_timestamp_us(facts),
        consistency=settings.cluster.consistency,
        output=output if facts.result else None,
        streams=to_stdout,
        table=facts.table,
        key=facts.key,
        columns=facts.columns,
        statement=facts.statement,
        repeatable=facts.repeatable,
    )
    rows = rows_count(spans)
    size = count_text(rows, "row") if spans else count_text(len(values.sources), "file")
    return Plan(
        job=job,
        units=range_units(rows, slots) if spans else (),
        target=facts.target,
        headline=f"{job.kind} {facts.target}   {size}",
        notes=notes,
        own_workers=job.streams_rows,
        printer=_printer(options, job, output) if job.streams_rows else None,
        keyspace=facts.keyspace,
    )


def _value_notes(
    request: InputDraft, facts: StatementFacts, heads: Heads, values: StatementValues
) -> list[Note]:
    """Return the notes about the files of values."""
    notes = warnings(dialect_warnings(request, heads, values.sources, values.table))
    if facts.usual_order and values.sources:
        line = order_warning(request, heads, values, facts.fields, facts.usual_order)
        notes += warnings([line] if line else [])
    return [*notes, *(Note(line) for line in case_notes(values.sources, verb="taken for"))]


def _printer(options: StatementOptions, job: StatementJob, output: Output) -> StdoutParts:
    """Return what prints the rows of a job to standard output."""
    header = wants_header(options, output)
    return StdoutParts(
        Path(output.url),
        lambda extra: split_extra(extra)[0],
        beginning(output.format, job.result, header=header),
        in_order=job.ordered,
    )


def values_job(
    request: InputDraft,
    facts: StatementFacts,
    heads: Heads,
    spans: Sequence[Span],
    slots: int,
) -> StatementValues:
    """Return the rows of values, read into a table whose columns are the markers."""
    names = [name for name, _ in facts.markers]
    if spans and sorted(span.name for span in spans) != sorted(names):
        raise UsageError(
            f"--range is given for {', '.join(span.name for span in spans)}, and the markers are "
            f"{', '.join(names)}"
        )
    table = TableSchema(
        keyspace=facts.kind,
        table="values",
        columns=tuple(ColumnSchema(name=name, cql_type=kind) for name, kind in facts.markers),
        partition_key=(),
        clustering_key=(),
        user_types=facts.user_types,
    )
    if facts.counters and heads.files:
        refuse_unsaid_order(request, facts.fields)
    total = sum(file.size_bytes for file in heads.files)
    first = request.skip_rows
    values = StatementValues.of(
        request,
        table=table,
        sources=_planned(request, heads, table, facts),
        unit_bytes=_between(total // (UNITS_PER_SLOT * slots), UNIT_BYTES),
        nulls=facts.nulls,
        marker_timestamps=facts.timestamps,
        marker_ttls=facts.ttls,
        block_bytes=256 << 10,
        ordinal_first=first,
        ordinal_end=ORDINAL_END if request.max_rows is None else first + request.max_rows,
    )
    return with_empties(values, request)


def _planned(
    request: InputDraft,
    heads: Heads,
    table: TableSchema,
    facts: StatementFacts,
) -> tuple[LoadSource, ...]:
    """Plan the files as a load would; an empty tuple if ranges give the values."""
    if not heads.files:
        return ()
    again = dict(facts.repeated)
    once = tuple(column for column in table.columns if column.name not in again)
    planned = [
        source and _with_repeated(source, again)
        for source in plan_sources(request, heads, replace(table, columns=once))
    ]
    return with_empty(request, heads.files, planned, [source for source in planned if source])


def _with_repeated(source: LoadSource, again: Mapping[str, str]) -> LoadSource:
    """Return the source with its fields also for the markers that have a name once more."""
    if not again:
        return source
    fields, texts = ({c: f for f, c in source.mapping}, dict(source.constants))
    pairs = tuple((fields[first], name) for name, first in again.items() if first in fields)
    constants = tuple((name, texts[first]) for name, first in again.items() if first in texts)
    return replace(source, mapping=source.mapping + pairs, constants=source.constants + constants)


def nullable_names(facts: StatementFacts) -> list[str]:
    """Return the names of the answers' columns; none if the only one always has a value."""
    names = [name for name, _ in facts.result]
    return [] if len(names) == 1 and names[0] in facts.never_null else names


def never_null_names(statement: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of an exec's answers that always have a value: a whole row as JSON, a
    count, whether a condition held, and `names`, of markers and of the key. AS may give their names
    to others."""
    if re.search(r"\bas\b", statement, re.IGNORECASE):
        return ()
    counts = ("count",) if re.search(r"\bcount\s*\(", statement, re.IGNORECASE) else ()
    return ("[applied]", "[json]", *counts, *names)


def range_units(rows: int, slots: int) -> list[str]:
    each = _between(rows // (UNITS_PER_SLOT * slots), UNIT_ROWS)
    return [SpanUnit(first, min(first + each, rows)).pack() for first in range(0, rows, each)]


def _between(size: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(size, bounds[1]))


def first_timestamp_us(facts: StatementFacts) -> int:
    """Return the write timestamp of the first row: now, as for any statement, so that it wins over
    earlier writes. Each later row is 1 us later; no worker writes so fast that these times would
    lie in the future. 0: the server's time."""
    fixed = facts.dated and facts.repeatable
    return time.time_ns() // 1000 if fixed else 0


def prepare_statement(cluster: ClusterView, loaded: Loaded, text: str) -> PreparedStatement:
    """Prepare the statement of an exec.

    Raises `UsageError` for what exec cannot run, and `ClusterError` as the servers refuse it.
    """
    effect = effect_of(text)
    try:
        prepared = cluster.prepare(text)
    except (DriverException, NoHostAvailable, ConnectionException, ErrorMessage) as error:
        where = cluster_config(loaded.settings).where
        raise translate_error(error, where=where, user=loaded.settings.cluster.user) from error
    result = APPLIED if effect.conditional else marked(prepared.result)
    return PreparedStatement(prepared, effect, marked(prepared.markers), result)


def refuse_same_names(names: Sequence[str]) -> None:
    """Raise `UsageError` for answers with two columns of one name, which neither a JSON object nor
    a Parquet file can have."""
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two columns of the answers are called {name!r}: name one with AS")


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the markers' names; the second `day` of a statement is `day_2`."""
    found: list[str] = []
    for name in names:
        count = sum(other == name for other in names[: len(found)])
        found.append(f"{name}_{count + 1}" if count else name)
    return found

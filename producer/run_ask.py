"""Run `lookup` and `exec` from their options: plan, create the job, follow it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable, Session
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage

from config.settings import Loaded
from producer.beginning import Beginning
from producer.embedded import refuse_stdout_detach, refuse_workers_of_others
from producer.endings import publish_end
from producer.follow import Shown
from producer.input_options import dialect_of, text_of, values_options
from producer.options import settle
from producer.outputs import (
    STDOUT,
    check_empty,
    output_of,
    refuse_output_options,
    refuse_two_on_stdout,
    wants_header,
)
from producer.plan import LoadRequest, plan_sources, with_empty
from producer.plan_read import Wanted, refuse_local, table_of
from producer.run_read import Plan, plan_slots, run_read
from producer.source_doubts import source_doubts
from producer.stdin_spool import (
    drop_if_done,
    forget_spooled,
    spool_path,
    spool_sources,
    told_as_standard_input,
)
from producer.stdout_parts import StdoutParts, beginning
from producer.stdout_spool import spool_folder
from producer.words import count_text
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.errors import tell
from ringhaul.cluster.markers import has_lists, is_of_counters, keyspace_of, partition_key_of
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cql.names import read_names
from ringhaul.cql.types import CqlType, Fields, type_texts
from ringhaul.errors import UsageError
from ringhaul.formats.write import refuse_blank_lines
from ringhaul.option_names import VALUES_PREFIX
from ringhaul.output.job import Output
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.sources.files import SourceFile
from ringhaul.statements.exec import Statement
from ringhaul.statements.job import AskJob, SpanUnit, split_extra
from ringhaul.statements.lookup import LookupPlan
from ringhaul.statements.parameter_ranges import Span, parse_span, rows_count
from tasks.connect import cluster_config, open_ledger

#: Bounds of a unit: of a file in bytes, of ranges in rows. Small, since a unit that must not be
#: done twice is in doubt as a whole when its worker dies.
UNIT_BYTES = (64 << 10, 4 << 20)
UNIT_ROWS = (1_000, 100_000)
UNITS_PER_SLOT = 4


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What `lookup` and `exec` differ in."""

    kind: str
    markers: tuple[tuple[str, str], ...]  #: name and CQL type of each
    result: tuple[tuple[str, CqlType], ...]
    never_null: tuple[str, ...] = ()  #: of the result, as far as the schema tells
    user_types: tuple[tuple[str, Fields], ...] = ()
    facts: Mapping[str, Any]  #: further fields of the `AskJob`
    target: str
    keyspace: str | None = None  #: of an exec, if it is known: where its rows are
    dated: bool = False  #: rows are written, at times that are fixed
    nulls: str = "tombstone"  #: see `LoadJob`: how a field without a value is bound


def run_lookup(options: Mapping[str, Any], begun: Beginning) -> int:
    """Run `ringhaul lookup` with what was begun for it; the exit code."""
    key, columns = wanted_names(options)

    def ask(session: Session, loaded: Loaded) -> _Asked:
        wanted = Wanted(keyspace=options["keyspace"], table=options["table"])
        table = table_of(session, wanted)
        refuse_local(session, table)
        check_consistency(session, table.keyspace, Use(writes=False))
        plan = LookupPlan.of(table, key, columns)
        return _Asked(
            kind="lookup",
            markers=tuple((name, table.type_of(name)) for name in plan.key),
            user_types=table.user_types,
            result=tuple((name, table.parsed_type(name)) for name in plan.columns),
            never_null=plan.never_null,
            facts={"table": table, "key": plan.key, "columns": plan.columns},
            target=table.name,
        )

    return _run(options, begun, "lookup", [options["keys"]], [], ask)


def wanted_names(options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The columns that --key and --columns name. Raises `UsageError` for what is no name."""
    return read_names(options["key"], "--key"), read_names(options["columns"], "--columns")


def run_exec(options: Mapping[str, Any], begun: Beginning, given: Collection[str]) -> int:
    """Run `ringhaul exec` with what was begun for it; the exit code. `given`: the names of the
    options that the user gave."""
    check_inputs(options, given)
    files = [options["params"]] if options["params"] is not None else []

    def ask(session: Session, loaded: Loaded) -> _Asked:
        statement = _prepared(session, loaded, options["statement"])
        names = _named_once(statement.markers.names)
        if not names:
            raise UsageError("the statement has no marker (?): there is nothing to run it over")
        _refuse_same_names(statement.result.names)
        effect = statement.effect
        if effect.reads and "nulls" in given:
            raise UsageError("--nulls is about what is written, and this SELECT writes nothing")
        keyspace = keyspace_of(statement.prepared)
        use = Use(
            writes=not effect.reads,
            # A batch of them is taken at any level.
            counters=effect.verb != "batch" and is_of_counters(session, statement.prepared),
            conditional=effect.conditional,
        )
        check_consistency(session, keyspace, use)
        if not statement.result.names:
            refuse_output_options(given, f"this {effect.verb.upper()}")
            refuse_workers_of_others(loaded, options)
        texts, user_types = type_texts(statement.markers.types)
        return _Asked(
            kind="exec",
            # What is added to a counter is a whole number.
            markers=tuple(
                (name, "bigint" if text == "counter" else text)
                for name, text in zip(names, texts, strict=True)
            ),
            user_types=user_types,
            result=tuple(zip(statement.result.names, statement.result.types, strict=True)),
            never_null=_never_null(
                options["statement"], [*names, *partition_key_of(session, statement.prepared)]
            ),
            facts={"statement": options["statement"], "repeatable": effect.repeatable},
            target=effect.verb,
            keyspace=keyspace,
            # Else the server dates them, each try anew: see `appends`.
            dated=not effect.reads and not has_lists(session, statement.prepared),
            nulls="tombstone" if effect.reads else options["nulls"],
        )

    return _run(options, begun, "exec", files, options["ranges"], ask)


def _run(
    options: Mapping[str, Any],
    begun: Beginning,
    kind: str,
    files: Sequence[str],
    ranges: Sequence[str],
    ask: Callable[[Session, Loaded], _Asked],
) -> int:
    loaded, job_id = begun.loaded, begun.job_id
    request = values_request(options, kind)
    to_stdout = options["output"] == STDOUT
    spool = spool_path(loaded.settings.state_dir, job_id)
    with ExitStack() as stack:
        output = output_of(options, loaded, job_id)
        if not to_stdout:
            check_empty(output.url)
        unused = stack.enter_context(ExitStack())
        sources = []
        if files:
            unused.callback(spool.unlink, missing_ok=True)
            sources = spool_sources(files, request.dialect, request.file_format, spool)
        spans = [parse_span(text) for text in ranges]
        slots = plan_slots(loaded, own_workers=to_stdout)
        made: list[AskJob] = []

        def plan(session: Session) -> Plan:
            asked = ask(session, loaded)
            if asked.result:
                refuse_two_on_stdout(options)
                if to_stdout:
                    refuse_stdout_detach(options)
                    stack.enter_context(spool_folder(Path(output.url)))
            with told_as_standard_input(spool):
                values = _values(request, asked, sources, spans, slots)
                for line in source_doubts(request, sources):
                    Shown.from_options(options).warn(line)
            refuse_blank_lines(output.format, _may_be_null(asked))
            job = AskJob(
                kind=kind,
                cluster_name=session.cluster.metadata.cluster_name,
                values=values,
                spans=tuple(ranges),
                result=asked.result,
                ordered=options["order"] == "input",
                timestamp_us=_timestamp_us(asked),
                consistency=loaded.settings.cluster.consistency,
                output=output if asked.result else None,
                streams=to_stdout,
                **asked.facts,
            )
            made.append(job)
            planned = _plan(options, job, asked, output, spans, slots)
            # What was spooled is the job's from the moment on at which there is one.
            return replace(planned, on_created=unused.pop_all)

        places = "" if to_stdout else output.url
        code = run_read(options, begun, plan, files=sources, output=places)
        if "-" in files:
            (job,) = made
            ledger, state_dir = open_ledger(settle({}, None).settings), loaded.settings.state_dir
            drop_if_done(ledger, state_dir, job_id, job.values, code, resumable=job.resumable)
            forget_spooled(ledger, state_dir)
        return code


def _plan(
    options: Mapping[str, Any],
    job: AskJob,
    asked: _Asked,
    output: Output,
    spans: Sequence[Span],
    slots: int,
) -> Plan:
    size = (
        count_text(rows_count(spans), "row")
        if spans
        else count_text(len(job.values.sources), "file")
    )
    plan = Plan(
        job=job,
        units=_span_units(rows_count(spans), slots) if spans else (),
        split=None if spans else job.values,
        target=asked.target,
        headline=f"{job.kind} {asked.target}   {size}",
        own_workers=job.streams and job.output is not None,
        keyspace=asked.keyspace,
    )
    if job.output is None:
        return plan
    if not job.streams:
        return replace(plan, on_end=publish_end)
    header = wants_header(options, output)
    printer = StdoutParts(
        Path(output.url),
        lambda extra: split_extra(extra)[0],
        beginning(output.format, job.result, header=header),
        in_order=job.ordered,
    )
    return replace(plan, on_look=printer.look, on_end=printer.end)


def check_inputs(options: Mapping[str, Any], given: Collection[str]) -> None:
    """Raise `UsageError` for options of `ringhaul exec` that do not say where its values are.

    `given`: see `options.given_options`.
    """
    if (options["params"] is not None) == bool(options["ranges"]):
        raise UsageError("give --params FILE, or one --range for each marker")
    if options["ranges"] and (values_options(dict.fromkeys(given)) or "nulls" in given):
        raise UsageError(
            "the --values options and --nulls are about a file: give none of them with --range"
        )


def values_request(options: Mapping[str, Any], kind: str) -> LoadRequest:
    """How the rows of values are read. Raises `UsageError` naming the option at fault."""
    given = values_options(options)
    return LoadRequest(
        keyspace=kind,
        table="values",
        file_format=given["format"],
        header=given["header"],
        by_name=True,
        dialect=dialect_of(given, VALUES_PREFIX),
        text=text_of(given, VALUES_PREFIX),
    )


def _values(
    request: LoadRequest,
    asked: _Asked,
    sources: Sequence[SourceFile],
    spans: Sequence[Span],
    slots: int,
) -> LoadJob:
    """The rows of values, as a load of them into a table of the markers would be."""
    names = [name for name, _ in asked.markers]
    if spans and sorted(span.name for span in spans) != sorted(names):
        raise UsageError(
            f"--range is given for {', '.join(span.name for span in spans)}, and the markers are "
            f"{', '.join(names)}"
        )
    table = TableSchema(
        keyspace=request.keyspace,
        table=request.table,
        columns=tuple(ColumnSchema(name=name, cql_type=kind) for name, kind in asked.markers),
        partition_key=(),
        clustering_key=(),
        user_types=asked.user_types,
    )
    total = sum(file.size_bytes for file in sources)
    return LoadJob(
        table=table,
        cluster_name="",
        sources=_planned(request, sources, table),
        dialect=request.dialect,
        text=request.text,
        base_us=0,
        unit_bytes=_between(total // (UNITS_PER_SLOT * slots), UNIT_BYTES),
        nulls=asked.nulls,
        block_bytes=256 << 10,
    )


def _planned(
    request: LoadRequest, files: Sequence[SourceFile], table: TableSchema
) -> tuple[LoadSource, ...]:
    """The files, as a load would read them; none where the values are those of ranges."""
    if not files:
        return ()
    planned = plan_sources(request, files, table)
    return with_empty(request, files, planned, [source for source in planned if source])


def _may_be_null(asked: _Asked) -> list[str]:
    """Names of the answers' columns; none where the one that there is always has a value."""
    names = [name for name, _ in asked.result]
    return [] if len(names) == 1 and names[0] in asked.never_null else names


def _never_null(statement: str, names: Sequence[str]) -> tuple[str, ...]:
    """Columns of an exec's answers that always have a value: a whole row as JSON, a count, whether
    a condition held, and `names`, of markers and of the key. AS may give their names to others."""
    if re.search(r"\bas\b", statement, re.IGNORECASE):
        return ()
    counts = ("count",) if re.search(r"\bcount\s*\(", statement, re.IGNORECASE) else ()
    return ("[applied]", "[json]", *counts, *names)


def _span_units(rows: int, slots: int) -> list[str]:
    each = _between(rows // (UNITS_PER_SLOT * slots), UNIT_ROWS)
    return [SpanUnit(first, min(first + each, rows)).pack() for first in range(0, rows, each)]


def _between(size: int, bounds: tuple[int, int]) -> int:
    return max(bounds[0], min(size, bounds[1]))


def _timestamp_us(asked: _Asked) -> int:
    """The write timestamp of the first row: from now on, as that of any statement, so that it wins
    over what was written before. No worker writes so many rows a second that a later one's, 1 us
    after that before it, would be in the future. 0: the server's time."""
    fixed = asked.dated and asked.facts.get("repeatable", True)
    return time.time_ns() // 1000 if fixed else 0


def _prepared(session: Session, loaded: Loaded, text: str) -> Statement:
    try:
        return Statement.prepare(session, text)
    except (DriverException, NoHostAvailable, ConnectionException, ErrorMessage) as error:
        where = cluster_config(loaded.settings).where
        raise tell(error, where=where, user=loaded.settings.cluster.user) from error


def _refuse_same_names(names: Sequence[str]) -> None:
    """Raise `UsageError` for answers of which two columns have one name: no JSON object and no
    Parquet file can have both."""
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two columns of the answers are called {name!r}: name one with AS")


def _named_once(names: Sequence[str]) -> list[str]:
    """Markers by their names; the second `day` of a statement is `day_2`."""
    found: list[str] = []
    for name in names:
        count = sum(other == name for other in names[: len(found)])
        found.append(f"{name}_{count + 1}" if count else name)
    return found

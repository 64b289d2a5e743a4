"""Run `lookup` and `exec`: plan, create the job, follow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from cassandra.cluster import Session

from config.settings import Loaded
from producer.inputs.stdin_spool import (
    as_standard_input,
    naming_standard_input,
    pipe_note,
    spool_path,
    spool_sources,
)
from producer.outputs.stdout_parts import StdoutParts, beginning
from producer.outputs.stdout_spool import spool_folder
from producer.plan.dialect_warnings import dialect_warnings
from producer.plan.field_notes import case_notes
from producer.plan.json_layout import with_layout
from producer.plan.marker_order import order_warning
from producer.plan.scan import refuse_local, table_of
from producer.plan.statements import (
    StatementFacts,
    first_timestamp_us,
    never_null_names,
    nullable_names,
    prepare_statement,
    range_units,
    refuse_same_names,
    unique_names,
    values_job,
)
from producer.plan.titles import with_separator
from producer.report.reporter import Shown
from producer.request.conflicts import refuse_stdout_detach, refuse_workers_of_others
from producer.request.options import ExecOptions, LookupOptions, StatementOptions
from producer.request.output import (
    STDOUT,
    check_empty,
    output_of,
    refuse_output_options,
    refuse_two_on_stdout,
    wants_header,
)
from producer.request.scan import Wanted
from producer.request.statements import check_inputs, values_request, wanted_names
from producer.run.finish import publish_end
from producer.run.job import Plan, plan_slots, run_read
from producer.run.spool_cleanup import drop_if_done, forget_spooled
from producer.services.start import Services
from producer.text import count_text
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.markers import (
    column_order,
    has_lists,
    is_of_counters,
    keyspace_of,
    partition_key_of,
)
from ringhaul.cql.types import type_texts
from ringhaul.errors import UsageError
from ringhaul.formats.write import refuse_blank_lines
from ringhaul.ledger.kinds import JobKind
from ringhaul.output.job import Output
from ringhaul.statements.job import StatementJob
from ringhaul.statements.lookup import LookupPlan
from ringhaul.statements.marker_text import MarkerText, Role, marker_texts, repeated_names
from ringhaul.statements.parameter_ranges import Span, parse_span, rows_count
from ringhaul.statements.result import split_extra
from ringhaul.storage.streams import is_stream
from tasks.connect import open_ledger


def run_lookup(options: LookupOptions, services: Services) -> int:
    """Run `ringhaul lookup` with the services that were started for it; the exit code."""
    key, columns = wanted_names(options)

    def find_facts(session: Session, loaded: Loaded) -> StatementFacts:
        wanted = Wanted(keyspace=options.keyspace, table=options.table)
        table = table_of(session, wanted)
        refuse_local(session, table)
        check_consistency(session, table.keyspace, Use(writes=False))
        plan = LookupPlan.of(table, key, columns)
        return StatementFacts(
            kind=JobKind.LOOKUP,
            markers=tuple((name, table.type_of(name)) for name in plan.key),
            user_types=table.user_types,
            result=tuple((name, table.parsed_type(name)) for name in plan.columns),
            never_null=plan.never_null,
            table=table,
            key=plan.key,
            columns=plan.columns,
            target=table.name,
        )

    return _run(options, services, JobKind.LOOKUP, [options.keys], [], find_facts)


def run_exec(options: ExecOptions, services: Services) -> int:
    """Run `ringhaul exec` with the services that were started for it; the exit code."""
    check_inputs(options)
    files = [options.params] if options.params is not None else []

    def find_facts(session: Session, loaded: Loaded) -> StatementFacts:
        statement = prepare_statement(session, loaded, options.statement)
        names = unique_names(statement.markers.names)
        if not names:
            raise UsageError("the statement has no marker (?) for the values of a file or a range")
        refuse_same_names(statement.result.names)
        effect = statement.effect
        if effect.reads and "nulls" in options.given:
            raise UsageError("--nulls applies to writes, and this SELECT writes nothing")
        keyspace = keyspace_of(statement.prepared)
        use = Use(
            writes=not effect.reads,
            # A batch of them is accepted at any level.
            counters=effect.verb != "batch" and is_of_counters(session, statement.prepared),
            conditional=effect.conditional,
        )
        check_consistency(session, keyspace, use)
        if not statement.result.names:
            refuse_output_options(options.given, f"this {effect.verb.upper()}")
            refuse_workers_of_others(loaded, options)
        texts, user_types = type_texts(statement.markers.types)
        marked = marker_texts(options.statement, statement.markers.names)
        repeated = repeated_names(marked)
        order = column_order(session, statement.prepared)
        fields = [name for name, first in zip_longest(names, repeated) if first is None]
        known = [name for name in order if name in fields]
        return StatementFacts(
            kind=JobKind.EXEC,
            # Increments of counters are whole numbers.
            markers=tuple(
                (name, "bigint" if text == "counter" else text)
                for name, text in zip(names, texts, strict=True)
            ),
            user_types=user_types,
            result=tuple(zip(statement.result.names, statement.result.types, strict=True)),
            never_null=never_null_names(
                options.statement, [*names, *partition_key_of(session, statement.prepared)]
            ),
            statement=options.statement,
            repeatable=effect.repeatable,
            target=effect.verb,
            keyspace=keyspace,
            # Otherwise the server dates them, at another time for each try: see `appends`.
            dated=not effect.reads and not has_lists(session, statement.prepared),
            nulls="tombstone" if effect.reads else options.nulls,
            repeated=tuple(
                (name, names[first])
                for name, first in zip_longest(names, repeated)
                if first is not None
            ),
            timestamps=_of_role(names, marked, "timestamp"),
            ttls=_of_role(names, marked, "ttl"),
            usual_order=tuple(known) if len(known) == len(fields) else (),
            counters=use.counters and not effect.repeatable,
        )

    return _run(options, services, JobKind.EXEC, files, options.ranges, find_facts)


def _of_role(names: Sequence[str], marked: Sequence[MarkerText], role: Role) -> tuple[str, ...]:
    return tuple(name for name, one in zip(names, marked, strict=False) if one.role == role)


def _run(
    options: StatementOptions,
    services: Services,
    kind: JobKind,
    files: Sequence[str],
    ranges: Sequence[str],
    find_facts: Callable[[Session, Loaded], StatementFacts],
) -> int:
    loaded, job_id = services.loaded, services.job_id
    request = values_request(options.values, kind)
    to_stdout = options.output == STDOUT
    spool = spool_path(loaded.settings.state_dir, job_id)
    with ExitStack() as stack:
        output = output_of(options, loaded, job_id)
        if not to_stdout:
            check_empty(output.url)
        unused = stack.enter_context(ExitStack())
        sources = []
        if files:
            unused.callback(spool.unlink, missing_ok=True)
            if pipe := pipe_note(files):
                Shown.from_options(options).say(pipe)
            sources = spool_sources(files, request.dialect, request.file_format, spool)
            request = with_separator(request, sources)
            request, note = with_layout(request, sources)
            if note is not None:
                Shown.from_options(options).say(as_standard_input(note, spool))
        spans = [parse_span(text) for text in ranges]
        slots = plan_slots(loaded, own_workers=to_stdout)
        made: list[StatementJob] = []

        def plan(session: Session) -> Plan:
            facts = find_facts(session, loaded)
            if facts.result:
                refuse_two_on_stdout(options.output, options)
                if to_stdout:
                    refuse_stdout_detach(options)
                    stack.enter_context(spool_folder(Path(output.url)))
            with naming_standard_input(spool):
                values = values_job(request, facts, sources, spans, slots)
                shown = Shown.from_options(options)
                for line in dialect_warnings(request, values.sources, values.table):
                    shown.warn(line)
                if facts.usual_order and sources:
                    line = order_warning(request, values, facts.fields, facts.usual_order)
                    if line:
                        shown.warn(line)
                for line in case_notes(values.sources, verb="taken for"):
                    shown.say(line)
            refuse_blank_lines(output.format, nullable_names(facts))
            job = StatementJob(
                kind=kind,
                cluster_name=session.cluster.metadata.cluster_name,
                values=values,
                spans=tuple(ranges),
                result=facts.result,
                ordered=options.order == "input",
                timestamp_us=first_timestamp_us(facts),
                consistency=loaded.settings.cluster.consistency,
                output=output if facts.result else None,
                streams=to_stdout,
                table=facts.table,
                key=facts.key,
                columns=facts.columns,
                statement=facts.statement,
                repeatable=facts.repeatable,
            )
            made.append(job)
            planned = _plan(options, job, facts, output, spans, slots)
            # Once the job exists, the spooled input belongs to it.
            return replace(planned, on_created=unused.pop_all)

        places = "" if to_stdout else output.url
        code = run_read(options, services, plan, files=sources, output=places)
        if any(map(is_stream, files)):
            (job,) = made
            ledger, state_dir = open_ledger(services.settings), loaded.settings.state_dir
            drop_if_done(ledger, state_dir, job_id, job.values, code, resumable=job.resumable)
            forget_spooled(ledger, state_dir)
        return code


def _plan(
    options: StatementOptions,
    job: StatementJob,
    facts: StatementFacts,
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
        units=range_units(rows_count(spans), slots) if spans else (),
        split=None if spans else job.values,
        target=facts.target,
        headline=f"{job.kind} {facts.target}   {size}",
        own_workers=job.streams and job.output is not None,
        keyspace=facts.keyspace,
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

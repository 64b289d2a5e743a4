"""The checks that the command of each kind of job makes first, for a step that runs such a job."""

from __future__ import annotations

from functools import singledispatch

from config.settings import Loaded
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.reads import CountOptions, QueryOptions, UnloadOptions
from producer.options.statements import ExecOptions, LookupOptions
from producer.request.load import load_draft
from producer.request.output import output_of, refuse_two_on_stdout
from producer.request.scan import Wanted, check_wanted, count_wanted
from producer.request.statements import check_inputs, values_draft, wanted_names
from producer.request.unload import unload_request
from ringhaul.errors import UsageError
from ringhaul.statements.parameter_ranges import parse_span, rows_count
from ringhaul.transform.loading import check_names

#: Stands for the id of the job: a step gets its id when it runs.
_NO_JOB = "step"


@singledispatch
def check_kind(options: JobOptions, loaded: Loaded) -> None:
    """Raise `UsageError` for options that a job of their kind refuses before it connects."""
    raise TypeError(f"no check for the options of a step: {type(options).__name__}")


@check_kind.register
def _check_load(options: LoadOptions, loaded: Loaded) -> None:
    load_draft(options, loaded)
    check_names(options.transforms)


@check_kind.register
def _check_unload(options: UnloadOptions, loaded: Loaded) -> None:
    unload_request(options, loaded, _NO_JOB)
    check_names(options.transforms)


@check_kind.register
def _check_count(options: CountOptions, loaded: Loaded) -> None:
    refuse_two_on_stdout(options.output, options)
    check_wanted(count_wanted(options))


@check_kind.register
def _check_query(options: QueryOptions, loaded: Loaded) -> None:
    refuse_two_on_stdout(options.output, options)
    check_wanted(Wanted(sql=options.sql))
    from producer.request.select_checks import wants_rows  # parses SQL, as few steps do

    if wants_rows(options.sql):
        raise UsageError("a step runs a job, but this SELECT returns rows: use unload --query")


@check_kind.register
def _check_lookup(options: LookupOptions, loaded: Loaded) -> None:
    values_draft(options.values)
    wanted_names(options)
    check_wanted(Wanted(keyspace=options.keyspace, table=options.table))
    output_of(options, loaded, _NO_JOB)


@check_kind.register
def _check_exec(options: ExecOptions, loaded: Loaded) -> None:
    check_inputs(options)
    values_draft(options.values)
    rows_count([parse_span(text) for text in options.ranges])
    output_of(options, loaded, _NO_JOB)

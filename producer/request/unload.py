"""The request of an unload: what to read, and the files to write."""

from __future__ import annotations

from dataclasses import dataclass, replace

from config.settings import Loaded
from producer.options.reads import UnloadOptions
from producer.request.one_file import OneFile, check_names, one_file_of, with_file_format
from producer.request.output import STDOUT, output_of, refuse_two_on_stdout, wants_header
from producer.request.preserved_times import preserving
from producer.request.scan import Wanted, check_wanted, listed_items
from producer.request.values import refuse_blank
from ringhaul.cql.names import listed_names
from ringhaul.errors import UsageError
from ringhaul.ledger.limits import ErrorLimit
from ringhaul.mapping.language import MappingText, parse_mapping
from ringhaul.output.job import Output


@dataclass(frozen=True, kw_only=True)
class UnloadRequest:
    """What an unload should do."""

    wanted: Wanted
    output: Output  #: if `file` is set, its folder: see `in_one_file`
    file: OneFile | None = None
    error_limit: ErrorLimit | None  #: None: no row can be rejected


def unload_request(options: UnloadOptions, loaded: Loaded, job_id: str) -> UnloadRequest:
    """Make the request from these options. Raises `UsageError` or `QueryError` for what cannot work
    with any table, before the cluster is contacted."""
    refuse_two_on_stdout(options.output, options)
    if options.dry_run and options.rate is not None:
        # A load's plan depends on it, as its units are smaller.
        raise UsageError("--rate limits a job that runs, and --dry-run starts none: leave one out")
    wanted = _wanted(options)
    refuse_blank("--mapping", options.mapping, "FIELD=COLUMN")
    check_wanted(wanted)
    limit = None
    if options.transforms:
        limit = ErrorLimit.parse(options.max_errors or loaded.settings.load.max_errors)
    elif options.max_errors:
        raise UsageError("--max-errors applies to transforms: without one no row is rejected")
    file = one_file_of(options)
    if file is not None:
        options = with_file_format(options, file)
    output = output_of(options, loaded, job_id)
    if file is None or not file.name:
        output = check_names(options, output, single=file is not None)
    if options.partition_by is not None:
        refuse_blank("--partition-by", options.partition_by, "some columns")
        if file is not None or options.output == STDOUT:
            raise UsageError("--partition-by makes folders: give -o a folder for them")
        by = tuple(listed_names(options.partition_by, "--partition-by"))
        output = replace(output, partition_by=by)
    named = output.format.kind != "csv" or wants_header(options, output)
    wanted = replace(wanted, named=named, folders=output.partition_by)
    return UnloadRequest(wanted=wanted, output=output, file=file, error_limit=limit)


def _wanted(options: UnloadOptions) -> Wanted:
    """Return what to read, from --query or from --table, --columns and --where."""
    if options.sql is not None:
        for name in ("keyspace", "table", "columns", "mapping", "where"):
            if getattr(options, name) is not None:
                raise UsageError(f"--query is a complete SELECT: leave --{name} out")
        if options.preserve_timestamp or options.preserve_ttl:
            raise UsageError(
                "--query is a complete SELECT: write writetime(COLUMN) and ttl(COLUMN) in it"
            )
        return Wanted(sql=options.sql)
    if options.table is None:
        raise UsageError("give --table, or --query with a SELECT")
    return Wanted(
        keyspace=options.keyspace,
        table=options.table,
        items=listed_items(options.columns),
        mapping=_mapping(options),
        where=options.where,
    )


def _mapping(options: UnloadOptions) -> MappingText:
    mapping = preserving(parse_mapping(options.mapping, reads=True), options)
    if mapping and options.columns is not None:
        raise UsageError(
            "--columns says which columns are written: with --mapping, --preserve-timestamp or "
            "--preserve-ttl leave it out and give --mapping 'A,B'"
        )
    return mapping

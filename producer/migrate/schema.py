"""What only the schema can tell of a translated command (`--check`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import rich_click as click

from config.settings import Loaded
from producer.migrate.guard import options_of
from producer.options.job import JobOptions
from producer.options.load import LoadOptions
from producer.options.reads import CountOptions, UnloadOptions
from producer.options.statements import ExecOptions
from producer.plan.heads import Heads
from producer.plan.scan import read_select
from producer.plan.sources import plan_sources
from producer.plan.statements import prepare_statement
from producer.request.load import load_draft
from producer.request.password import ASK_KEY, prompting_for_password
from producer.request.scan import count_wanted
from producer.request.settings import settings_with
from producer.request.unload import unload_request
from producer.request.values import comma_list, table_names
from producer.translate.exec_names import use_names_of_exec
from producer.translate.queries import quoted_name
from producer.translate.translation import Draft, Need, Translation
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema, no_column
from ringhaul.cluster.tables import find_table
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.types import UnknownType
from ringhaul.errors import SourceMissing, Terminal, UsageError
from ringhaul.mapping.language import parse_mapping
from ringhaul.sources.find import find_sources
from ringhaul.storage.access import is_url
from tasks.cluster_settings import cluster_config

_NO_ARGUMENTS = re.compile(r"\w+\s*\(\s*\)")
#: Types that COPY writes as literals of CQL.
_NESTED = frozenset(("list", "set", "map", "tuple", "udt", "vector"))


def with_schema(translation: Translation) -> Translation:
    """Return a translation with what its table's schema settles, or with the reason why ringhaul
    would refuse it there.

    Raises `ClusterError` if the cluster of the command, or of the settings, cannot be reached.
    """
    try:
        options = options_of(translation)
    except UsageError:
        return translation  # the check of the command says why
    with _connected(translation, options) as (cluster, loaded):
        try:
            table = _table_of(cluster, options)
            if table is not None:
                translation = _settled(translation, table, options)
                options = options_of(translation)
            _refuse(cluster, loaded, options)
        except (Terminal, UsageError) as error:
            return translation.refused(str(error))
    return translation


@contextmanager
def _connected(
    translation: Translation, options: JobOptions
) -> Iterator[tuple[ClusterView, Loaded]]:
    if "--password" in translation.words:
        context = click.get_current_context()
        assert context is not None
        context.meta[ASK_KEY] = True
    with prompting_for_password(options) as options:
        loaded = settings_with(options)
        session = open_session(cluster_config(loaded.settings))
        try:
            yield DriverView(session), loaded
        finally:
            close_session(session)


def _table_of(cluster: ClusterView, options: JobOptions) -> TableSchema | None:
    """Return the table that a command names; None: it has a statement."""
    if not isinstance(options, LoadOptions | UnloadOptions | CountOptions) or not options.table:
        return None
    keyspace, name = table_names(options.table, options.keyspace)
    reads = not isinstance(options, LoadOptions)
    return find_table(cluster, keyspace, name, views=reads)


def _settled(translation: Translation, table: TableSchema, options: JobOptions) -> Translation:
    """Return the translation with the options that its notes ask the schema for."""
    assert translation.draft is not None
    draft = translation.draft.copy()
    notes, draft.notes = draft.notes, []
    ranges: list[str] = []
    for note in notes:
        draft.option = note.option
        match note.need:
            case Need.COLUMNS if (names := _in_order_of_copy(table)) is not None:
                draft.add("--columns", ",".join(names))
                draft.note(f"the columns of {table.name}, in the order of COPY")
            case Need.TOKENS:
                key = ", ".join(map(quoted_name, table.partition_key))
                ranges.append(f"token({key}) {note.value}")
            case Need.NULLS if _counters(table):
                pass  # they have none
            case Need.NESTED if not _has_nested(table, draft.values("--columns")):
                pass
            case _:
                draft.notes.append(note)
    if ranges:
        draft.add("--where", " AND ".join(ranges))
    if isinstance(options, LoadOptions) and _counters(table):
        _add_to_counters(draft, table, options)
    elif isinstance(options, LoadOptions):
        _insert_functions(draft, table, options)
    return draft.finish()


def _in_order_of_copy(table: TableSchema) -> Sequence[str] | None:
    """Return the columns as COPY orders them; None: the name of a column cannot stand in a list."""
    names = table.column_names
    rest = sorted(name for name in names if name not in table.primary_key)
    found = [*table.primary_key, *rest]
    return None if any("," in name for name in found) else found


def _has_nested(table: TableSchema, listed: Sequence[str]) -> bool:
    """Return whether one of the listed columns, or of all columns, holds nested values."""
    wanted = [name for text in listed for name in text.split(",")] or table.column_names
    try:
        kinds = [table.parsed_type(name) for name in wanted if name in table.column_names]
    except UnknownType:
        return True
    return any(kind.name in _NESTED for kind in kinds)


def _counters(table: TableSchema) -> list[str]:
    return [name for name in table.column_names if table.type_of(name) == "counter"]


def _add_to_counters(draft: Draft, table: TableSchema, options: LoadOptions) -> None:
    """Make a load into counters a statement that adds to them: nothing else can write them."""
    draft.option = table.name
    order = _in_order_of_copy(table) or ()
    listed = comma_list(options.columns)
    if not listed and not options.header and not options.mapping:
        listed = [*order]
        draft.add("--columns", ",".join(listed))
    skipped = comma_list(options.skip_columns)
    counters = [
        name for name in _counters(table) if name not in skipped and name in (listed or order)
    ]
    added = [f"{quoted_name(name)} = {quoted_name(name)} + {_marker(name)}" for name in counters]
    key = [f"{quoted_name(name)} = {_marker(name)}" for name in table.primary_key]
    draft.drop("--nulls")
    _use_exec(
        draft, f"UPDATE {_target(table)} SET {', '.join(added)} WHERE {' AND '.join(key)}", table
    )
    draft.note("counters are added to, and a command that is run again adds again")


def _insert_functions(draft: Draft, table: TableSchema, options: LoadOptions) -> None:
    """Make a load whose mapping fills a key by a function, such as `now()`, a statement: a load
    needs to know the keys of its rows."""
    mapping = parse_mapping(options.mapping)
    if not any(
        entry.left.call and entry.right is not None and entry.right.text in table.primary_key
        for entry in mapping.entries
    ):
        return
    draft.option = "-m"
    names, values, pairs = list[str](), list[str](), list[str]()
    for entry in mapping.entries:
        plain = entry.left.call or entry.left.position is not None or entry.left.text.isidentifier()
        alone = not entry.left.call or _NO_ARGUMENTS.fullmatch(entry.left.text) is not None
        if mapping.rest or entry.right is None or not (plain and alone):
            draft.lose("a function fills no key of a load: give exec the INSERT with it")
            return
        names.append(quoted_name(entry.right.text))
        values.append(entry.left.text if entry.left.call else _marker(entry.right.text))
        pairs += [] if entry.left.call else [f"{entry.left.text}={names[-1]}"]
    draft.add("--mapping", ",".join(pairs))
    statement = f"INSERT INTO {_target(table)} ({', '.join(names)}) VALUES ({', '.join(values)})"
    _use_exec(draft, statement, table)


def _use_exec(draft: Draft, statement: str, table: TableSchema) -> None:
    """Make a load a command that runs a statement for each record."""
    files = draft.operands
    draft.command, draft.operands = "exec", [statement]
    draft.add("--params", files[0] if files else "-")
    use_names_of_exec(draft)
    draft.option = table.name
    if len(files) != 1 or "*" in files[0]:
        draft.lose("exec reads one file: run it once for each, with --params FILE")


def _target(table: TableSchema) -> str:
    return f"{quoted_name(table.keyspace)}.{quoted_name(table.table)}"


def _marker(name: str) -> str:
    return f":{quoted_name(name)}"


def _refuse(cluster: ClusterView, loaded: Loaded, options: JobOptions) -> None:
    """Raise `UsageError` or `ClusterError` for what the commands refuse with the schema at hand."""
    match options:
        case LoadOptions():
            _refuse_load(cluster, loaded, options)
        case UnloadOptions():
            read_select(cluster, unload_request(options, loaded, "check").wanted)
        case CountOptions():
            read_select(cluster, count_wanted(options))
        case ExecOptions():
            prepare_statement(cluster, loaded, options.statement)


def _refuse_load(cluster: ClusterView, loaded: Loaded, options: LoadOptions) -> None:
    """Raise `UsageError` for columns that the table does not have, and if the files are here, for
    what their first records do not fit."""
    table = _table_of(cluster, options)
    assert table is not None
    skipped = comma_list(options.skip_columns)
    for name in comma_list(options.columns) if not options.mapping else ():
        if name not in table.column_names and name not in skipped:
            raise UsageError(no_column(name, table))
    if not options.sources or "-" in options.sources or any(map(is_url, options.sources)):
        return
    request = load_draft(options, loaded)
    try:
        files = find_sources(options.sources, request.dialect, request.file_format)
    except SourceMissing:
        return  # they are where the command will run
    with Heads(files) as heads:
        plan_sources(request, heads, table)

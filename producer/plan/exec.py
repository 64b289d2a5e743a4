"""Plan the statement of an exec: what it does, its markers, and the columns that it returns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from config.settings import Loaded
from producer.options.statements import ExecOptions
from producer.plan.statement_table import (
    column_order,
    has_lists,
    is_of_counters,
    partition_key_of,
)
from producer.plan.statements import (
    StatementFacts,
    never_null_names,
    prepare_statement,
    refuse_same_names,
    unique_names,
)
from producer.request.conflicts import refuse_workers_of_others
from producer.request.output import refuse_output_options
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.view import ClusterView
from ringhaul.cql.types import type_texts
from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from ringhaul.statements.marker_text import MarkerText, Role, marker_texts, repeated_names


def exec_facts(options: ExecOptions, cluster: ClusterView, loaded: Loaded) -> StatementFacts:
    """Prepare the statement of an exec; return its facts.

    Raises `UsageError` for a statement that cannot run once a row, or with these options, and
    `ClusterError` as the servers refuse it.
    """
    statement = prepare_statement(cluster, loaded, options.statement)
    names = unique_names(statement.markers.names)
    if not names:
        raise UsageError("the statement has no marker (?) for the values of a file or a range")
    refuse_same_names(statement.result.names)
    effect = statement.effect
    if effect.reads and "nulls" in options.given:
        raise UsageError("--nulls applies to writes, and this SELECT writes nothing")
    keyspace = statement.prepared.keyspace
    use = Use(
        writes=not effect.reads,
        # A batch of them is accepted at any level.
        counters=effect.verb != "batch" and is_of_counters(cluster, statement.prepared),
        conditional=effect.conditional,
    )
    check_consistency(cluster, keyspace, use)
    if not statement.result.names:
        refuse_output_options(options.given, f"this {effect.verb.upper()}")
        refuse_workers_of_others(loaded, options)
    texts, user_types = type_texts(statement.markers.types)
    marked = marker_texts(options.statement, statement.markers.names)
    repeated = repeated_names(marked)
    order = column_order(cluster, statement.prepared)
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
            options.statement, [*names, *partition_key_of(cluster, statement.prepared)]
        ),
        statement=options.statement,
        repeatable=effect.repeatable,
        target=effect.verb,
        keyspace=keyspace,
        # Otherwise the server dates them, at another time for each try: see `appends`.
        dated=not effect.reads and not has_lists(cluster, statement.prepared),
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


def _of_role(names: Sequence[str], marked: Sequence[MarkerText], role: Role) -> tuple[str, ...]:
    return tuple(name for name, one in zip(names, marked, strict=False) if one.role == role)

"""Plan a lookup's reads: its table, the columns of its keys and of its rows."""

from __future__ import annotations

from collections.abc import Sequence

from producer.options.statements import LookupOptions
from producer.plan.scan import refuse_local, table_of
from producer.plan.statements import StatementFacts
from producer.request.scan import Wanted
from ringhaul.cluster.consistency import Use, check_consistency
from ringhaul.cluster.view import ClusterView
from ringhaul.ledger.kinds import JobKind
from ringhaul.statements.lookup import LookupPlan


def lookup_facts(
    options: LookupOptions, key: Sequence[str], columns: Sequence[str], cluster: ClusterView
) -> StatementFacts:
    """Return the facts of a lookup. `key`, `columns`: the names that its options give.

    Raises `UsageError` or `ClusterError` for a table or columns that cannot be read.
    """
    wanted = Wanted(keyspace=options.keyspace, table=options.table)
    table = table_of(cluster, wanted)
    refuse_local(cluster, table)
    check_consistency(cluster, table.keyspace, Use(writes=False))
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

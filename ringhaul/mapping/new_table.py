"""A table for the records of a load, from a sample: columns, primary key, statement. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ringhaul.cluster.schema import ColumnSchema, TableSchema, nearest
from ringhaul.cql.names import spell_name
from ringhaul.cql.types import Fields
from ringhaul.errors import UsageError
from ringhaul.mapping.inference import Inferred
from ringhaul.option_names import job_option
from ringhaul.plain_text import Lines, as_line, lines_of

#: Cassandra's names of keyspaces and tables.
_TABLE_NAME = re.compile("[A-Za-z0-9_]{1,48}")
#: The partition key in parentheses, followed by clustering columns.
_COMPOSITE = re.compile(r"\((?P<partition>[^()]*)\)(?:,(?P<clustering>[^()]*))?")
#: A name that CQL takes without quotes, and puts into lower case.
_PLAIN = re.compile("[A-Za-z][A-Za-z0-9_]*")
#: Types that no key may have.
_NO_KEY = ("duration",)
#: The column that is the key unless the user names another.
USUAL_KEY = "id"
#: A longer type in a list of columns shifts only its own line.
_TYPE_WIDTH_MAX = 24
_NAME_WIDTH_MAX = 30


@dataclass(frozen=True, kw_only=True)
class NewTable:
    """A table that does not exist yet."""

    schema: TableSchema
    reasons: Mapping[str, str]  #: column -> why it has its type
    key_reason: str

    @property
    def statement(self) -> Lines:
        """The CREATE TABLE, on several lines."""
        schema = self.schema
        columns = [f"    {spell_name(c.name)} {c.cql_type}," for c in schema.columns]
        partition = ", ".join(map(spell_name, schema.partition_key))
        if len(schema.partition_key) > 1:
            partition = f"({partition})"
        key = ", ".join([partition, *map(spell_name, schema.clustering_key)])
        name = f"{spell_name(schema.keyspace)}.{spell_name(schema.table)}"
        return lines_of([f"CREATE TABLE {name} (", *columns, f"    PRIMARY KEY ({key})", ");"])

    @property
    def text(self) -> Lines:
        """The columns with the reasons, and the statement, for people."""
        columns = self.schema.columns
        name_width = min(max(len(as_line(c.name)) for c in columns), _NAME_WIDTH_MAX)
        width = min(max(len(c.cql_type) for c in columns), _TYPE_WIDTH_MAX)
        lines = [f" {'column':<{name_width}}  {'type':<{width}}  why"]
        lines += [
            f" {as_line(c.name):<{name_width}}  {c.cql_type:<{width}}  {self.reasons[c.name]}"
            for c in columns
        ]
        key = ", ".join(self.schema.primary_key)
        return lines_of([*lines, f" primary key ({key}): {self.key_reason}", self.statement])


def new_table(
    keyspace: str,
    table: str,
    columns: Mapping[str, Inferred],
    primary_key: str | None,
    user_types: tuple[tuple[str, Fields], ...] = (),
) -> NewTable:
    """Return the table for columns, in their order. `primary_key`: `a,b` or `(a,b),c`; None: the
    column `id`, or the first. `user_types`: the user types of the keyspace.

    Raises `UsageError` for names that no table can have and for an impossible key.
    """
    for kind, name in (("keyspace", keyspace), ("table", table)):
        if not _TABLE_NAME.fullmatch(name):
            raise UsageError(
                f"no {kind} can be named {name!r}: give up to 48 letters, digits and underscores"
            )
    if primary_key is None:
        partition, clustering = [_usual_key(columns)], list[str]()
        usual = "column" if partition[0].lower() == USUAL_KEY else "first column"
        reason = f"the {usual} {partition[0]}; {job_option('primary-key')} names others"
    else:
        partition, clustering = parse_key(primary_key, columns)
        reason = f"as {job_option('primary-key')} says"
    for name in (*partition, *clustering):
        if columns[name].cql_type in _NO_KEY:
            kind = columns[name].cql_type
            raise UsageError(
                f"{job_option('primary-key')}: {name!r} is a {kind}, which cannot be in a key"
            )
    schema = TableSchema(
        keyspace=keyspace,
        table=table,
        columns=tuple(
            ColumnSchema(name=name, cql_type=found.cql_type) for name, found in columns.items()
        ),
        partition_key=tuple(partition),
        clustering_key=tuple(clustering),
        user_types=user_types,
    )
    reasons = {name: found.reason for name, found in columns.items()}
    return NewTable(schema=schema, reasons=reasons, key_reason=reason)


def column_names(fields: Sequence[str]) -> dict[str, str]:
    """Return field -> name of its column: plain names in lower case, as CQL itself takes a name
    without quotes, so that no statement needs quotes later. Names that differ only in case, and
    names that need quotes anyway, stay as they are."""
    lower = Counter(field.lower() for field in fields)
    return {
        field: field.lower() if _PLAIN.fullmatch(field) and lower[field.lower()] == 1 else field
        for field in fields
    }


def _usual_key(columns: Iterable[str]) -> str:
    names = [*columns]
    exact = [name for name in names if name == USUAL_KEY]
    other = [name for name in names if name.lower() == USUAL_KEY]
    return (exact or other or names)[0]


def parse_key(text: str, columns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return partition key and clustering columns of `a,b` or `(a,b),c`.

    Raises `UsageError` for other forms, unknown columns, and repeated columns.
    """
    plain = text.strip()
    found = _COMPOSITE.fullmatch(re.sub(r"\)\s*,", "),", plain))
    if found is not None:
        partition, clustering = _names(found["partition"]), _names(found["clustering"] or "")
    elif "(" in plain or ")" in plain:
        raise UsageError(f"{job_option('primary-key')} {text!r}: give A,B or (A,B),C")
    else:
        first, *clustering = _names(plain) or [""]
        partition = [first] if first else []
    if not partition:
        raise UsageError(
            f"{job_option('primary-key')} {text!r} names no partition key: give A,B or (A,B),C"
        )
    known = [*columns]
    partition = [_in_case(name, known) for name in partition]
    clustering = [_in_case(name, known) for name in clustering]
    names = [*partition, *clustering]
    for name in names:
        if name not in known:
            raise UsageError(
                f"{job_option('primary-key')} names {name!r}, and the columns are "
                f"{', '.join(known[:12])}{nearest(name, known)}"
            )
        if names.count(name) > 1:
            raise UsageError(f"{job_option('primary-key')} names {name!r} twice")
    return partition, clustering


def _in_case(name: str, known: Sequence[str]) -> str:
    """Return the name as the columns have it, if they have it in lower case only."""
    return name.lower() if name not in known and name.lower() in known else name


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def differences(wanted: TableSchema, found: TableSchema) -> list[str]:
    """Describe how the table `found` differs from the table to create; empty: it does not."""
    said = []
    types = {column.name: column.cql_type for column in found.columns}
    for column in wanted.columns:
        there = types.pop(column.name, None)
        if there is None:
            said.append(f"it has no column {column.name}")
        elif there != column.cql_type:
            said.append(f"column {column.name} is {there}, not {column.cql_type}")
    said += [f"it has a column {name}" for name in types]
    key = (found.partition_key, found.clustering_key)
    if key != (wanted.partition_key, wanted.clustering_key):
        said.append(f"its primary key is {_key_text(found)}, not {_key_text(wanted)}")
    return said


def _key_text(table: TableSchema) -> str:
    names = [f"({', '.join(table.partition_key)})", *table.clustering_key]
    return f"({', '.join(names)})"


def repeated_keys(keys: Sequence[object]) -> int:
    """Return how many of the sampled keys occurred before: their rows overwrite earlier rows."""
    return len(keys) - len(set(keys))

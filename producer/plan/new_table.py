"""Plan a table for the files of a load: read a sample of them, choose types and a primary key.

A table that exists is compared with that plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from producer.notes import Note
from producer.plan.column_types import UserTypes, as_given, check_arrow, given_types, misfits
from producer.plan.files import each_file
from producer.plan.heads import Heads
from producer.plan.table_sample import ArrowColumn, Sample, read_sample
from producer.request.load import LoadDraft
from producer.text import count_text
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import TableMissing, find_keyspace, find_table
from ringhaul.cluster.view import ClusterView
from ringhaul.errors import UsageError
from ringhaul.formats.header import SourceEmpty
from ringhaul.mapping.inference import Inferred, NoType, widened
from ringhaul.mapping.new_table import NewTable, differences, new_table, repeated_keys

#: The first release of Cassandra that has vectors.
VECTORS_SINCE = 5


@dataclass(frozen=True)
class Planned:
    """A table to create, and what the sample says about it, a line each."""

    table: NewTable
    notes: tuple[str, ...]


def wanted_table(request: LoadDraft, heads: Heads, cluster: ClusterView) -> Planned | Note:
    """Return the table to create, or a note that it exists as it would be created.

    Raises `UsageError` if it exists with other columns or another key, and as `plan_new_table` and
    `find_keyspace` do.
    """
    keyspace = find_keyspace(cluster, request.keyspace)
    planned = plan_new_table(
        request, heads, user_types=keyspace.user_types, vectors=_has_vectors(cluster)
    )
    try:
        found = find_table(cluster, request.keyspace, request.table)
    except TableMissing:
        return planned
    said = differences(planned.table.schema, found)
    if said:
        raise UsageError(
            f"--create-table: {found.name} exists and differs from what the files suggest: "
            f"{'; '.join(said)}. Leave out --create-table to load into it as it is"
        )
    return Note(f"{found.name} exists already, and matches the files")


def _has_vectors(cluster: ClusterView) -> bool:
    """Return whether all nodes know the type `vector`."""
    releases = [node.release.partition(".")[0] for node in cluster.nodes]
    return all(release.isdigit() and int(release) >= VECTORS_SINCE for release in releases)


def plan_new_table(
    request: LoadDraft,
    heads: Heads,
    *,
    user_types: UserTypes = (),
    vectors: bool = True,
) -> Planned:
    """Return the table that fits a sample of the files: the first, one in the middle, the last.

    `user_types`: the user types of the keyspace. `vectors`: whether the cluster has vectors. Raises
    `UsageError` for files without names of fields, without records, or whose types differ, and for
    values that no type holds.
    """
    files = heads.files
    sampled = [*dict.fromkeys([files[0], files[len(files) // 2], files[-1]])]
    samples = [
        sample
        for sample in each_file(
            sampled, lambda file: read_sample(request, heads[file], file == files[0], vectors)
        )
        if sample is not None
    ]
    if not samples:
        raise SourceEmpty(f"{files[0].path}: --create-table needs records, and there are none")
    names = [*dict.fromkeys(name for sample in samples for name in sample.columns)]
    given = given_types(request.types, names, user_types)
    columns = _joined(samples, names, given)
    table = new_table(request.keyspace, request.table, columns, request.primary_key, user_types)
    notes = _notes(table.schema, samples, len(files))
    return Planned(table, (*notes, *_misfit_notes(request, table.schema, samples, given)))


def _joined(
    samples: Sequence[Sample], names: Sequence[str], given: Mapping[str, str]
) -> dict[str, Inferred]:
    """Return the columns `names` of all samples, each with the type that holds its values in all of
    them, or with the `given` one.

    Samples of text are taken together; samples of typed files have to agree.
    """
    found: dict[str, Inferred] = {}
    for name in names:
        if name in given:
            found[name] = as_given(given[name])
            continue
        having = [sample for sample in samples if name in sample.columns]
        for place, inferred in _types_of(name, having):
            before = found.get(name)
            if before is None:
                found[name] = inferred
                continue
            wide = widened(before.cql_type, inferred.cql_type)
            if wide is None:
                raise UsageError(
                    f"{place}: column {name!r} would be {inferred.cql_type}, and in an earlier "
                    f"file {before.cql_type}: load such files into separate tables"
                )
            if wide == before.cql_type:
                continue
            same = wide == inferred.cql_type
            found[name] = inferred if same else Inferred(wide, f"{before.reason}, or other ones")
    return found


def _types_of(name: str, samples: Sequence[Sample]) -> list[tuple[str, Inferred]]:
    """Return the type of a column in each group of samples, with the path of one of its files."""
    texts = [sample for sample in samples if isinstance(sample.columns[name], pa.Array)]
    lists = [sample for sample in samples if isinstance(sample.columns[name], list)]
    groups: list[tuple[Sample, Any]] = []
    if texts:
        groups.append((texts[0], pa.concat_arrays([one.columns[name] for one in texts])))
    if lists:
        groups.append((lists[0], [value for one in lists for value in one.columns[name]]))
    groups += [(one, one.columns[name]) for one in samples if one not in (*texts, *lists)]
    found = []
    for sample, values in groups:
        try:
            found.append((sample.file.path, sample.infer(values)))
        except NoType as error:
            raise UsageError(
                f"{sample.file.path}: column {name!r}: {error}; or leave it out with --skip-columns"
            ) from None
    return found


def _notes(table: TableSchema, samples: Sequence[Sample], files: int) -> list[str]:
    """Return what the sample says: how large it is, and keys that are missing or repeated."""
    records = sum(sample.records for sample in samples)
    of_files = count_text(files, "file")
    if len(samples) < files:
        of_files = f"{len(samples)} of {of_files}"
    if not records:
        return [f"types as in {of_files}"]
    notes = [f"types from the first {count_text(records, 'record')} of {of_files}"]
    with_key = [
        sample
        for sample in samples
        if sample.records and all(name in sample.columns for name in table.primary_key)
    ]
    keys = [
        key
        for sample in with_key
        for key in zip(*(_values(sample.columns[name]) for name in table.primary_key), strict=True)
    ]
    missing = sum(None in key for key in keys)
    if missing:
        notes.append(
            f"warning: {count_text(missing, 'sampled record')} without a value for the primary key "
            "would be rejected"
        )
    again = repeated_keys([key for key in keys if None not in key])
    if again:
        notes.append(
            f"warning: {count_text(again, 'sampled record')} with a primary key that another one "
            "has: the later one overwrites the earlier. Name more columns with --primary-key"
        )
    return notes


def _misfit_notes(
    request: LoadDraft,
    table: TableSchema,
    samples: Sequence[Sample],
    given: Mapping[str, str],
) -> list[str]:
    """Return a warning for each type that --type gives, and that does not hold sampled values."""
    notes = []
    for name in given:
        kind, faults = table.parsed_type(name), list[str]()
        for sample in samples:
            values = sample.columns.get(name)
            if isinstance(values, ArrowColumn):
                try:
                    check_arrow(values.type, kind)
                except UsageError as error:
                    raise UsageError(f"{sample.file.path}: column {name!r}: {error}") from None
            elif values is not None:
                faults += misfits(name, values, kind, request.text)
        if faults:
            notes.append(
                f"warning: {count_text(len(faults), 'sampled value')} of {name} would be rejected: "
                f"{faults[0]}"
            )
    return notes


def _values(column: Any) -> list[object]:
    """Return the values of a sampled column in a form that can be compared and hashed."""
    if isinstance(column, pa.Array):
        return list(column.to_pylist())
    return [None if value is None else repr(value) for value in column]

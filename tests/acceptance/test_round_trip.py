"""Unload, load, unload: the same files and the same stored cells for any table."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from hypothesis import HealthCheck, Phase, given, settings

from ringhaul.cql.empties import EMPTIABLE
from ringhaul.cql.types import CqlType
from tests.acceptance.any_table import (
    AnyTable,
    Column,
    create_tables,
    raw_session,
    stored_rows,
    tables,
    write_rows,
)
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import create_table
from tests.property.cql.any_values import EXTREMES, short
from tests.property.cql.pages import Pairs

FORMATS = ["csv", "jsonl", "parquet"]
#: Each command is a process that takes a second, mostly to start: so three at a time.
EXAMPLES = 6
#: The driver's threads call it while a table is drawn, which Hypothesis takes for the test.
NOT_OURS = "ignore:Do not use the `random` module"


class Trip:
    """Round trips of tables in one keyspace."""

    def __init__(
        self, fleet: Ringhaul, session: Session, raw: Session, keyspace: str, folder: Path
    ) -> None:
        self.fleet, self.session, self.raw = fleet, session, raw
        self.keyspace, self.folder = keyspace, folder
        self._numbers = itertools.count()

    def run(self, table: AnyTable, forms: Sequence[str] = FORMATS) -> None:
        """Copy the table through each of these formats, and compare the cells."""
        source = f"t{next(self._numbers)}"
        create_tables(
            self.session, self.keyspace, table, [source, *(f"{source}_{f}" for f in forms)]
        )
        write_rows(self.session, f"{self.keyspace}.{source}", table)
        stored = stored_rows(self.raw, f"{self.keyspace}.{source}")
        assert stored
        with ThreadPoolExecutor(len(forms)) as pool:
            for form in pool.map(lambda form: self._through(source, form, len(stored)), forms):
                copy = stored_rows(self.raw, f"{self.keyspace}.{source}_{form}")
                assert_same_cells(form, stored, copy)

    def _through(self, source: str, form: str, rows: int) -> str:
        first, second = (self.folder / f"{source}_{form}_{turn}" for turn in (1, 2))
        copy = f"{self.keyspace}.{source}_{form}"
        self._unload(f"{self.keyspace}.{source}", first, form, rows)
        loaded = self.fleet.run("load", first, "-t", copy, "--json", "--allow-nul")
        assert (loaded.code, loaded.summary["rows"]) == (0, rows), self._errors(loaded)
        # The loaded values equal those of the files, also if the server normalises them.
        verified = self.fleet.run(
            *("verify", first, "-t", copy, "--json", "--allow-nul", "--nulls", "tombstone")
        )
        assert (verified.code, verified.summary["rows"]) == (0, rows), self._errors(verified)
        self._unload(copy, second, form, rows)
        if form == "parquet":
            assert_same_tables(parquet_table(first), parquet_table(second))
        else:
            assert records(first, form) == records(second, form)
        return form

    def _unload(self, name: str, folder: Path, form: str, rows: int) -> None:
        done = self.fleet.run(
            *("unload", "-t", name, "-o", folder, "--format", form, "--order", "token", "--json")
        )
        assert (done.code, done.summary["rows"]) == (0, rows), done

    def _errors(self, loaded: Finished) -> str:
        errors = self.fleet.run("errors", loaded.summary["job"]) if loaded.out else None
        return f"{loaded}\n{errors and errors.out}"


@pytest.fixture(scope="module")
def trip(
    fleet_env: dict[str, str],
    cassandra_session: Session,
    module_keyspace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Trip]:
    folder = tmp_path_factory.mktemp("trips")
    with raw_session(cassandra_session) as raw:
        yield Trip(Ringhaul(fleet_env, folder), cassandra_session, raw, module_keyspace, folder)


def records(folder: Path, form: str) -> bytes:
    """Return the records of all files after the first file's header."""
    head, text = b"", []
    for path in parts(folder):
        data = path.read_bytes()
        if form == "csv":
            head, data = split_head(data)
        text.append(data)
    return head + b"".join(text)


def split_head(data: bytes) -> tuple[bytes, bytes]:
    """Split off the header with its line end; a quoted name may contain line ends, too."""
    end = data.index(b"\n") + 1
    while data[:end].count(b'"') % 2:
        end = data.index(b"\n", end) + 1
    return data[:end], data[end:]


def parquet_table(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in parts(folder)])


def parts(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.iterdir() if path.name != "_manifest.json")
    assert found
    return found


def assert_same_tables(left: pa.Table, right: pa.Table) -> None:
    assert left.schema.equals(right.schema, check_metadata=True)
    for name in left.column_names:
        assert as_text(left[name]) == as_text(right[name]), name


def as_text(column: pa.ChunkedArray) -> list[str]:
    """Return the values as text, in which all NaNs are equal, and -0.0 differs from 0.0."""
    chunks = (
        chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in column.chunks
    )
    return [repr(value) for chunk in chunks for value in chunk.cast(plain(chunk.type)).to_pylist()]


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type with integers for times that Python's types cannot hold."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_type), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in kind])
    return kind


def assert_same_cells(
    form: str, wanted: list[dict[str, bytes | None]], found: list[dict[str, bytes | None]]
) -> None:
    for number, (left, right) in enumerate(zip(wanted, found, strict=True)):
        for name, cell in left.items():
            assert cell == right[name], f"{name} of row {number} by {form}"


Extremes = Mapping[str, Sequence[Any]]


def value(kind: CqlType, number: int, extremes: Extremes) -> Any:
    """Return the value of that number: the extremes in turn; a container has the next ones, too."""

    def inner(place: int) -> Any:
        of = kind.of[place] if kind.name in ("tuple", "udt") else kind.of[0]
        return value(of, number + place, extremes)

    match kind.name:
        case "list" | "set":
            return list(map(inner, range(number % 4)))
        case "map":
            items = (value(kind.of[1], number + place + 1, extremes) for place in range(number % 3))
            return Pairs(zip(map(inner, range(number % 3)), items, strict=True))
        case "vector":
            return list(map(inner, range(kind.size)))
        case "tuple" | "udt":
            places = range(len(kind.of))
            return tuple(None if (number + i) % 5 == 0 else inner(i) for i in places)
        case _:
            found = extremes[kind.name]
            return found[number % len(found)]


SCALARS = [CqlType(name) for name in EXTREMES]
KEYABLE = [kind for kind in SCALARS if kind.name != "duration"]
#: A row for each extreme of the type with the most, and one with only nulls.
ROWS = max(map(len, EXTREMES.values())) + 1


def containers(kind: CqlType, key: CqlType) -> list[CqlType]:
    """Return each container of a type, and one of depth 3."""
    pair = CqlType("tuple", (kind, kind))
    vector = CqlType("vector", (kind,), size=2)
    deep = CqlType("list", (CqlType("map", (key, CqlType("tuple", (kind, vector)))),))
    return [
        CqlType("list", (kind,)),
        CqlType("set", (key,)),
        CqlType("map", (key, kind)),
        pair,
        vector,
        deep,
    ]


def udt(*of: CqlType) -> CqlType:
    return CqlType("udt", of, tuple(f"f{number}" for number in range(len(of))))


def wide_table() -> AnyTable:
    """Return a table with every type, every container of it, and both kinds of user types."""
    kinds = list(SCALARS)
    for kind in SCALARS:
        kinds += containers(kind, kind if kind in KEYABLE else CqlType("int"))
    every = udt(*SCALARS)
    nested = udt(every, CqlType("set", (udt(*KEYABLE),)), CqlType("map", (KEYABLE[0], every)))
    kinds += [every, every, CqlType("vector", (every,), size=2), nested, nested]
    columns = [Column(f"c{place}", kind, place % 2 == 0) for place, kind in enumerate(kinds)]
    rows = []
    for row in range(ROWS):
        values = [
            None if row == 0 or (row * 7 + place) % 11 == 0 else value(column.kind, row, EXTREMES)
            for place, column in enumerate(columns)
        ]
        rows.append((row, *values))
    return AnyTable([Column("id", CqlType("int"))], [], columns, rows)


def key_table() -> AnyTable:
    """Return a table with every allowed type in its key, in both clustering orders."""
    partition = [*KEYABLE[::2], CqlType("set", (CqlType("decimal"),))]
    clustering = [*KEYABLE[1::2], *containers(CqlType("double"), CqlType("inet")), udt(*KEYABLE)]
    kinds = [*partition, *clustering, CqlType("text")]
    columns = [Column(f"c{place}", kind, True) for place, kind in enumerate(kinds)]
    split = len(partition)
    extremes = {name: list(filter(short, found)) for name, found in EXTREMES.items()}
    return AnyTable(
        columns[:split],
        [(column, ("ASC", "DESC")[place % 2]) for place, column in enumerate(columns[split:-1])],
        columns[-1:],
        [[value(kind, row, extremes) for kind in kinds] for row in range(ROWS)],
    )


@pytest.mark.parametrize("make", [wide_table, key_table])
def test_every_type_comes_back_with_its_extremes(trip: Trip, make: Callable[[], AnyTable]) -> None:
    trip.run(make())


@pytest.mark.filterwarnings(NOT_OURS)
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    # An example takes seconds: too slow for shrinking.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(table=tables() | tables(EMPTIABLE))
def test_any_table_comes_back(trip: Trip, table: AnyTable) -> None:
    has_empty = any("EMPTY" in repr(row) for row in table.rows)
    trip.run(table, ["csv", "jsonl"] if has_empty else FORMATS)  # Parquet has no empty values


def test_counters_are_unloaded_and_not_loaded(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, n counter, m counter")
    wanted = {0: (2**63 - 1, None), 1: (-(2**63), 0), 2: (None, -1)}
    for key, counts in wanted.items():
        for name, count in zip("nm", counts, strict=True):
            if count is not None:
                cassandra_session.execute(
                    f"UPDATE {table} SET {name} = {name} + {count} WHERE id = {key}"
                )
    for form in FORMATS:
        done = fleet.run("unload", "-t", table, "-o", form, "--format", form, "--json")
        assert (done.code, done.summary["rows"]) == (0, 3), done

    def rows(form: str, read: Callable[[Path], list[dict[str, Any]]]) -> dict[Any, Any]:
        found = [row for path in parts(fleet.cwd / form) for row in read(path)]
        return {row["id"]: (row["n"], row["m"]) for row in found}

    assert rows("parquet", lambda path: pq.read_table(path).to_pylist()) == wanted
    assert rows("jsonl", lambda path: [*map(json.loads, path.read_text().splitlines())]) == wanted
    texts = {
        str(key): tuple("" if count is None else str(count) for count in counts)
        for key, counts in wanted.items()
    }
    assert rows("csv", lambda path: list(csv.DictReader(path.read_text().splitlines()))) == texts

    refused = fleet.run("load", "csv", "-t", table)
    assert refused.code == 2
    assert "counter" in refused.err

"""Collections as cells: in the order of their type, each path once, the same at each try."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.cells import Cells
from ringhaul.sstables.build import Built, CollectionsUnited, build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.elements import as_cells
from ringhaul.sstables.layout import Column, Layout
from tests.sstable_reader import Bytes

NOW_S, TIME_US = 1_760_000_000, 1_760_000_000_000_000


def column(cells: str, path_type: str = "int") -> Column:
    return Column(
        name="v", class_name="C", cql_type=cells, width=0, cells=cells, path_type=path_type
    )


def value(*parts: bytes, parts_of_an_element: int = 1) -> bytes:
    """Return a collection as it is on the wire."""
    count = len(parts) // parts_of_an_element
    return struct.pack(">i", count) + b"".join(struct.pack(">i", len(p)) + p for p in parts)


def ints(*numbers: int) -> list[bytes]:
    return [struct.pack(">i", number) for number in numbers]


def cells(values: Sequence[bytes | None]) -> Cells:
    """Return cells; None is null, and empty bytes are unset."""
    lengths = [-1 if v is None else len(v) or -2 for v in values]
    return Cells(None, np.array(lengths, ">i4"), pa.array([v or b"" for v in values], pa.binary()))


def parts_of(found: Cells, row: int) -> list[bytes]:
    cursor = Bytes(found.values[row].as_py())
    parts = []
    while not cursor.over:
        parts.append(cursor.take(cursor.number("i")))
    return parts


def test_elements_of_sets_are_sorted_and_once() -> None:
    given = [value(*ints(5, -3, 7, -3, 5)), None, b"", value(), value(*ints(1))]

    found, count = as_cells(column("set"), cells(given), NOW_S)

    assert [parts_of(found, row) for row in (0, 4)] == [ints(-3, 5, 7), ints(1)]
    assert found.lengths.tolist() == [24, 0, -2, 0, 8]
    assert count == 4


def test_of_equal_keys_of_a_map_the_last_counts() -> None:
    given = [value(b"b", b"1", b"a", b"2", b"b", b"", parts_of_an_element=2)]

    found, count = as_cells(column("map", "text"), cells(given), NOW_S)

    assert parts_of(found, 0) == [b"a", b"2", b"b", b""]
    assert count == 2


def test_lists_keep_their_order_and_have_the_same_paths_at_each_try() -> None:
    given = cells([value(b"z", b"", b"a"), value(b"z")])

    found, count = as_cells(column("list"), given, NOW_S)

    assert count == 4
    parts = parts_of(found, 0)
    assert parts[1::2] == [b"z", b"", b"a"]
    paths = [uuid.UUID(bytes=path) for path in parts[::2]]
    assert [path.version for path in paths] == [1, 1, 1]
    assert [path.time - paths[0].time for path in paths] == [0, 1, 2]
    assert (paths[0].time - 0x01B21DD213814000) / 10**7 == NOW_S
    again, _ = as_cells(column("list"), given, NOW_S)
    assert again.values.equals(found.values)


def test_fields_that_are_null_have_no_cell() -> None:
    null, given = struct.pack(">i", -1), struct.pack(">i", 1) + b"x"
    values = [given + null + struct.pack(">i", 0), null * 3, b"", None, given]

    found, count = as_cells(column("udt"), cells(values), NOW_S)

    assert parts_of(found, 0) == [b"\0\0", b"x", b"\0\2", b""]
    assert parts_of(found, 4) == [b"\0\0", b"x"]
    assert found.lengths.tolist() == [21, 0, -2, 0, 11]
    assert count == 3


def built(values: Sequence[bytes | None], times: Sequence[int]) -> Built:
    """Build an SSTable of rows with one key and a set."""
    layout = Layout(
        partition_key_class="K", clustering=(), columns=(column("set"),), written_s=NOW_S
    )
    rows = Rows(
        keys=pa.array([b"k"] * len(values), pa.binary()),
        clustering=[],
        columns=[cells(values)],
        times_us=np.array(times, np.int64),
        ttls_s=np.array([0, 60] * len(values), np.int64)[: len(values)],
    )
    return build_sstable(layout, [rows])


def test_values_that_a_node_would_unite_are_refused() -> None:
    one, two = value(*ints(1)), value(*ints(2))
    with pytest.raises(CollectionsUnited, match="two records of one key have the same write time"):
        built([one, b"", two], [TIME_US] * 3)

    # And those of which one replaces the other, or that are equal, are not
    assert built([one, b"", one, two, b""], [TIME_US] * 3 + [TIME_US + 1] * 2).rows == 1


def check_bounds() -> None:
    """Build what reaches the ends of the kernels' arrays; see `test_build`."""
    many = value(*ints(*range(300, 0, -1)))
    built([many, many, b"", None, value(), value(b"")], [TIME_US + n * 2**40 for n in range(6)])
    built([many] * 50, list(range(-(2**62), -(2**62) + 50)))
    for kind, given in (
        ("map", value(b"", b"", parts_of_an_element=2)),
        ("list", value(b"", b"x")),
    ):
        as_cells(column(kind, "text"), cells([given, b"", None, value()]), NOW_S)
    as_cells(column("set"), cells([b"", None]), NOW_S)
    fields = struct.pack(">i", 0) * 40
    as_cells(column("udt"), cells([fields, b"", None, fields, b"\xff" * 8]), NOW_S)

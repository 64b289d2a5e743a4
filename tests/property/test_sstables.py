"""Whatever rows an SSTable is built from, a simple reader finds what a node would have kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.cells import Cells
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.layout import Column, Layout
from ringhaul.sstables.version import SSTableVersion
from tests.scale import scaled
from tests.sstable_figures import stats_of
from tests.sstable_reader import Cell, Partition, header_of, index_of, partitions_of, summary_of

NOW_S = 1_760_000_000
TIME_US = 1_760_000_000_000_000
#: Ends after 2038, but not after 2106.
LONG_TTL_S = 600_000_000


class One(NamedTuple):
    """A row. A value of None is null, `...` unset."""

    key: bytes
    clustering: tuple[bytes, ...]
    values: tuple[Any, ...]
    time_us: int
    ttl_s: int


class Shape(NamedTuple):
    """The widths of clustering columns, which of them descend, the widths of other columns."""

    clustering: Sequence[int]
    descends: Sequence[bool]
    columns: Sequence[int]


def layout_of(shape: Shape, **options: Any) -> Layout:
    kinds = {0: "blob", 4: "int"}
    return Layout(
        partition_key_class="BytesType",
        clustering=tuple(
            Column(
                name=f"ck{at}",
                class_name="C",
                cql_type=kinds[width],
                width=width,
                descends=shape.descends[at],
            )
            for at, width in enumerate(shape.clustering)
        ),
        columns=tuple(
            Column(name=f"c{at:03}", class_name="C", cql_type=kinds[width], width=width)
            for at, width in enumerate(shape.columns)
        ),
        written_s=NOW_S,
        **options,
    )


def rows_of(shape: Shape, ones: Sequence[One]) -> Rows:
    def cells(values: Sequence[Any]) -> Cells:
        lengths = [-2 if v is ... else -1 if v is None else len(v) for v in values]
        data = [v if isinstance(v, bytes) else b"" for v in values]
        if set(lengths) == {4}:  # as readers of numbers make them
            return Cells.fixed(np.frombuffer(b"".join(data), ">i4"))
        return Cells(None, np.array(lengths, ">i4"), pa.array(data, pa.binary()))

    return Rows(
        keys=pa.array([one.key for one in ones], pa.binary()),
        clustering=[cells([one.clustering[at] for one in ones]) for at in range(len(shape[0]))],
        columns=[cells([one.values[at] for one in ones]) for at in range(len(shape[2]))],
        times_us=np.array([one.time_us for one in ones], np.int64),
        ttls_s=np.array([one.ttl_s for one in ones], np.int64),
    )


def built(shape: Shape, ones: Sequence[One], **options: Any) -> dict[str, bytes]:
    """Build from two blocks, as a worker does."""
    half = len(ones) // 2
    blocks = [rows_of(shape, part) for part in (ones[:half], ones[half:]) if part]
    made = build_sstable(layout_of(shape, **options), blocks)
    return {name: bytes(data[:]) for name, data in made.files}


def read(shape: Shape, files: dict[str, bytes], version: str = "nb") -> list[Partition]:
    widths = {f"ck{at}": width for at, width in enumerate(shape.clustering)}
    widths |= {f"c{at:03}": width for at, width in enumerate(shape.columns)}
    return partitions_of(files, widths, version)


def cell_of(one: One, at: int) -> Cell:
    value = one.values[at]
    if value is None:
        return Cell(None, one.time_us, 0, NOW_S)
    return Cell(value, one.time_us, one.ttl_s, NOW_S + one.ttl_s if one.ttl_s else None)


def rank(cell: Cell) -> tuple[Any, ...]:
    """Of two cells, the one with the larger rank counts (`Cells.reconcile`)."""
    return cell.time_us, cell.value is None, cell.deletion_s or 0, cell.value or b""


def expected(shape: Shape, ones: Sequence[One]) -> dict[Any, tuple[int, int, dict[str, Cell]]]:
    """Return (key, clustering) -> write time, TTL and cells of each row that a node would keep."""
    found: dict[Any, list[One]] = {}
    for one in ones:
        found.setdefault((one.key, one.clustering), []).append(one)
    merged = {}
    for place, same in found.items():
        live = max(same, key=lambda one: (one.time_us, one.ttl_s))
        cells = {}
        for at in range(len(shape.columns)):
            given = [cell_of(one, at) for one in same if one.values[at] is not ...]
            if given:
                cells[f"c{at:03}"] = max(given, key=rank)
        merged[place] = (live.time_us, live.ttl_s, cells)
    return merged


def sort_key(shape: Shape, clustering: tuple[bytes, ...]) -> list[Any]:
    """Return a key by which clusterings sort: ints by value, empty ones first."""
    out: list[Any] = []
    for at, value in enumerate(clustering):
        data = value
        if shape.clustering[at] and value:
            data = bytes([value[0] ^ 0x80]) + value[1:]
        # A descending bytewise order: each byte inverted, and a longer value before its prefix.
        out.append([255 - byte for byte in data] + [256] if shape.descends[at] else list(data))
    return out


def check(shape: Shape, ones: Sequence[One], **options: Any) -> dict[str, bytes]:
    files = built(shape, ones, **options)
    version = options.get("version", SSTableVersion.NB)
    partitions = read(shape, files, version)

    wanted = expected(shape, ones)
    got = {
        (partition.key, row.clustering): (row.time_us, row.ttl_s, row.cells)
        for partition in partitions
        for row in partition.rows
    }
    assert got == wanted
    assert sum(len(partition.rows) for partition in partitions) == len(wanted)
    keys = [partition.key for partition in partitions]
    tokens = murmur3_tokens(pa.array(keys, pa.binary())).tolist()
    assert list(zip(tokens, keys, strict=True)) == sorted(zip(tokens, keys, strict=True))
    for partition in partitions:
        order = [sort_key(shape, row.clustering) for row in partition.rows]
        assert order == sorted(order)

    index = index_of(files["Index.db"])
    assert [(key, at) for key, at, _, _ in index] == [(p.key, p.position) for p in partitions]
    sampled, first, last = summary_of(files["Summary.db"])
    every = options.get("index_interval", 128)
    assert sampled == [(key, place) for key, _, _, place in index[::every]]
    assert (first, last) == (keys[0], keys[-1])
    used = {f"c{at:03}" for at in range(len(shape[2])) for o in ones if o.values[at] is not ...}
    assert {name for name, _ in header_of(files["Statistics.db"]).columns} == used
    check_statistics(shape, wanted, partitions, files["Statistics.db"], version)
    return files


def check_statistics(
    shape: Shape,
    wanted: dict[Any, tuple[int, int, dict[str, Cell]]],
    partitions: Sequence[Partition],
    statistics: bytes,
    version: str,
) -> None:
    """Check the figures that decide which SSTables a node reads, and when it drops one."""
    found = stats_of(statistics, version, shape.clustering)
    clusterings = sorted(
        (row.clustering for partition in partitions for row in partition.rows),
        key=lambda values: sort_key(shape, values),
    )
    assert (found.clustering_min, found.clustering_max) == (clusterings[0], clusterings[-1])
    assert found.rows == len(wanted)
    cells = [cell for _, _, row in wanted.values() for cell in row.values()]
    times = [time_us for time_us, _, _ in wanted.values()] + [cell.time_us for cell in cells]
    assert found.time_us_min <= min(times) and max(times) <= found.time_us_max
    ends = [NOW_S + ttl_s for _, ttl_s, _ in wanted.values() if ttl_s]
    ends += [cell.deletion_s for cell in cells if cell.deletion_s is not None]
    stays = any(not ttl_s for _, ttl_s, _ in wanted.values())
    never_s = 0xFFFFFFFF if version == "oa" else 0x7FFFFFFF
    assert found.deletion_s_min <= min(ends, default=never_s)
    assert found.deletion_s_max >= max(ends, default=0)
    assert found.deletion_s_max == never_s or not stays
    # As after a compaction of a node, which knows no more than these figures
    assert header_of(statistics).ttl_s == found.ttl_s_min
    assert found.ttl_s_min == 0 or not stays
    if version == "oa":
        keys = (partitions[0].key, partitions[-1].key)
        assert (found.first_key, found.last_key) == keys
        assert found.clustering_types == header_of(statistics).clustering


FIXED = st.binary(min_size=4, max_size=4) | st.just(b"")
ANY = st.binary(max_size=6) | st.sampled_from([b"", b"\0", b"\0\0", b"\xff", b"\x80" * 130])
TIMES = st.integers(TIME_US, TIME_US + 3) | st.integers(-(2**62), 2**62)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    clustering = draw(st.lists(st.sampled_from([0, 4]), max_size=3))
    descends = [draw(st.booleans()) for _ in clustering]
    columns = draw(
        st.lists(st.sampled_from([0, 4]), max_size=4)
        | st.sampled_from([[0, 4] * n for n in (31, 32, 40)])
    )
    return Shape(clustering, descends, columns)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Shape, list[One]]:
    shape = draw(shapes())
    missing = st.sampled_from([..., None])

    def value(width: int) -> st.SearchStrategy[Any]:
        return missing | (FIXED if width else ANY)

    few = st.sampled_from([b"a", b"b", b"a\0", b"\xff" * 20])
    one = st.builds(
        One,
        few | st.binary(min_size=1, max_size=20),
        st.tuples(*(FIXED if width else ANY for width in shape.clustering)),
        st.tuples(*map(value, shape.columns)),
        TIMES,
        st.sampled_from([0, 0, 1, 60, 86_400, LONG_TTL_S]),
    )
    return shape, draw(st.lists(one, min_size=1, max_size=12))


@settings(max_examples=scaled(50, 5000))
@given(
    case=cases(),
    chunk=st.sampled_from([0, 4096]),
    interval=st.sampled_from([1, 3, 128]),
    version=st.sampled_from(list(SSTableVersion)),
)
def test_rows_are_merged_sorted_and_indexed_as_a_node_would(
    case: tuple[Shape, list[One]], chunk: int, interval: int, version: SSTableVersion
) -> None:
    shape, ones = case
    if version is SSTableVersion.NB:  # which has no such times, so none comes as far as here
        ones = [one._replace(ttl_s=min(one.ttl_s, 86_400)) for one in ones]
    check(shape, ones, chunk_bytes=chunk, index_interval=interval, version=version)

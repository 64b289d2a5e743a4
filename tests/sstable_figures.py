"""A reader of the figures in Statistics.db, written apart from the writer: slow and simple."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from tests.sstable_reader import Bytes, clustering_of, components_of

_LOG = "positions of the commit log, which only a node's rows went through"
#: Fields that differ between our files and those of a node's compaction, and why.
EXCEPTIONS = {
    "log_begin": _LOG,
    "log_end": _LOG,
    "log_intervals": _LOG,
    "host": "the node that wrote the file",
    "ratio": "two encoders of LZ4 do not make the same bytes",
}
#: How far apart the compression ratios may be.
RATIO = 0.15


@dataclass
class Stats:
    """The component `Stats`. Fields that only later versions have are None in nb."""

    partition_bytes: list[tuple[int, int]]  #: bound of a bucket, partitions in it
    partition_cells: list[tuple[int, int]]
    log_end: tuple[int, int]
    time_us_min: int
    time_us_max: int
    deletion_s_min: int
    deletion_s_max: int
    ttl_s_min: int
    ttl_s_max: int
    ratio: float
    drop_times: list[tuple[int, int]]
    level: int
    repaired_at: int
    clustering_types: list[str] | None
    clustering_min: tuple[bytes, ...]
    clustering_max: tuple[bytes, ...]
    has_counters: bool
    columns: int
    rows: int
    log_begin: tuple[int, int]
    log_intervals: list[tuple[int, ...]]
    pending_repair: bytes | None
    is_transient: bool
    host: bytes | None
    has_partition_deletions: bool | None
    first_key: bytes | None
    last_key: bytes | None
    token_share: bytes | None  #: a double, which may not be a number


def validation_of(statistics: bytes) -> tuple[str, float]:
    """Return the partitioner and the chance of false positives."""
    cursor = Bytes(components_of(statistics)[0])
    found = cursor.take(cursor.number("H")).decode(), cursor.number("d")
    # In oa a node plans 16 bytes for each of `drop_times` and needs 12: zeros are left.
    assert not any(cursor.data[cursor.at :])
    return found


def stats_of(statistics: bytes, version: str, widths: Sequence[int]) -> Stats:
    """Return the figures. `widths`: of the clustering columns, see `partitions_of`."""
    cursor = Bytes(components_of(statistics)[2])
    is_oa = version == "oa"

    def histogram() -> list[tuple[int, int]]:
        pairs = [(cursor.number("q"), cursor.number("q")) for _ in range(cursor.number("i"))]
        return [(bound, count) for bound, count in pairs if count]

    def position() -> tuple[int, int]:
        return cursor.number("q"), cursor.number("i")

    def legacy_values() -> tuple[bytes, ...]:
        return tuple(cursor.take(cursor.number("H")) for _ in range(cursor.number("i")))

    def bound(kind: int) -> tuple[bytes, ...]:
        assert cursor.number("b") == kind
        assert cursor.number("h") == len(widths)
        return clustering_of(cursor, widths)

    def drop_times() -> list[tuple[int, int]]:
        size_max, size = cursor.number("i"), cursor.number("i")
        assert size_max == size
        kinds = "qi" if is_oa else "dq"
        return [(int(cursor.number(kinds[0])), cursor.number(kinds[1])) for _ in range(size)]

    def optional(size: int) -> bytes | None:
        return cursor.take(size) if cursor.number("?") else None

    def with_length() -> bytes:
        return cursor.take(cursor.vint())

    found = Stats(
        partition_bytes=histogram(),
        partition_cells=histogram(),
        log_end=position(),
        time_us_min=cursor.number("q"),
        time_us_max=cursor.number("q"),
        deletion_s_min=cursor.number("I"),
        deletion_s_max=cursor.number("I"),
        ttl_s_min=cursor.number("i"),
        ttl_s_max=cursor.number("i"),
        ratio=cursor.number("d"),
        drop_times=drop_times(),
        level=cursor.number("i"),
        repaired_at=cursor.number("q"),
        clustering_types=[with_length().decode() for _ in range(cursor.vint())] if is_oa else None,
        clustering_min=bound(1) if is_oa else legacy_values(),
        clustering_max=bound(6) if is_oa else legacy_values(),
        has_counters=cursor.number("?"),
        columns=cursor.number("q"),
        rows=cursor.number("q"),
        log_begin=position(),
        log_intervals=[(*position(), *position()) for _ in range(cursor.number("i"))],
        pending_repair=optional(16),
        is_transient=cursor.number("?"),
        host=optional(16),
        has_partition_deletions=cursor.number("?") if is_oa else None,
        first_key=with_length() if is_oa else None,
        last_key=with_length() if is_oa else None,
        token_share=cursor.take(8) if is_oa else None,
    )
    # In oa a node plans 16 bytes for each of `drop_times` and needs 12: zeros are left.
    assert not any(cursor.data[cursor.at :])
    return found


def differences(one: Stats, other: Stats) -> set[str]:
    """Return the names of the fields that differ."""
    names = [field.name for field in fields(Stats)]
    return {name for name in names if getattr(one, name) != getattr(other, name)}


def assert_same_statistics(ours: bytes, theirs: bytes) -> None:
    """Compare Statistics.db of version nb with a node's, field by field except `EXCEPTIONS`.

    The estimates of the component Compaction are not compared.
    """
    assert validation_of(ours) == validation_of(theirs)
    assert components_of(ours)[3] == components_of(theirs)[3], "the header"
    mine, wanted = stats_of(ours, "nb", ()), stats_of(theirs, "nb", ())
    different = differences(mine, wanted) - EXCEPTIONS.keys()
    assert not different, {name: (getattr(mine, name), getattr(wanted, name)) for name in different}
    assert abs(mine.ratio - wanted.ratio) < RATIO

"""What an SSTable of a table contains: keys, clustering, columns and the options of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.sstables.version import SSTableVersion


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column as the files store it."""

    name: str
    class_name: str  #: with parameters; without `ReversedType`
    #: Type by which rows are sorted if this is a clustering column, see `structure`; else a name.
    cql_type: str
    width: int  #: bytes of each value; 0: each has a length before it
    descends: bool = False  #: a clustering column in descending order
    #: Kind of an unfrozen collection or user-defined type, whose elements or fields are cells:
    #: `set`, `map`, `list` or `udt`.
    cells: str = ""
    static: bool = False  #: one value for all rows of a partition
    path_type: str = ""  #: the type by which cells of a set or map are sorted, see `structure`
    #: Type of values that hold sets or maps that a node puts in order, see `structure`.
    ordered: str = ""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The columns of a table's SSTables and the table options that shape the files."""

    partition_key_class: str
    clustering: tuple[Column, ...]
    #: Other loaded columns, by the bytes of their names; columns with `cells` come last.
    columns: tuple[Column, ...]
    written_s: int  #: when rows begin to live and nulls are deleted, in seconds since the epoch
    default_ttl_s: int = 0
    bloom_fp_chance: float = 0.01  #: 1: no Bloom filter
    index_interval: int = 128
    chunk_bytes: int = 16 * 1024  #: bytes compressed together; 0: no compression
    #: Columns of the partition key, if any holds sets or maps that a node puts in order.
    keys: tuple[Column, ...] = ()
    version: SSTableVersion = SSTableVersion.NB

    def with_columns(self, kept: Sequence[int]) -> Layout:
        """Return the layout with only the columns at these places."""
        return Layout(**{**vars(self), "columns": tuple(self.columns[place] for place in kept)})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        columns: dict[str, tuple[Column, ...]] = {
            name: tuple(Column(**column) for column in data[name])
            for name in ("clustering", "columns", "keys")
            if name in data  # jobs of earlier versions have no keys
        }
        version = SSTableVersion(data.get("version", SSTableVersion.NB))  # older jobs have none
        return cls(**{**data, **columns, "version": version})

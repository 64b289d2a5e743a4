"""The rules of a load, which its draft and its job share.

An option that workers need is a field here: the draft takes it from the option of the same name,
the job from the draft, and the spec has a key for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ringhaul.cql.text import TextFormat
from ringhaul.formats.dialect import CsvDialect
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.spec import spec


@dataclass(frozen=True, kw_only=True)
class InputRules:
    """How records are read from sources and become rows, in a load or of a statement's values."""

    dialect: CsvDialect = field(default_factory=CsvDialect, metadata=spec(CsvDialect.from_json))
    text: TextFormat = field(default_factory=TextFormat, metadata=spec(TextFormat.from_json))
    nulls: str = "unset"  #: unset | tombstone
    #: Functions that records go through, as `module:function`, in this order.
    transforms: tuple[str, ...] = ()
    where: str = ""  #: which rows are wanted, as a condition over columns; empty: all
    #: Whether the bounds of a job on its records count from the first record of each source.
    bounds_per_source: bool = field(default=False, metadata=spec(later=True))
    #: A unit ends with the first record that makes it at least this long. 0: planning decides.
    unit_bytes: int = 0
    block_bytes: int = 2**21


@dataclass(frozen=True, kw_only=True)
class LoadRules(InputRules):
    """What a load, or a verification of one, does with its rows."""

    kind: JobKind = JobKind.LOAD  #: LOAD, or VERIFY: rows are compared with the table's
    ttl_s: int = 0  #: TTL of rows without their own; 0: the table's default
    consistency: str = "LOCAL_QUORUM"
    strategy: str = "pipeline"
    #: Bytes of Data.db after which the next SSTable starts.
    sstable_bytes: int = field(default=2**30, metadata=spec(later=True))
    #: Rows with a list are written at their times exactly, hence once.
    exact_timestamps: bool = False
    #: The command's own bounds on requests in flight and on rows of a request; 0: no bound. A
    #: worker's bounds may be lower.
    in_flight_requests_max: int = field(default=0, metadata=spec(later=True))
    batch_rows_max: int = field(default=0, metadata=spec(later=True))

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", JobKind(self.kind))  # a spec has its value


def rules_of(rules: type[InputRules], given: InputRules) -> dict[str, Any]:
    """Return rule -> its value in `given`, for the fields of `rules`: to make another record that
    states them."""
    return {one.name: getattr(given, one.name) for one in fields(rules)}

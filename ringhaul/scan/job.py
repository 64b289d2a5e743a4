"""The description of a read job as plain data: all a worker needs except secrets and addresses.

One SELECT says what to read, whatever the command: `unload`, `count` and `query` differ in what
they do with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.computed_items import Computed
from ringhaul.cql.types import CqlType
from ringhaul.ledger.kinds import ClosingStep, JobKind
from ringhaul.ledger.lost import lost_files_advice
from ringhaul.output.job import Output, ResultOutput

if TYPE_CHECKING:
    from ringhaul.query.select import Select


@dataclass(frozen=True, kw_only=True)
class ReadJob:
    """A read as the user requested it, fixed at submit so that a repeat reads alike."""

    kind: JobKind  #: UNLOAD, COUNT or QUERY
    cluster_name: str
    table: TableSchema
    sql: str  #: SELECT ... FROM keyspace.table [WHERE ...] ...; workers parse it again
    consistency: str = "LOCAL_QUORUM"
    output: Output | None = None  #: where an unload writes
    columns: tuple[tuple[str, str], ...] = ()  #: an unload's columns: name and CQL type of each
    #: Functions that the rows of an unload go through, as `module:function`, in this order.
    transforms: tuple[str, ...] = ()
    results: tuple[tuple[str, CqlType], ...] = ()  #: the columns after the transforms
    #: Whether rows come in token order, from unit to unit and within each.
    token_order: bool = False
    #: Whether the parts go only to the standard output of the command that started the job.
    streams: bool = False
    #: Most rows of an unload, before transforms. None: all.
    limit: int | None = None
    #: Whether the units share the limit, and any rows count towards it. Otherwise the limit takes
    #: the first rows in token order, and the job has one unit.
    shares_limit: bool = False
    #: What the server computes for each row, as it described it when the job was planned.
    computed: tuple[Computed, ...] = ()
    #: In a count by range or host: the tokens that end the ring's ranges, ascending, each with the
    #: address of the range's first owner.
    ring: tuple[tuple[int, str], ...] = ()
    by_host: bool = False
    #: Whether ranges that no replica can read are skipped and listed; otherwise they fail the job.
    skip_failed: bool = False
    result_output: ResultOutput = field(default_factory=ResultOutput)  #: a count's or a query's
    #: Bytes of a unit's partial table above which it goes to `spill` instead of the ledger.
    partial_bytes_max: int = 4 << 20
    spill: str = ""  #: folder of partial tables that are too large for the ledger; empty: none

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", JobKind(self.kind))  # a spec has its value

    @property
    def has_result(self) -> bool:
        """Whether it ends with one result."""
        return self.kind.has_result

    @property
    def repeatable(self) -> bool:
        """Whether a unit may run again. Always: it reads."""
        return True

    @property
    def resumable(self) -> bool:
        """Whether a command can continue the job after another command left it."""
        return not self.streams

    @property
    def streams_rows(self) -> bool:
        """Whether rows go to the standard output of the command that made the job."""
        return self.streams

    @property
    def closing(self) -> ClosingStep:
        """What a command publishes at the end."""
        if self.streams:
            return ClosingStep.NOTHING
        return ClosingStep.RESULT if self.has_result else ClosingStep.MANIFEST

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job in the ledger, beside the labels of all kinds: none."""
        return {}

    @property
    def output_url(self) -> str:
        """Folder or URL of files with rows; empty: the job writes none."""
        return "" if self.output is None else self.output.url

    def lost_advice(self) -> str:
        """Return what the job may have written if the ledger lost it, and how to run it again."""
        return lost_files_advice("" if self.streams else self.output_url)

    def once_advice(self) -> str:
        """Return why the job cannot be resumed if it is not `repeatable`; it always is."""
        return ""

    @property
    def takes_error_limit(self) -> bool:
        """Whether rejects can stop the job."""
        return bool(self.transforms)

    @property
    def input(self) -> None:
        """No files: the units are token ranges."""
        return None

    @property
    def label(self) -> str:
        """The table, for people."""
        return self.table.name

    @cached_property
    def select(self) -> Select:
        """The parsed SELECT. Raises `QueryError`, which the producer has reported before."""
        from ringhaul.query.select import parse_select  # slow; not needed to unload a table

        return parse_select(
            self.sql, lambda keyspace, table: self.table, describe=lambda table, _: self.computed
        )

    @property
    def written_names(self) -> Sequence[str]:
        """Names of the columns that are written to files."""
        return [name for name, _ in self.results] or self.select.names

    @property
    def written_types(self) -> Sequence[CqlType]:
        """Types of the columns that are written to files."""
        return [cql_type for _, cql_type in self.results] or self.select.types

    @property
    def exact_keys(self) -> bool:
        """Whether groups are partitions, as in a count: 1.5 and 1.50 are different keys."""
        return self.kind is JobKind.COUNT

    def to_json(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in _PLAIN}
        return data | {
            "table": self.table.to_json(),
            "output": self.output and self.output.to_json(),
            "columns": [list(pair) for pair in self.columns],
            "transforms": list(self.transforms),
            "results": [[name, cql_type.to_json()] for name, cql_type in self.results],
            "computed": [[one.cql, one.name, one.type.to_json()] for one in self.computed],
            "ring": [list(pair) for pair in self.ring],
            "result_output": self.result_output.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ReadJob:
        return cls(
            table=TableSchema.from_json(data["table"]),
            output=data["output"] and Output.from_json(data["output"]),
            columns=tuple((name, cql_type) for name, cql_type in data["columns"]),
            transforms=tuple(data["transforms"]),
            results=tuple((name, CqlType.from_json(kind)) for name, kind in data["results"]),
            computed=tuple(
                Computed(cql, name, CqlType.from_json(kind))
                for cql, name, kind in data.get("computed", ())
            ),
            ring=tuple((token, host) for token, host in data["ring"]),
            result_output=ResultOutput.from_json(data["result_output"]),
            **{name: data[name] for name in _PLAIN if name in data},
        )


_PLAIN = (
    "kind",
    "cluster_name",
    "sql",
    "consistency",
    "token_order",
    "streams",
    "limit",
    "shares_limit",
    "by_host",
    "skip_failed",
    "partial_bytes_max",
    "spill",
)

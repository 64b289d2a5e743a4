"""Jobs of many small requests, as plain data: `lookup` (rows of keys), `exec` (a statement).

The rows of values come from files, read as in a load, or from ranges such as
`day:2024-01-01..2024-12-31`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ringhaul.cluster.schema import TableSchema
from ringhaul.cql.types import CqlType
from ringhaul.ledger.kinds import ClosingStep, JobKind
from ringhaul.ledger.lost import lost_files_advice
from ringhaul.output.job import Output
from ringhaul.records.job import Input
from ringhaul.records.unit import TO_THE_END, LoadUnit
from ringhaul.statements.idempotence import effect_of
from ringhaul.statements.parameter_ranges import parse_span, rows_count
from ringhaul.statements.result import LISTED_MAX
from ringhaul.statements.values import StatementValues


@dataclass(frozen=True, kw_only=True)
class StatementJob:
    """A lookup or an exec as the user requested it."""

    kind: JobKind  #: LOOKUP or EXEC
    cluster_name: str
    #: Rows of values: files, dialect and formats. If it has no sources, the rows come from `spans`.
    values: StatementValues
    spans: tuple[str, ...] = ()
    statement: str = ""  #: statement of an exec
    table: TableSchema | None = None  #: table of a lookup, with its key and requested columns
    key: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    #: Names and types of the result's columns; empty for a statement that only writes.
    result: tuple[tuple[str, CqlType], ...] = ()
    repeatable: bool = True  #: whether a unit may be run again
    ordered: bool = True  #: whether rows come in the order of the values
    timestamp_us: int = 0  #: see `options.ReadOptions`
    consistency: str = "LOCAL_QUORUM"
    output: Output | None = None
    streams: bool = False  #: see `ReadJob`

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", JobKind(self.kind))  # a spec has its value

    @property
    def markers(self) -> tuple[str, ...]:
        """The names of the statement's markers, in order."""
        return self.values.table.column_names

    @property
    def resumable(self) -> bool:
        """Whether a command can continue the job after another command left it: units that were cut
        short may run again, and there is a place for what they answer."""
        return self.repeatable and not self.streams_rows

    @property
    def streams_rows(self) -> bool:
        """Whether rows go to the standard output of the command that made the job."""
        return self.streams and self.output is not None

    @property
    def transforms(self) -> tuple[str, ...]:
        """Names of users' functions that its rows pass: none."""
        return ()

    @property
    def closing(self) -> ClosingStep:
        """What a command publishes at the end."""
        publishes = self.output is not None and not self.streams
        return ClosingStep.MANIFEST if publishes else ClosingStep.NOTHING

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job in the ledger, beside the labels of every job: none."""
        return {}

    @property
    def output_url(self) -> str:
        """Folder or URL of files with rows; empty: the job writes none."""
        return "" if self.output is None else self.output.url

    def lost_advice(self) -> str:
        """Return what the job may have written if the ledger lost it, and how to run it again."""
        if self.kind is JobKind.EXEC:
            return (
                "Its statement may have run for any of the values. Run the command again only if "
                "the statement may run twice for the same values."
            )
        return lost_files_advice("" if self.streams else self.output_url)

    def once_advice(self) -> str:
        """Return why a job that is not `repeatable` cannot be resumed, and what to do."""
        return (
            "runs a statement that must not run twice, and it is not known for which values of an "
            "interrupted unit it ran: run the command again with the values that are left"
        )

    @property
    def takes_error_limit(self) -> bool:
        """Whether rejects can stop the job. Never: each answer is independent."""
        return False

    @property
    def input(self) -> Input | None:
        """The files of values whose records make the units; None for values of ranges."""
        return None if self.spans else self.values

    @property
    def label(self) -> str:
        """The table of a lookup, for people; empty for an exec."""
        return "" if self.table is None else self.table.name

    @property
    def conditional(self) -> bool:
        """The statement has a condition, which may not hold."""
        return self.kind is JobKind.EXEC and effect_of(self.statement).conditional

    @property
    def total_bytes(self) -> int:
        return self.values.total_bytes

    def listed_max(self, spec: str) -> int:
        """Return a unit's share of `LISTED_MAX`, by its rows of ranges or roughly by its bytes."""
        if self.spans:
            span = SpanUnit.unpack(spec)
            part, whole = span.end - span.first, rows_count([parse_span(s) for s in self.spans])
        else:
            unit = LoadUnit.unpack(spec)
            part, whole = unit.length_bytes, self.total_bytes
            if part == TO_THE_END:
                part = self.values.sources[unit.source].file.size_bytes
        # Parquet counts a unit's bytes before compression.
        return max(1, min(LISTED_MAX, LISTED_MAX * part // max(whole, 1)))

    def to_json(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in _PLAIN}
        return data | {
            "values": self.values.to_json(),
            "spans": list(self.spans),
            "table": self.table and self.table.to_json(),
            "key": list(self.key),
            "columns": list(self.columns),
            "result": [[name, cql_type.to_json()] for name, cql_type in self.result],
            "output": self.output and self.output.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StatementJob:
        return cls(
            values=StatementValues.from_json(data["values"]),
            spans=tuple(data["spans"]),
            table=data["table"] and TableSchema.from_json(data["table"]),
            key=tuple(data["key"]),
            columns=tuple(data["columns"]),
            result=tuple((name, CqlType.from_json(kind)) for name, kind in data["result"]),
            output=data["output"] and Output.from_json(data["output"]),
            **{name: data[name] for name in _PLAIN},
        )


_PLAIN = (
    "kind",
    "cluster_name",
    "statement",
    "repeatable",
    "ordered",
    "timestamp_us",
    "consistency",
    "streams",
)


class SpanUnit(NamedTuple):
    """Rows first..end-1 of the job's ranges."""

    first: int
    end: int

    def pack(self) -> str:
        return f"{self.first}-{self.end}"

    @classmethod
    def unpack(cls, packed: str) -> SpanUnit:
        first, _, end = packed.partition("-")
        return cls(int(first), int(end))

"""The spec of a load job, as plain data: everything a worker needs except secrets and addresses.

The spec travels once per job through the ledger as JSON; workers resolve the cluster from their
own settings and refuse a job made for another cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ringhaul.cluster.schema import TableSchema, appends
from ringhaul.cql.types import CqlType
from ringhaul.destination.base import Destination
from ringhaul.destination.cql import Cql
from ringhaul.destination.spec import destination_of
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_layout import FixedField
from ringhaul.formats.fixed_read import fixed_dialect
from ringhaul.formats.jsonl_read import line_dialect
from ringhaul.ledger.kinds import ClosingStep, JobKind
from ringhaul.ledger.labels import PUBLISHES_LABEL
from ringhaul.ledger.lost import RUN_AGAIN
from ringhaul.option_names import job_option
from ringhaul.records.load_rules import InputRules, LoadRules, rules_of
from ringhaul.records.row_fields import TTL, WRITETIME, RowField
from ringhaul.records.spec import spec, values_in, written
from ringhaul.records.wildcard import EVERY
from ringhaul.sources.source import Archive, SourceFile

#: Last ordinal when the number of rows has no limit: beyond any input, within an int64.
ORDINAL_END = 2**62


class Argument(NamedTuple):
    """A field that a function in the statement takes."""

    field: str
    call: str  #: the function, as the mapping has it
    type: CqlType  #: as the server says

    @property
    def label(self) -> str:
        """The argument in messages."""
        return f"{self.field} in {self.call}"


@dataclass(frozen=True, kw_only=True)
class LoadSource:
    """One input file and the names of its fields, in the order of its records."""

    file: SourceFile
    fields: tuple[str, ...]
    #: (field, column) pairs that are loaded, in the order they are bound. With transforms a field
    #: is a column of their result.
    mapping: tuple[tuple[str, str], ...]
    #: Start of the first record: after the header, which is not a record.
    start_offset_bytes: int = 0
    start_line: int = 1
    format: str = "csv"  #: csv | jsonl | parquet | fixed
    #: fixed: places of the fields, which have the names and the order of `fields`.
    layout: tuple[FixedField, ...] = ()
    #: jsonl: objects may have names that are not fields; False: such a record is a reject.
    any_fields: bool = False
    #: jsonl: fields that are paths into objects, such as `user.name`.
    paths: tuple[str, ...] = ()
    #: With transforms: the columns that their result may have.
    results: tuple[str, ...] = ()
    #: Fields with the rows' write times and TTLs (`row_fields.py`). A mapped field is also loaded
    #: into its column.
    timestamp_field: str | None = None
    ttl_field: str | None = None
    #: (field, column): fields with the write times and the TTLs of single columns.
    column_times: tuple[tuple[str, str], ...] = ()
    column_ttls: tuple[tuple[str, str], ...] = ()
    #: (column, text): columns without a field, with the same value in every row.
    constants: tuple[tuple[str, str], ...] = ()
    #: (column, expression): columns that the server computes in the statement, with a marker for
    #: each of `arguments`, in their order.
    filled: tuple[tuple[str, str], ...] = ()
    arguments: tuple[Argument, ...] = ()
    #: (column, or * for rows; number): write times and TTLs that every row has, without a field.
    fixed_times: tuple[tuple[str, int], ...] = ()
    fixed_ttls: tuple[tuple[str, int], ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns whose values are bound, in order: mapped columns, then constants. The values
        of `arguments` follow."""
        return [column for _, column in self.mapping] + [column for column, _ in self.constants]

    @property
    def ttl_bound(self) -> bool:
        """Whether rows have their own TTLs."""
        return self.ttl_field is not None or bool(self.column_ttls or self.fixed_ttls)

    @property
    def splits_rows(self) -> bool:
        """Whether columns have their own times, so that a record may become several rows."""
        fixed = any(column != EVERY for column, _ in (*self.fixed_times, *self.fixed_ttls))
        return fixed or bool(self.column_times or self.column_ttls)

    @property
    def column_fields(self) -> list[tuple[str, RowField, str]]:
        """The fields that say how a single column is written, with their meaning and the column."""
        both = ((self.column_times, WRITETIME), (self.column_ttls, TTL))
        return [(field, meant, column) for pairs, meant in both for field, column in pairs]

    @property
    def row_fields(self) -> list[tuple[str, RowField]]:
        """The fields that say how a row is written, and the meaning of each."""
        both = ((self.timestamp_field, WRITETIME), (self.ttl_field, TTL))
        return [(field, meant) for field, meant in both if field is not None]

    @property
    def loaded(self) -> list[str]:
        """The fields that are loaded: into columns, for `arguments`, `row_fields` and
        `column_fields`. A field with several uses is listed as often."""
        fields = [field for field, _ in self.mapping]
        fields += [argument.field for argument in self.arguments]
        fields += [field for field, _ in self.row_fields]
        return fields + [field for field, _, _ in self.column_fields]

    def wanted(self, job: Input) -> Sequence[str]:
        """Return the fields to read, each once: the loaded fields, or all for transforms."""
        return self.fields if job.transforms else list(dict.fromkeys(self.loaded))

    def wanted_types(self, job: Input) -> Sequence[CqlType | None]:
        """Return the types of `wanted`, preferably the types of their columns; None: not known."""
        if job.transforms:
            return [None] * len(self.fields)
        kinds = {argument.field: argument.type for argument in self.arguments}
        kinds |= {field: meant.kind for field, meant in self.row_fields}
        kinds |= {field: meant.kind for field, meant, _ in self.column_fields}
        kinds |= {field: job.table.parsed_type(column) for field, column in self.mapping}
        return [kinds[field] for field in self.wanted(job)]

    def dialect(self, job: Input) -> CsvDialect:
        """Return how the text of the source is cut into records; has no meaning for Parquet."""
        if self.format == "fixed":
            return fixed_dialect(job.dialect)
        return job.dialect if self.format == "csv" else line_dialect(job.dialect)

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.file.path,
            "size": self.file.size_bytes,
            "whole": self.file.whole,
            "version": self.file.version,
            "archive": None if self.file.archive is None else self.file.archive.to_json(),
            "fields": list(self.fields),
            "mapping": [list(pair) for pair in self.mapping],
            "start": [self.start_offset_bytes, self.start_line],
            "format": self.format,
            "layout": [list(field) for field in self.layout],
            "any_fields": self.any_fields,
            "paths": list(self.paths),
            "results": list(self.results),
            "timestamp_field": self.timestamp_field,
            "ttl_field": self.ttl_field,
            "arguments": [[name, call, kind.to_json()] for name, call, kind in self.arguments],
            **{
                name: [list(pair) for pair in getattr(self, name)]
                for name in (*_PAIRS, *_LATER_PAIRS)
            },
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LoadSource:
        archive = data.get("archive")
        return cls(
            file=SourceFile(
                path=data["path"],
                size_bytes=data["size"],
                whole=data["whole"],
                version=data["version"],
                archive=None if archive is None else Archive.from_json(archive),
            ),
            fields=tuple(data["fields"]),
            mapping=tuple((name, column) for name, column in data["mapping"]),
            start_offset_bytes=data["start"][0],
            start_line=data["start"][1],
            format=data["format"],
            layout=tuple(FixedField(*field) for field in data.get("layout", ())),
            any_fields=data["any_fields"],
            paths=tuple(data.get("paths", ())),
            results=tuple(data["results"]),
            timestamp_field=data["timestamp_field"],
            ttl_field=data["ttl_field"],
            arguments=tuple(
                Argument(name, call, CqlType.from_json(kind))
                for name, call, kind in data.get("arguments", ())
            ),
            **{name: tuple((left, right) for left, right in data[name]) for name in _PAIRS},
            **{
                name: tuple((left, right) for left, right in data.get(name, ()))
                for name in _LATER_PAIRS
            },
        )


_PAIRS = ("column_times", "column_ttls", "constants", "filled")
#: Fields that jobs of older versions lack.
_LATER_PAIRS = ("fixed_times", "fixed_ttls")


class RowTimes(NamedTuple):
    """When the rows of a job are written, and when they expire, unless they say so themselves."""

    #: Write time of ordinal 0 in microseconds since the epoch; record n is written at base_us + n.
    base_us: int = 0
    ttl_s: int = 0
    exact: bool = False  #: see `LoadRules.exact_timestamps`


@dataclass(frozen=True, kw_only=True)
class Input(InputRules):
    """Files whose records make the units of a job, and the columns that these fill."""

    table: TableSchema = field(metadata=spec(TableSchema.from_json))
    sources: tuple[LoadSource, ...] = field(
        metadata=spec(lambda data: tuple(LoadSource.from_json(source) for source in data))
    )
    #: Records with an ordinal outside [first, end) are skipped.
    ordinal_first: int = 0
    ordinal_end: int = ORDINAL_END
    #: Columns of texts in which an empty field of CSV is the empty text, not null.
    empty_texts: tuple[str, ...] = ()

    @property
    def times(self) -> RowTimes:
        """When its rows are written: of no meaning unless the job writes rows by their ordinals."""
        return RowTimes()

    @property
    def meanings(self) -> Mapping[str, RowField]:
        """Columns that stand for the write time or the TTL of a row, and are read as such."""
        return {}

    @property
    def total_bytes(self) -> int:
        """Bytes on disk of all sources."""
        return sum(source.file.size_bytes for source in self.sources)


@dataclass(frozen=True, kw_only=True)
class LoadJob(LoadRules, Input):
    """A load, or the verification of a load, as requested by the user. Fixed at submit, so that a
    repeat means what the first run meant."""

    cluster_name: str
    #: Row timestamp of ordinal 0 in microseconds since the epoch; record n is written at
    #: base_us + n, so that the later of two records with one key wins. A record whose source has a
    #: timestamp field is written at the time in this field.
    base_us: int
    destination: Destination = field(default_factory=Cql)

    @classmethod
    def of(cls, rules: LoadRules, **facts: Any) -> LoadJob:
        """Return the job that states these rules, and `facts`: fields that planning found out."""
        return cls(**rules_of(LoadRules, rules) | facts)

    @property
    def times(self) -> RowTimes:
        """When its rows are written."""
        return RowTimes(self.base_us, self.ttl_s, self.exact_timestamps)

    @property
    def repeatable(self) -> bool:
        """Whether a unit may run again: a repeated write changes nothing, except in a list that is
        not frozen, unless the repeat has a later time."""
        return not (self.exact_timestamps and self.lists)

    @property
    def lists(self) -> list[str]:
        """The loaded columns that are unfrozen lists, see `appends`."""
        loaded = {column for source in self.sources for column in source.columns}
        table = self.table
        return [c for c in table.column_names if c in loaded and appends(table.type_of(c))]

    @property
    def resumable(self) -> bool:
        """Whether a command can continue the job after another command left it."""
        return True

    @property
    def streams_rows(self) -> bool:
        """Whether rows go to the standard output of the command that made the job."""
        return False

    @property
    def closing(self) -> ClosingStep:
        """What a command publishes at the end."""
        return ClosingStep.DESTINATION if self.destination.publishes else ClosingStep.NOTHING

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job in the ledger, beside the labels of every job."""
        publishes = {} if self.closing is ClosingStep.NOTHING else {PUBLISHES_LABEL: "1"}
        return {"bytes_total": str(self.total_bytes), **publishes}

    @property
    def output_url(self) -> str:
        """Folder or URL of files with rows; empty: the job writes none."""
        return ""

    def lost_advice(self) -> str:
        """Return what the job may have written if the ledger lost it, and how to run it again."""
        if self.kind is JobKind.VERIFY:
            return RUN_AGAIN
        first = datetime.fromtimestamp(self.base_us / 1_000_000, UTC).isoformat(timespec="seconds")
        return (
            f"Rows of the job may be in {self.table.name}, with write times from {self.base_us} "
            f"({first}) on. To load again, run the same command with {job_option('timestamp')} "
            f"{self.base_us}: records of unchanged files get the same write times, and rows that "
            "are already there do not change."
        )

    def once_advice(self) -> str:
        """Return why a job that is not `repeatable` cannot be resumed, and what to do."""
        return (
            "writes lists at exact times, so no unit may run twice, and it is not known which rows "
            "of an interrupted unit were written: delete its rows and load them again"
        )

    @property
    def takes_error_limit(self) -> bool:
        """Whether rejects can stop the job."""
        return True

    @property
    def input(self) -> LoadJob:
        """The files whose records make the units."""
        return self

    @property
    def label(self) -> str:
        """The table, for people."""
        return self.table.name

    def to_json(self) -> dict[str, Any]:
        once: dict[str, Any] = {name: [] for name in _ONCE_OF_VALUES}
        return written(self, without=_OF_DESTINATION) | self.destination.to_spec() | once

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LoadJob:
        own = values_in(cls, data, without=_OF_DESTINATION)
        return cls(destination=destination_of(data), **own)


#: A destination has keys of its own in the spec.
_OF_DESTINATION = ("destination",)
#: Keys that workers of older versions read in a load's spec, for the values of statements.
_ONCE_OF_VALUES = ("marker_timestamps", "marker_ttls")

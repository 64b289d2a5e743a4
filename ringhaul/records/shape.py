"""Turn records into rows where that is not one to one: by transforms, or a condition. Pure.

Either all rows of a record are written or none: a fault of one row is a fault of the record. With
a condition, the columns that it is about are converted first. Other values are not converted in
rows that it excludes, so they may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ringhaul.breadcrumb import TRAIL
from ringhaul.cql.cells import Cells
from ringhaul.cql.join import Column
from ringhaul.cql.nested import json_format
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.typed import encode_typed, refusal
from ringhaul.cql.types import CqlType
from ringhaul.formats.json_text import text_column
from ringhaul.records.field_readers import Fault, FieldReader, Parsed
from ringhaul.records.fields import TableColumns
from ringhaul.records.job import Input, LoadSource
from ringhaul.records.row_fields import ColumnEncoder, filtered
from ringhaul.transform.chain import Applied, Chain, Transform
from ringhaul.transform.errors import TransformError
from ringhaul.transform.values import encode_values

if TYPE_CHECKING:
    from ringhaul.records.condition import Condition

Records = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class ShapedRows(NamedTuple):
    """Rows in cells, one `Cells` for each column."""

    cells: list[Cells]
    records: Records  #: index in the block of each row's record


class Shaped(NamedTuple):
    """What some records of a block became."""

    records: int  #: number of records
    rows: list[ShapedRows]  #: rows, also of records at fault
    faults: dict[int, Fault]
    dropped: int  #: records that a transform left out
    filtered: int  #: records whose rows were all excluded by the condition


class Shaper:
    """Shapes the blocks of one source of one job."""

    def __init__(
        self,
        job: Input,
        source: LoadSource,
        fields: FieldReader,
        columns: TableColumns,
        transforms: tuple[Transform, ...],
    ) -> None:
        self._source, self._fields, self._columns = source, fields, columns
        self._condition: Condition | None = None
        if job.where:
            from ringhaul.records.condition import Condition  # imports sqlglot, which is slow

            self._condition = Condition(job.where, job.table, columns.names)
        self._results = _Results(source, columns, transforms) if transforms else None
        self._chain = Chain(transforms, source.results)

    def shape(self, parsed: Parsed, asked_count: int, tick: Callable[[], None]) -> Iterator[Shaped]:
        """Yield what the `asked_count` records of a block became, some records at a time; calls
        `tick` in between.

        Raises `TransformError` if a transform returns an invalid result.
        """
        if self._results is None:
            rows, wanted = self._past_condition(
                self._columns.of_read(parsed.columns),
                parsed.records,
                parsed.faults,
                self._fields.encode,
            )
            at_fault = _among(parsed.records, parsed.faults)
            filtered = int(np.count_nonzero(~wanted & ~at_fault))
            yield Shaped(asked_count, [rows], parsed.faults, 0, filtered)
            return
        batch, records, faults = source_batch(self._source, parsed)
        if batch.num_rows < asked_count:
            yield Shaped(asked_count - batch.num_rows, [], faults, 0, 0)
        TRAIL.stage("transform")
        for applied in self._chain.run(batch, tick):
            yield self._of_results(applied, records, self._results)
            TRAIL.stage("transform")

    def _of_results(self, applied: Applied, records: Records, results: _Results) -> Shaped:
        faults: dict[int, Fault] = {
            int(records[row]): ("transform", None, reason) for row, reason in applied.errors.items()
        }
        given, kept = np.zeros((2, applied.end - applied.first), np.bool_)
        shaped = []
        for piece in applied.pieces:
            if not len(piece.rows):
                continue
            given[piece.rows - applied.first] = True
            rows, wanted = self._past_condition(
                self._columns.with_constants(results.columns_of(piece.columns)),
                records[piece.rows],
                faults,
                _ENCODE_RESULT[self._source.format],
            )
            kept[piece.rows[wanted] - applied.first] = True
            shaped.append(rows)
        at_fault = _among(records[applied.first : applied.end], faults)
        return Shaped(
            applied.end - applied.first,
            shaped,
            faults,
            dropped=int(np.count_nonzero(~given & ~at_fault)),
            filtered=int(np.count_nonzero(given & ~kept & ~at_fault)),
        )

    def _past_condition(
        self,
        columns: list[Any],
        records: Records,
        faults: dict[int, Fault],
        encode: ColumnEncoder,
    ) -> tuple[ShapedRows, Mask]:
        """Return the rows that the condition accepts, and a mask of them."""
        wanted = np.ones(len(records), np.bool_)
        known: dict[int, Cells] = {}
        if self._condition is not None:
            for place in self._condition.places:
                known[place] = self._columns.encode(encode, place, columns[place], records, faults)
            # A record at fault is reported as such, whatever the condition would say.
            good = ~_among(records, faults)
            wanted = good.copy()
            readable = [known[place].filter(good) for place in self._condition.places]
            wanted[good] = self._condition.holds(readable, int(np.count_nonzero(good)))
            records = records[wanted]
        cells = []
        for place, values in enumerate(columns):
            if place in known:
                cells.append(known[place].filter(wanted))
                continue
            if self._condition is not None and values is not None:
                values = filtered(values, wanted)
            cells.append(self._columns.encode(encode, place, values, records, faults))
        return ShapedRows(cells, records), wanted


class _Results:
    """The results of transforms, as values of the columns that are loaded."""

    def __init__(
        self, source: LoadSource, columns: TableColumns, transforms: tuple[Transform, ...]
    ) -> None:
        self._loaded = source.loaded
        self._known = frozenset(source.results)
        self._columns = columns
        self._name = transforms[-1].name
        #: (place, Arrow type) pairs that were checked.
        self._fitting: set[tuple[int, pa.DataType]] = set()

    def columns_of(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the columns in the order of the mapping.

        Raises `TransformError` if the first records had other columns, or if a type does not fit
        its column.
        """
        if not given.keys() <= self._known:
            unknown = next(name for name in given if name not in self._known)
            raise TransformError(
                f"transform {self._name} gave a column {unknown!r}, which it did not give for the "
                "first records"
            )
        columns = []
        for place, name in enumerate(self._columns.with_constants(self._loaded)):
            if name is None:
                continue
            if name not in given:
                raise TransformError(
                    f"transform {self._name} gave no column {name!r}, as it did for the first "
                    "records"
                )
            self._check_type(place, name, given[name])
            columns.append(given[name])
        return columns

    def _check_type(self, place: int, name: str, values: Any) -> None:
        if isinstance(values, list) or (place, values.type) in self._fitting:
            return
        why = self._columns.refusal(place, values.type)
        if why is not None:
            raise TransformError(
                f"transform {self._name} gave a column {name!r} for "
                f"{self._columns.label(place)}, and {why}"
            )
        self._fitting.add((place, values.type))


def misfit(kind: CqlType, values: Any) -> str | None:
    """Return why a column of a result cannot have values of `kind`; None: it can."""
    return None if isinstance(values, list) else refusal(kind, values.type)


def encode_result(kind: CqlType, values: Any, fmt: TextFormat, *, null_length: int) -> Column:
    """Encode a column that a transform returned. Text is read like a field of a CSV file."""
    if isinstance(values, list):
        return encode_values(kind, values, fmt, null_length=null_length)
    return encode_typed(kind, values, fmt, null_length=null_length)


def _encode_json_result(kind: CqlType, values: Any, fmt: TextFormat, *, null_length: int) -> Column:
    """Encode like `encode_result`, for records in JSON: options for numbers in CSV do not apply,
    whether or not a transform comes in between."""
    return encode_result(kind, values, json_format(fmt), null_length=null_length)


_ENCODE_RESULT: Mapping[str, ColumnEncoder] = {
    "csv": encode_result,
    "fixed": encode_result,
    "jsonl": _encode_json_result,
    "parquet": encode_result,
}


def source_batch(
    source: LoadSource, parsed: Parsed
) -> tuple[pa.RecordBatch, Records, dict[int, Fault]]:
    """Return the first transform's input: fields of some records, and the record of each row.

    The fields of text files are text. Records with bytes that are not text are left out, and added
    to the faults of `parsed`.
    """
    names = list(source.fields)
    faults = dict(parsed.faults)
    columns = []
    for name, values in zip(names, parsed.columns, strict=True):
        column, bad = _TEXTS[source.format](values)
        columns.append(column)
        for row, reason in bad.items():
            faults.setdefault(int(parsed.records[row]), ("parse", name, reason))
    batch = pa.RecordBatch.from_arrays(columns, names)
    if len(faults) == len(parsed.faults):
        return batch, parsed.records, faults
    good = ~_among(parsed.records, faults)
    return batch.filter(pa.array(good)), parsed.records[good], faults


def _csv_texts(values: pa.BinaryArray) -> tuple[pa.StringArray, dict[int, str]]:
    try:
        return values.cast(pa.string()), {}
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        bad: dict[int, str] = {}
        for row, raw in enumerate(values.to_pylist()):
            try:
                texts.append(None if raw is None else raw.decode())
            except UnicodeDecodeError as error:
                texts.append(None)
                bad[row] = f"invalid UTF-8 at byte {error.start + 1}"
        return pa.array(texts, pa.string()), bad


_TEXTS: Mapping[str, Callable[[Any], tuple[pa.Array, dict[int, str]]]] = {
    "csv": _csv_texts,
    "fixed": _csv_texts,
    "jsonl": text_column,
    "parquet": lambda values: (values, {}),
}


def _among(records: Records, faults: Mapping[int, Fault]) -> Mask:
    """Return which records are at fault."""
    if not faults:
        return np.zeros(len(records), np.bool_)
    return np.isin(records, np.fromiter(faults, np.int64, len(faults)))

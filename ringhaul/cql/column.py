"""A text column as numpy arrays, and the helpers of the two passes that parse it.

Each type is parsed in two passes: a *fast* pass over whole buffers for the values that it
recognises, and a *slow* parser of one `str` for the rest. The slow parser alone defines what a type
accepts; the fast pass may only accept a value that both passes read alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.plain_text import as_quoted

SHOWN_CHARACTERS_MAX = 64
_SPACE = 0x20

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Value = TypeVar("Value")


class BadValue(NamedTuple):
    """A value that cannot become its column's type."""

    row: int  #: index in the column
    reason: str  #: such as 'cast int: "12,50" is not a whole number'


class Encoded(NamedTuple):
    """A column's cells, arbitrary at the rows of `bad`."""

    cells: Cells
    bad: list[BadValue]


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Values without nulls: value i is `data[offsets[i]:offsets[i + 1]]`; `offsets[0]` is 0."""

    offsets: NDArray[np.int32]
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, array: pa.BinaryArray | pa.StringArray) -> "TextColumn":
        """View `array`, which has no nulls. Only the offsets of a sliced array are copied."""
        if len(array) == 0:
            return cls(np.zeros(1, np.int32), np.zeros(0, np.uint8))
        _, offsets_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)
        offsets = offsets[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
        if offsets[0]:
            offsets = offsets - offsets[0]
        return cls(offsets, data)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int32]:
        return np.diff(self.offsets)

    def array(self) -> pa.BinaryArray:
        return self._view(pa.binary())

    def unchecked_strings(self) -> pa.StringArray:
        """View as `pa.StringArray` without checking UTF-8, for ASCII-only kernels."""
        return self._view(pa.string())

    def trimmed(self) -> "TextColumn":
        """Return the column without ASCII white space around the values."""
        if not len(self.data) or self.data.min() > _SPACE:
            return self
        return TextColumn.of(pc.ascii_trim_whitespace(self.unchecked_strings()))

    def filter(self, mask: Mask) -> "TextColumn":
        return TextColumn.of(self.array().filter(pa.array(mask)))

    def matches(self, pattern: str) -> Mask:
        """Return for each value whether the RE2 `pattern` (anchor it with ^ and $) matches it."""
        found: Mask = pc.match_substring_regex(self.array(), pattern).to_numpy(zero_copy_only=False)
        return found

    def _view(self, data_type: pa.DataType) -> Any:
        return pa.Array.from_buffers(
            data_type,
            len(self),
            [None, pa.py_buffer(self.offsets), pa.py_buffer(np.ascontiguousarray(self.data))],
        )


def without_nulls(array: pa.BinaryArray) -> tuple[TextColumn, Mask | None]:
    """Return the values of `array` that are not null, and a mask of their rows (None: all)."""
    if not array.null_count:
        return TextColumn.of(array), None
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return TextColumn.of(array.drop_null()), valid


def parse_left(
    column: TextColumn,
    left: Rows,
    cql_type: str,
    parse: Callable[[str], Value],
    filler: Value,
) -> tuple[list[Value], list[BadValue]]:
    """Slow pass: `parse` the values of the rows `left`, each distinct text once.

    `parse` raises `ValueError` with the reason. Returns one value per row of `left`, with `filler`
    for bad ones, and the bad values.
    """
    distinct = column.array().take(pa.array(left)).dictionary_encode()
    values: list[Value] = []
    reasons: list[str | None] = []
    for raw in distinct.dictionary.to_pylist():
        try:
            values.append(parse(raw.decode("utf-8", "backslashreplace")))
            reasons.append(None)
        except ValueError as error:
            values.append(filler)
            reasons.append(f"cast {cql_type}: {error}")
    codes = distinct.indices.to_pylist()
    bad = []
    for row, code in zip(left.tolist(), codes, strict=True):
        reason = reasons[code]
        if reason is not None:
            bad.append(BadValue(row, reason))
    return [values[code] for code in codes], bad


def all_bad(
    column: TextColumn, left: Rows, cql_type: str, reason: Callable[[str], str]
) -> list[BadValue]:
    """Return the rows `left` as bad values, for a type without a slow parser. `reason` makes the
    message from the shown text."""

    def refuse(text: str) -> None:
        raise ValueError(reason(quote(text)))

    return parse_left(column, left, cql_type, refuse, None)[1]


def quote(text: str) -> str:
    """Return `text` for a message: in double quotes, on one line, at most 64 characters."""
    short = text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "..."
    return f'"{as_quoted(short)}"'


def merge_variable(pieces: Sequence[tuple[Rows, pa.BinaryArray]]) -> pa.BinaryArray:
    """Merge pieces, each with its row numbers, to one column; each row is in exactly one piece."""
    rows = np.concatenate([piece_rows for piece_rows, _ in pieces])
    order = np.empty(len(rows), np.int64)
    order[rows] = np.arange(len(rows))
    return pa.concat_arrays([values for _, values in pieces]).take(pa.array(order))

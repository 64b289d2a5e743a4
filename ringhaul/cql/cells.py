"""Cells: the wire values of one column, and their joining to rows.

A CQL value is sent as a big-endian int32 length and that many bytes; a length of -1 is null and -2
is "unset" (the column is not written). A column is stored as all its lengths and all its bytes,
because joining whole columns costs nanoseconds per value where a loop over rows costs microseconds.

Columns whose cells all have one width stay plain numpy arrays to the end: neighbouring columns form
one structured array, so a row of numbers is joined as a single piece.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: Lengths that stand for a missing value (CQL native protocol v4, section 6).
NULL_LENGTH = -1
UNSET_LENGTH = -2

#: Arrow's 32-bit offsets bound the bytes of one joined column.
JOINED_BYTES_MAX = 2**31 - 1

Array = NDArray[Any]


class Cells:
    """The wire values of one column: `lengths` ('>i4') and `values` (`pa.BinaryArray`).

    `lengths[i]` is the width of value i in bytes, or `NULL_LENGTH`/`UNSET_LENGTH`; `values[i]`
    is empty there. Neither holds an Arrow null. Immutable.
    """

    __slots__ = ("_fixed", "_lengths", "_values")

    def __init__(
        self, fixed: Array | None, lengths: Array | None, values: pa.BinaryArray | None
    ) -> None:
        self._fixed = fixed
        self._lengths = lengths
        self._values = values

    @classmethod
    def fixed(cls, values: Array, valid: Array | None = None, null_length: int = -1) -> "Cells":
        """Make cells of one width from one item of `values` per row; items not `valid` are ignored.

        `values`: big-endian numbers, or uint8 of shape (rows, width). `valid`: bool per row; None
        means all.
        """
        if values.ndim == 2:
            width = values.shape[1]
            values = np.ascontiguousarray(values).view(np.dtype((np.void, width))).reshape(-1)
        if valid is None:
            return cls(values, None, None)
        return cls(values[valid], None, None).spread(valid, null_length)

    @classmethod
    def variable(
        cls, values: pa.BinaryArray, valid: Array | None = None, null_length: int = -1
    ) -> "Cells":
        """Make cells of any width from one item of `values` per row; an Arrow null is missing."""
        if values.null_count:
            present: Array = values.is_valid().to_numpy(zero_copy_only=False)
            valid = present if valid is None else present & valid
        if valid is None:
            return cls(None, _lengths_of(values).astype(">i4"), values)
        return cls.variable(values.filter(pa.array(valid))).spread(valid, null_length)

    @property
    def lengths(self) -> Array:
        """'>i4' per row: the value's width in bytes, -1 for null, -2 for unset."""
        if self._lengths is None:
            assert self._fixed is not None
            self._lengths = np.full(len(self._fixed), self._fixed.dtype.itemsize, ">i4")
        return self._lengths

    @property
    def values(self) -> pa.BinaryArray:
        """The bytes of each value; empty for a missing value."""
        if self._values is None:
            assert self._fixed is not None
            self._values = fixed_binary(self._fixed)
        return self._values

    @property
    def fixed_values(self) -> Array | None:
        """The values as one numpy array if all have one width and none is missing, else None."""
        return self._fixed

    def __len__(self) -> int:
        return len(self.lengths if self._fixed is None else self._fixed)

    def filter(self, mask: Array) -> "Cells":
        """Return the cells of the rows where `mask` (bool per row) is true."""
        if self._fixed is not None:
            return Cells(self._fixed[mask], None, None)
        return Cells(None, self.lengths[mask], self.values.filter(pa.array(mask)))

    def spread(self, valid: Array, null_length: int) -> "Cells":
        """Return these cells on the rows where `valid` is true, with missing values on the others.

        `valid` has exactly `len(self)` true items. No value's bytes are copied: a missing value has
        no bytes, so only the offsets change.
        """
        rows_count = len(valid)
        lengths = np.full(rows_count, null_length, ">i4")
        lengths[valid] = self.lengths
        values = self.values
        _, offsets_buffer, data_buffer = values.buffers()
        offsets = _offsets_of(values, offsets_buffer)
        spread_offsets = np.empty(rows_count + 1, np.int32)
        spread_offsets[0] = offsets[0]
        spread_offsets[1:] = offsets[np.cumsum(valid, dtype=np.int64)]
        return Cells(
            None,
            lengths,
            pa.BinaryArray.from_buffers(
                pa.binary(), rows_count, [None, pa.py_buffer(spread_offsets), data_buffer]
            ),
        )


def bigint_cells(values: NDArray[np.int64]) -> Cells:
    """Return cells of a `bigint` from int64 values, one per row."""
    return Cells.fixed(values.astype(">i8"))


def join_rows(columns: Sequence[Cells]) -> pa.BinaryArray:
    """Join columns to rows: row i has, for each column, a length (int32, big-endian) and the bytes.

    These are the bound values of an EXECUTE frame or of an entry of a BATCH, without the count in
    front. Raises `ValueError` if the rows exceed `JOINED_BYTES_MAX` bytes in total.
    """
    pieces = _Pieces()
    for cells in columns:
        fixed = cells.fixed_values
        if fixed is not None:
            pieces.add_fixed(np.dtype(">i4"), fixed.dtype.itemsize)
            pieces.add_fixed(fixed.dtype, fixed)
        else:
            pieces.add_fixed(np.dtype(">i4"), cells.lengths)
            pieces.add_binary(cells.values)
    return pieces.join(len(columns[0]))


def routing_keys(columns: Sequence[Cells]) -> pa.BinaryArray:
    """Return the routing key of each row, which the partitioner hashes.

    One column: its bytes. Several columns: for each its length (uint16, big-endian), its bytes and
    a zero byte. A component over 65,535 bytes, which Cassandra refuses as a key, gives an arbitrary
    routing key.
    """
    if len(columns) == 1:
        return columns[0].values
    pieces = _Pieces()
    for cells in columns:
        fixed = cells.fixed_values
        if fixed is not None:
            pieces.add_fixed(np.dtype(">u2"), fixed.dtype.itemsize & 0xFFFF)
            pieces.add_fixed(fixed.dtype, fixed)
        else:
            lengths = np.maximum(cells.lengths, 0).astype(np.int64) & 0xFFFF
            pieces.add_fixed(np.dtype(">u2"), lengths)
            pieces.add_binary(cells.values)
        pieces.add_fixed(np.dtype("u1"), 0)
    return pieces.join(len(columns[0]))


class _Pieces:
    """The pieces of a row: runs of fixed-width fields, with binary columns between them."""

    def __init__(self) -> None:
        self._run: list[tuple[np.dtype[Any], Array | int]] = []
        self._binaries: list[pa.BinaryArray] = []
        self._rows_count = 0

    def add_fixed(self, dtype: np.dtype[Any], values: Array | int) -> None:
        self._run.append((dtype, values))

    def add_binary(self, values: pa.BinaryArray) -> None:
        if not _bytes_count(values):
            return  # every value is empty: the column adds nothing
        self._flush(len(values))
        self._binaries.append(values)

    def join(self, rows_count: int) -> pa.BinaryArray:
        self._flush(rows_count)
        if len(self._binaries) == 1:
            return self._binaries[0]
        bytes_count = sum(_bytes_count(piece) for piece in self._binaries)
        if bytes_count > JOINED_BYTES_MAX:
            raise ValueError(
                f"{rows_count} rows take {bytes_count} bytes, more than {JOINED_BYTES_MAX}: "
                "encode fewer rows at a time"
            )
        return pc.binary_join_element_wise(*self._binaries, pa.scalar(b"", pa.binary()))

    def _flush(self, rows_count: int) -> None:
        if not self._run:
            return
        layout = np.dtype([(f"f{i}", dtype) for i, (dtype, _) in enumerate(self._run)])
        rows = np.empty(rows_count, layout)
        for i, (_, values) in enumerate(self._run):
            rows[f"f{i}"] = values
        self._binaries.append(fixed_binary(rows))
        self._run = []


def fixed_binary(values: Array) -> pa.BinaryArray:
    """View the items of a contiguous numpy array as `pa.BinaryArray`, without copying them."""
    width = values.dtype.itemsize
    if len(values) * width > JOINED_BYTES_MAX:
        raise ValueError(f"{len(values)} values of {width} bytes: encode fewer rows at a time")
    offsets = np.arange(0, (len(values) + 1) * width, width, dtype=np.int32)
    data = np.ascontiguousarray(values).view(np.uint8)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _offsets_of(values: pa.BinaryArray, offsets_buffer: pa.Buffer | None) -> NDArray[np.int32]:
    if offsets_buffer is None or len(values) == 0:
        return np.zeros(1, np.int32)
    offsets = np.frombuffer(offsets_buffer, np.int32)
    return offsets[values.offset : values.offset + len(values) + 1]


def _lengths_of(values: pa.BinaryArray) -> NDArray[np.int32]:
    return np.diff(_offsets_of(values, values.buffers()[1]))


def _bytes_count(values: pa.BinaryArray) -> int:
    offsets = _offsets_of(values, values.buffers()[1])
    return int(offsets[-1]) - int(offsets[0])

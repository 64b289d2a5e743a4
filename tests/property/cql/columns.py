"""Helpers of the property tests of CQL columns: text in, wire bytes out, row by row."""

from collections.abc import Sequence

import pyarrow as pa

from ringhaul.cql.cells import Cells
from ringhaul.cql.text import TextFormat, encode_text

DEFAULT = TextFormat()


def binary(texts: Sequence[str | bytes | None]) -> pa.BinaryArray:
    return pa.array([t.encode() if isinstance(t, str) else t for t in texts], pa.binary())


def wire(cells: Cells) -> list[bytes | None]:
    """The value of each row; None where it is missing."""
    values = cells.values.to_pylist()
    lengths = cells.lengths.tolist()
    assert [len(value) for value in values] == [max(length, 0) for length in lengths]
    return [None if n < 0 else value for n, value in zip(lengths, values, strict=True)]


def encode(
    cql_type: str,
    texts: Sequence[str | bytes | None],
    fmt: TextFormat = DEFAULT,
    null_length: int = -2,
) -> list[bytes | str | None]:
    """Per row its wire bytes, None if missing, or the reason (str) why it is bad."""
    cells, bad = encode_text(cql_type, binary(texts), fmt, null_length=null_length)
    assert len(cells) == len(texts)
    result: list[bytes | str | None] = list(wire(cells))
    rows = [row for row, _ in bad]
    assert rows == sorted(set(rows))
    for row, reason in bad:
        assert texts[row] is not None
        result[row] = reason
    return result

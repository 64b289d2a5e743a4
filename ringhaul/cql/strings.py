"""text, ascii and blob from text: values whose bytes hardly change, or not at all."""

import binascii
import re

import numpy as np
import pyarrow as pa

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import (
    BadValue,
    Encoded,
    TextColumn,
    all_bad,
    merge_variable,
    parse_left,
    quote,
)
from ringhaul.cql.hints import western_hint
from ringhaul.cql.text_format import TextFormat
from ringhaul.option_names import input_option

#: Blobs in hexadecimal digits after 0x, or after \x as PostgreSQL writes them.
_HEX_FORM = r"^(?:0[xX]|\\x)(?:[0-9a-fA-F]{2})*$"
#: Bytes for `\ud800` to `\udfff` in JSON: no UTF-8, because they encode no character.
_HALF_PAIR = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def encode_texts(column: TextColumn, cql_type: str, fmt: TextFormat | None) -> Encoded:
    """Encode text or varchar: any UTF-8, not trimmed. `fmt` None: no option sets the encoding."""
    array = column.array()
    bad: list[BadValue] = []
    if len(column.data) and column.data.max() >= 0x80:
        try:
            array.cast(pa.string())  # checks each value
        except pa.ArrowInvalid:
            bad = [
                BadValue(row, f"cast {cql_type}: {reason}")
                for row, value in enumerate(array.to_pylist())
                if (reason := _utf8_reason(value, fmt))
            ]
    return Encoded(Cells.variable(array), bad)


def encode_asciis(column: TextColumn, _: TextFormat) -> Encoded:
    """Encode ascii: bytes below 0x80, not trimmed."""
    array = column.array()
    bad: list[BadValue] = []
    if len(column.data) and column.data.max() >= 0x80:
        places = np.flatnonzero(column.data >= 0x80)
        rows = np.searchsorted(column.offsets, places, side="right") - 1
        rows, first = np.unique(rows, return_index=True)
        for row, place in zip(rows.tolist(), places[first].tolist(), strict=True):
            at = place - int(column.offsets[row]) + 1
            bad.append(
                BadValue(row, f"cast ascii: byte {at} (0x{column.data[place]:02x}) is not ASCII")
            )
    return Encoded(Cells.variable(array), bad)


def encode_blobs(column: TextColumn, fmt: TextFormat) -> Encoded:
    """Encode blob: 0x and pairs of hexadecimal digits, or base64; empty text is an empty value."""
    column = column.trimmed()
    if fmt.blob == "any":
        left = np.arange(len(column))
        values, bad = parse_left(column, left, "blob", _parse_any_blob, b"")
        return Encoded(Cells.variable(pa.array(values, pa.binary())), bad)
    if fmt.blob == "base64":
        left = np.arange(len(column))
        values, bad = parse_left(column, left, "blob", _parse_base64, b"")
        return Encoded(Cells.variable(pa.array(values, pa.binary())), bad)
    wholly = _unhexlified(column)
    if wholly is not None:
        return Encoded(Cells.variable(wholly), [])
    done = column.matches(_HEX_FORM)
    taken = _unhexlified(column.filter(done))
    assert taken is not None
    empty = column.lengths == 0
    bad = all_bad(
        column,
        np.flatnonzero(~done & ~empty),
        "blob",
        lambda text: f"{text} is not 0x and pairs of hexadecimal digits",
    )
    nothing = pa.array([b""] * (len(column) - len(taken)), pa.binary())
    merged = merge_variable([(np.flatnonzero(done), taken), (np.flatnonzero(~done), nothing)])
    return Encoded(Cells.variable(merged), bad)


def _utf8_reason(value: bytes, fmt: TextFormat | None) -> str | None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        if _HALF_PAIR.match(value, error.start):
            return "half of a surrogate pair is no character; write both halves, or the character"
        reason = f"invalid UTF-8 at byte {error.start + 1} (0x{value[error.start]:02x})"
        if fmt is None:
            return reason
        return reason + western_hint(value, error.start, input_option("encoding"))
    return None


def _unhexlified(column: TextColumn) -> pa.BinaryArray | None:
    """Return the bytes of all values, or None unless each is 0x and pairs of digits."""
    lengths = column.lengths
    if (lengths < 2).any() or (lengths & 1).any():
        return None
    starts = column.offsets[:-1]
    first, second = column.data[starts], column.data[starts + 1]
    if (first != 0x30).any() and not ((first == 0x30) | (first == 0x5C) & (second == 0x78)).all():
        return None
    if (second | 0x20 != 0x78).any():
        return None
    digits = column.data.copy()
    # 0x and \x become 00, an extra byte before each value.
    digits[starts] = digits[starts + 1] = 0x30
    try:
        data = np.frombuffer(binascii.unhexlify(digits.tobytes()), np.uint8)
    except binascii.Error:
        return None
    kept = np.ones(len(data), np.bool_)
    kept[starts // 2] = False
    offsets = np.right_shift(column.offsets, 1) - np.arange(len(column) + 1, dtype=np.int32)
    return TextColumn(offsets, data[kept]).array()


def _parse_any_blob(text: str) -> bytes:
    """Parse hexadecimal digits after 0x or \\x, or base64. What could be both is hexadecimal."""
    if text[:2] in ("0x", "0X", "\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            pass
    try:
        return _parse_base64(text)
    except ValueError:
        raise ValueError(
            f"{quote(text)} is neither 0x and pairs of hexadecimal digits nor base64"
        ) from None


def _parse_base64(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True) if text else b""
    except ValueError as error:
        raise ValueError(f"{quote(text)} is not base64: {str(error).lower()}") from None

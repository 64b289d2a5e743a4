"""inet from text: IPv4 and IPv6 addresses.

Both fast paths remove the separators and read the parts of all addresses as one column.
"""

import ipaddress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells, fixed_binary
from ringhaul.cql.column import Encoded, Mask, TextColumn, merge_variable, parse_left, quote
from ringhaul.cql.text_format import TextFormat

_PART = r"(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
_V4_FORM = rf"^{_PART}\.{_PART}\.{_PART}\.{_PART}$"
_V6_FORM = r"^[0-9a-fA-F:]{2,39}$"
_V6_GROUPS = 8
_DOT, _COLON = 0x2E, 0x3A

Bytes = NDArray[np.uint8]

#: Prefix of an IPv4-mapped IPv6 address; the four bytes of the IPv4 address follow.
_MAPPED = bytes(10) + b"\xff\xff"


def encode_inets(column: TextColumn, _: TextFormat) -> Encoded:
    """Encode addresses: 4 bytes for IPv4, 16 for IPv6."""
    column = column.trimmed()
    values = _addresses_v4(column)
    if values is not None:
        return Encoded(Cells.fixed(values), [])
    is_v4, is_v6 = column.matches(_V4_FORM), column.matches(_V6_FORM)
    values_v6, read = _addresses_v6(column.filter(is_v6))
    is_v6[is_v6] = read
    if is_v6.all():
        return Encoded(Cells.fixed(values_v6), [])
    values_v4 = _addresses_v4(column.filter(is_v4))
    assert values_v4 is not None
    left = np.flatnonzero(~(is_v4 | is_v6))
    left_values, bad = parse_left(column, left, "inet", parse_address, b"")
    merged = merge_variable(
        [
            (np.flatnonzero(is_v4), _binary(values_v4)),
            (np.flatnonzero(is_v6), _binary(values_v6[read])),
            (left, pa.array(left_values, pa.binary())),
        ]
    )
    return Encoded(Cells.variable(merged), bad)


def parse_address(text: str) -> bytes:
    """Return the 4 or 16 bytes of an address. Raises `ValueError` with the reason."""
    if "%" not in text and "/" not in text:
        try:
            return ipaddress.ip_address(text).packed
        except ValueError:
            pass
    raise ValueError(f"{quote(text)} is not an IPv4 or IPv6 address")


def address_text(packed: bytes) -> str:
    """Return the text of an address by RFC 5952, also if it is IPv4-mapped, for which Python writes
    dots from 3.13 on."""
    if len(packed) == 16 and packed.startswith(_MAPPED):
        high, low = packed[12:14].hex(), packed[14:].hex()
        return f"::ffff:{int(high, 16):x}:{int(low, 16):x}"
    return str(ipaddress.ip_address(packed))


def _binary(values: Bytes) -> pa.BinaryArray:
    width = values.shape[1]
    return fixed_binary(np.ascontiguousarray(values).view(np.dtype((np.void, width))).reshape(-1))


def _addresses_v4(column: TextColumn) -> Bytes | None:
    """Return bytes of shape (n, 4), or None unless every value is a dotted IPv4 address."""
    if not len(column):
        return np.zeros((0, 4), np.uint8)
    data, offsets = column.data, column.offsets
    dots = np.flatnonzero(data == _DOT)
    if len(dots) != 3 * len(column):
        return None
    places = dots.reshape(-1, 3)
    if not _inside(places, offsets):
        return None
    # Without the dots the four parts of all values are contiguous.
    digits = np.frombuffer(data.tobytes().translate(None, b"."), np.uint8)
    bounds = np.empty((len(column), 4), np.int32)
    bounds[:, 0] = offsets[:-1]
    bounds[:, 1:] = places
    bounds -= np.arange(0, 3 * len(column), 3, dtype=np.int32)[:, None]
    bounds[:, 2] -= 1
    bounds[:, 3] -= 2
    parts = TextColumn(np.append(bounds.reshape(-1), np.int32(len(digits))), digits)
    lengths = parts.lengths
    if not len(digits) or lengths.min() < 1 or (digits - np.uint8(0x30) > 9).any():
        return None
    if ((digits[parts.offsets[:-1]] == 0x30) & (lengths > 1)).any():
        return None  # a leading zero may mean octal
    try:
        values: Bytes = parts.array().cast(pa.uint8()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return values.reshape(-1, 4)


def _inside(places: NDArray[np.intp], offsets: NDArray[np.int32]) -> bool:
    """Whether the three places of each row lie between its offsets."""
    inside: Mask = (places[:, 0] >= offsets[:-1]) & (places[:, 2] < offsets[1:])
    return bool(inside.all())


def _addresses_v6(column: TextColumn) -> tuple[Bytes, Mask]:
    """Return bytes of shape (n, 16), and which values are valid addresses. All values consist of
    hexadecimal digits and colons."""
    data, offsets = column.data, column.offsets
    rows_count = len(column)
    if not rows_count:
        return np.zeros((0, 2 * _V6_GROUPS), np.uint8), np.zeros(0, np.bool_)
    colons = np.flatnonzero(data == _COLON)
    colon_rows = np.searchsorted(offsets, colons, side="right") - 1
    colons_count = np.bincount(colon_rows, minlength=rows_count)

    # Parts: the text between the colons and ends of a value; an empty part belongs to a "::".
    part_rows = np.repeat(np.arange(rows_count), colons_count + 1)
    is_first = np.ones(len(part_rows), np.bool_)
    is_first[1:] = part_rows[1:] != part_rows[:-1]
    is_last = np.append(is_first[1:], True)
    starts = np.empty(len(part_rows), np.int64)
    ends = np.empty(len(part_rows), np.int64)
    starts[is_first], starts[~is_first] = offsets[:-1], colons + 1
    ends[is_last], ends[~is_last] = offsets[1:], colons
    lengths = ends - starts
    empty = lengths == 0

    gaps = np.bincount(part_rows[empty & ~is_first & ~is_last], minlength=rows_count)
    edges = np.bincount(part_rows[empty & (is_first | is_last)], minlength=rows_count)
    full = np.bincount(part_rows[~empty], minlength=rows_count)
    # An empty first or last part is allowed only next to the gap itself.
    touching = np.zeros(rows_count, np.int64)
    long_enough = column.lengths >= 2
    for first, second in ((offsets[:-1], offsets[:-1] + 1), (offsets[1:] - 2, offsets[1:] - 1)):
        pair = (data[first[long_enough]] == _COLON) & (data[second[long_enough]] == _COLON)
        touching[long_enough] += pair
    ok: Mask = np.where(
        gaps == 0, (full == _V6_GROUPS) & (edges == 0), (gaps == 1) & (full < _V6_GROUPS)
    )
    ok &= edges == touching
    ok[part_rows[lengths > 4]] = False

    groups = np.zeros((rows_count, _V6_GROUPS), ">u2")
    kept = ~empty & ok[part_rows]
    ordinal = np.cumsum(kept) - 1
    kept_rows = part_rows[kept]
    full_before = np.cumsum(np.where(ok, full, 0)) - np.where(ok, full, 0)
    slots = ordinal[kept] - full_before[kept_rows]
    # Parts after the gap count from the end.
    gap_at = np.cumsum(empty & ~is_first & ~is_last)
    gaps_before = np.cumsum(gaps) - gaps
    after_gap = gap_at[kept] > gaps_before[kept_rows]
    slots = np.where(after_gap, slots + _V6_GROUPS - full[kept_rows], slots)
    groups[kept_rows, slots] = _hexadecimal(data, ends[kept], lengths[kept])
    return groups.view(np.uint8).reshape(-1, 2 * _V6_GROUPS), ok


def _hexadecimal(
    data: Bytes, ends: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint16]:
    """Read numbers of 1..4 hexadecimal digits that end before `ends`."""
    digits = (data & 0x0F) + np.where(data > 0x39, 9, 0).astype(np.uint8)
    total = digits[ends - 1].astype(np.uint16)
    for place in range(1, 4):
        digit = digits[np.maximum(ends - 1 - place, 0)].astype(np.uint16)
        digit[lengths <= place] = 0
        total |= digit << np.uint16(4 * place)
    return total

"""Read the headers of the pages of a column chunk: how many values and bytes each page has.

A footer may be wrong about pages. pyarrow decompresses a page by the page's own header, and reports
an error if the page does not have the bytes that its header says: so headers bound what a page
takes, whatever its codec. They are structs in Thrift's compact protocol. Pure, except for what
`read` does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

#: `Page.kind`
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
#: `Page.encoding` of data pages that hold indices into the dictionary.
INDEX_ENCODINGS = frozenset({2, 8})
#: Encoding of values that repeat the beginnings of others: a page does not bound their size.
DELTA_BYTE_ARRAY = 7

#: Bytes first read to find a header, and the largest header, as in pyarrow.
PEEK_BYTES = 512
HEADER_BYTES_MAX = 16 << 20
_DEPTH_MAX = 16
#: Length of a byte array in a page with plain encoding: it precedes the value.
_LENGTH_BYTES = 4
_LENGTH = struct.Struct("<I")
#: Values that are this long on average are few enough to visit one by one.
_LONG_BYTES = 128
#: Bytes examined at once, in reused memory, and how many values are visited one by one at most.
_WINDOW_BYTES = 128 << 10
_STEPS_MAX = 500
#: Field of `PageHeader` that is a struct -> the struct's fields with the number of values, and with
#: their encoding.
_ABOUT = {5: (1, 2), 7: (1, 2), 8: (1, 4)}
_KINDS = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
_CODECS = {
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "BROTLI": "brotli",
    "LZ4_RAW": "lz4_raw",
}

#: Types of Thrift's compact protocol.
_INT32, _BINARY, _MAP, _STRUCT = 5, 8, 11, 12
_BOOLEANS, _VARINTS, _LISTS = (1, 2), (4, 5, 6), (9, 10, 11)
_WIDTHS = {3: 1, 7: 8, 13: 16}

#: Reads bytes of the file (offset, how many): fewer only at its end.
ReadAt = Callable[[int, int], bytes]


class Page(NamedTuple):
    """What the header of a page says."""

    kind: int
    unpacked_bytes: int
    stored_bytes: int
    values_count: int
    encoding: int
    #: Where its bytes begin in the file, after the header.
    start: int


def pages(read: ReadAt, start: int, end: int, values_count: int) -> Iterator[Page]:
    """Yield the pages in [start, end) of a file, until they have `values_count` values.

    Reads as far as pyarrow does. Raises `pa.ArrowInvalid` for a damaged header.
    """
    at, seen = start, 0
    held, held_start = b"", start
    while seen < values_count and at < end:
        page, peek = None, PEEK_BYTES
        while page is None:
            if at + peek > held_start + len(held) and held_start + len(held) < end:
                held, held_start = read(at, min(peek, end - at)), at
            try:
                page = parse_page(held, at - held_start, held_start)
            except IndexError:
                if at + peek >= end or peek >= HEADER_BYTES_MAX or held_start + len(held) < at:
                    raise pa.ArrowInvalid(f"the page at byte {at:,} has a damaged header") from None
                peek *= 4
        yield page
        at = page.start + page.stored_bytes
        seen += page.values_count if page.kind != DICTIONARY else 0


def parse_page(data: bytes, at: int, data_start: int) -> Page:
    """Parse the header at `at`. Raises `IndexError` if `data` ends before it does.

    `data_start`: offset of `data` in the file. Raises `pa.ArrowInvalid` if it is not a header.
    """
    numbers: dict[int, int] = {}
    at = _struct(data, at, numbers, 0)
    kind, unpacked, stored = numbers.get(1, -1), numbers.get(2, -1), numbers.get(3, -1)
    count = encoding = 0
    if (outer := _KINDS.get(kind)) is not None:
        of_count, of_encoding = _ABOUT[outer]
        count = numbers.get(outer * 100 + of_count, -1)
        encoding = numbers.get(outer * 100 + of_encoding, -1)
    if unpacked < 0 or stored < 0 or count < 0:
        raise pa.ArrowInvalid(f"the page before byte {data_start + at:,} has a damaged header")
    return Page(kind, unpacked, stored, count, encoding, data_start + at)


def _struct(data: bytes, at: int, numbers: dict[int, int], base: int) -> int:
    """Note a struct's 32-bit numbers by `base` + field; an inner struct's base is 100 x field."""
    field = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head > 15:
            field += head >> 4
        else:
            number, at = _varint(data, at)
            field = _signed(number)
        if kind == _INT32:
            number = data[at]
            at += 1
            if number > 127:
                number, at = _varint(data, at - 1)
                numbers[base + field] = _signed(number)
            else:
                numbers[base + field] = (number >> 1) ^ -(number & 1)
        elif kind == _STRUCT and not base and field in _ABOUT:
            at = _struct(data, at, numbers, field * 100)
        else:
            at = _skip(data, at, kind, 0)
    return at + 1


def _signed(number: int) -> int:
    """Decode a 32-bit number: Thrift uses the last bits, with the sign at the end."""
    number &= 0xFFFF_FFFF
    return (number >> 1) ^ -(number & 1)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise pa.ArrowInvalid("a page has a damaged header")


def _skip(data: bytes, at: int, kind: int, depth: int, *, element: bool = False) -> int:
    """Return where a value of a Thrift type ends. Raises `IndexError` if `data` ends before."""
    if kind == _BINARY:
        size, at = _varint(data, at)
        return at + (size & 0xFFFF_FFFF)
    if kind in _BOOLEANS:
        return at + element
    if kind in _VARINTS:
        return _varint(data, at)[1]
    if kind in _WIDTHS:
        return at + _WIDTHS[kind]
    if depth > _DEPTH_MAX:
        raise pa.ArrowInvalid("a page has a damaged header")
    if kind == _STRUCT:
        while head := data[at]:
            at = at + 1 if head > 15 else _varint(data, at + 1)[1]
            kind = head & 15
            # Most skipped values are statistics: short values and flags.
            if kind == _BINARY and data[at] < 128:
                at += 1 + data[at]
            elif kind not in _BOOLEANS:
                at = _skip(data, at, kind, depth + 1)
        return at + 1
    if kind not in _LISTS:
        raise pa.ArrowInvalid("a page has a damaged header")
    return _skip_elements(data, at, kind, depth)


def _skip_elements(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return where a list, set or map ends. Each element has at least a byte, a bound in `data`."""
    if kind == _MAP:
        count, at = _varint(data, at)
        if not count:
            return at
        kinds = [data[at] >> 4, data[at] & 15]
        at += 1
    else:
        count, kinds = data[at] >> 4, [data[at] & 15]
        at += 1
        if count == 15:
            count, at = _varint(data, at)
    for _ in range(count):
        for each in kinds:
            data[at]  # raises where the data ends
            at = _skip(data, at, each, depth + 1, element=True)
    return at


def longest_plain(data: bytes | memoryview, values_count: int) -> int | None:
    """Return the bytes of the longest value in a page of byte arrays, each after its length.

    `values_count`: about how many there are. None: it would take too long to find.
    """
    if len(data) > _LONG_BYTES * values_count:
        return _longest_of_long(data)
    if (size := _one_length(data)) is not None:
        return size
    at = longest = steps = 0
    whole = np.frombuffer(data, np.uint8)
    while at < len(data):
        # What looks like a length below 256: a byte and three zeros. In most pages each such
        # place leads to the next one, so that no steps are needed.
        part = whole[at : at + _WINDOW_BYTES + 3]
        zero = part == 0
        places = np.flatnonzero(zero[1:-2] & zero[2:-1] & zero[3:])
        lengths = part[places]
        following = places + lengths
        following += _LENGTH_BYTES
        leaves = np.flatnonzero(following[:-1] != places[1:])
        here = 0
        while here < _WINDOW_BYTES and at + here < len(data):
            first = int(np.searchsorted(places, here))
            if first < places.size and places[first] == here:
                leave = int(np.searchsorted(leaves, first))
                last = int(leaves[leave]) if leave < leaves.size else places.size - 1
                longest = max(longest, int(lengths[first : last + 1].max()))
                here = int(following[last])
            else:
                size = int.from_bytes(data[at + here : at + here + _LENGTH_BYTES], "little")
                longest = max(longest, size)
                here += _LENGTH_BYTES + size
            steps += 1
            if steps > _STEPS_MAX:
                return None
        at += here
    return longest


def _one_length(data: bytes | memoryview) -> int | None:
    """Return the bytes of each value in such a page, if all are as long, as ids are; else None."""
    if len(data) < _LENGTH_BYTES:
        return 0
    (size,) = _LENGTH.unpack_from(data)
    count, rest = divmod(len(data), _LENGTH_BYTES + size)
    if rest:
        return None
    lengths = np.ndarray((count,), "<u4", data, strides=(_LENGTH_BYTES + size,))
    return int(size) if bool((lengths == size).all()) else None


def _longest_of_long(data: bytes | memoryview) -> int:
    at = longest = 0
    last = len(data) - _LENGTH_BYTES
    while at <= last:
        (size,) = _LENGTH.unpack_from(data, at)
        if size > longest:
            longest = size
        at += _LENGTH_BYTES + size
    return longest


def unpack(data: bytes, page: Page, codec: str) -> memoryview | None:
    """Decompress a dictionary page. None: the codec is supported only by pyarrow's reader."""
    if codec == "UNCOMPRESSED":
        return memoryview(data)
    if codec not in _CODECS:
        return None
    # Into memory of Arrow's pool, which reuses it for the next one.
    return memoryview(pa.Codec(_CODECS[codec]).decompress(data, page.unpacked_bytes))

"""Kernels that format numbers and addresses as text, and read durations.

Texts are written one after the other; each may take up to `TEXT_BYTES_MAX` bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.compiled import (
    COUNT,
    INT32S,
    INT64S,
    PAGE,
    UINT8S,
    Int,
    inlined,
    kernel,
)
from ringhaul.cql.decode.cells import Int32s, Page

#: The longest texts are IPv6 addresses with 39; a decimal of 8 bytes has at most 34: sign, 19
#: digits, point, `E+` and 10 digits, rounded up.
TEXT_BYTES_MAX = 40

_ZERO, _POINT, _MINUS, _PLUS, _COLON, _E = (np.uint8(ord(letter)) for letter in "0.-+:E")
_LOWER = np.uint8(ord("a") - 10)


@inlined
def _digits(value: Int, out: Page, at: Int) -> Int:
    """Write the decimal digits of an uint64 below 10**19. Returns where they end."""
    count = 1
    bound = np.uint64(10)
    while count < 19 and value >= bound:
        count += 1
        bound *= np.uint64(10)
    for k in range(count - 1, -1, -1):
        out[np.uintp(at + k)] = _ZERO + np.uint8(value % np.uint64(10))
        value //= np.uint64(10)
    return at + count


@inlined
def _scaled(digits: Page, count: Int, scale: Int, out: Page, at: Int) -> Int:
    """Write `count` digits, `scale` (not 0) of them after the point. Returns where they end."""
    exponent = count - 1 - scale
    if scale > 0 and exponent >= -6:
        # With no more digits than the scale, write a zero before the point and fill with zeros
        # after it.
        if count <= scale:
            out[np.uintp(at)] = _ZERO
            out[np.uintp(at + 1)] = _POINT
            at += 2
            for _ in range(scale - count):
                out[np.uintp(at)] = _ZERO
                at += 1
        for k in range(count):
            if k > 0 and k == count - scale:
                out[np.uintp(at)] = _POINT
                at += 1
            out[np.uintp(at)] = digits[np.uintp(k)]
            at += 1
        return at
    out[np.uintp(at)] = digits[0]
    at += 1
    if count > 1:
        out[np.uintp(at)] = _POINT
        at += 1
        for k in range(1, count):
            out[np.uintp(at)] = digits[np.uintp(k)]
            at += 1
    out[np.uintp(at)] = _E
    out[np.uintp(at + 1)] = _MINUS if exponent < 0 else _PLUS
    return _digits(np.uint64(abs(exponent)), out, at + 2)


@inlined
def _hexadecimal(value: Int, out: Page, at: Int) -> Int:
    """Write a number below 65,536 without leading zeros. Returns where it ends."""
    started = False
    for shift in (12, 8, 4, 0):
        digit = np.uint8(value >> shift & 0xF)
        if digit or started or shift == 0:
            started = True
            out[np.uintp(at)] = (_ZERO if digit < 10 else _LOWER) + digit
            at += 1
    return at


@kernel(COUNT(PAGE, INT32S, INT32S, COUNT, INT32S, UINT8S, UINT8S))
def number_texts(
    page: Page,
    starts: Int32s,
    lengths: Int32s,
    head: Int,
    offsets: Int32s,
    out: Page,
    left: Page,
) -> Int:
    """Format varints (`head` 0) and decimals (`head` 4: their scale) whose digits fit in 8 bytes.

    A decimal is written as in the General Decimal Arithmetic specification and in Python: plain if
    the scale is not negative and at most 5 zeros follow the point, else with an exponent. So both
    digits and scale can be read back.

    Returns how many numbers were too long; `left` is 1 for them and 0 for all others. A cell with a
    head but no digits is bad.
    """
    digits = np.empty(20, np.uint8)
    at = np.int64(0)
    left_count = 0
    offsets[0] = 0
    for i in range(starts.size):
        length = np.int64(lengths[np.uintp(i)])
        start = np.int64(starts[np.uintp(i)])
        width = length - head
        left[np.uintp(i)] = 0
        if length > 0 and width <= 0:
            return -1 - i
        if width > 8:
            left[np.uintp(i)] = 1
            left_count += 1
        elif width > 0:
            value = np.int64(0)
            if page[np.uintp(start + head)] >= 0x80:
                value = np.int64(-1)
            for k in range(start + head, start + length):
                value = value << 8 | np.int64(page[np.uintp(k)])
            magnitude = np.uint64(value)
            if value < 0:
                out[np.uintp(at)] = _MINUS
                at += 1
                magnitude = np.uint64(0) - magnitude
            scale = np.int64(0)
            if head == 4:
                if page[np.uintp(start)] >= 0x80:
                    scale = np.int64(-1)
                for k in range(start, start + 4):
                    scale = scale << 8 | np.int64(page[np.uintp(k)])
            if scale == 0:
                at = _digits(magnitude, out, at)
            else:
                at = _scaled(digits, _digits(magnitude, digits, 0), scale, out, at)
        offsets[np.uintp(i + 1)] = at
    return left_count


@kernel(COUNT(PAGE, INT32S, INT32S, INT32S, UINT8S))
def address_texts(page: Page, starts: Int32s, lengths: Int32s, offsets: Int32s, out: Page) -> Int:
    """Format addresses of 4 or 16 bytes as text; any other length is bad.

    IPv6 addresses, including IPv4-mapped ones, are written by RFC 5952: lower case, no leading
    zeros, the first of the longest runs of two or more zero groups as `::`.
    """
    groups = np.empty(8, np.int64)
    at = np.int64(0)
    offsets[0] = 0
    for i in range(starts.size):
        length = np.int64(lengths[np.uintp(i)])
        start = np.int64(starts[np.uintp(i)])
        if length == 4:
            for k in range(4):
                if k:
                    out[np.uintp(at)] = _POINT
                    at += 1
                at = _digits(np.uint64(page[np.uintp(start + k)]), out, at)
        elif length == 16:
            run_start, run_length, zeros = -1, 1, 0
            for k in range(8):
                high = np.int64(page[np.uintp(start + 2 * k)])
                groups[k] = high << 8 | np.int64(page[np.uintp(start + 2 * k + 1)])
                zeros = zeros + 1 if groups[k] == 0 else 0
                if zeros > run_length:
                    run_start, run_length = k + 1 - zeros, zeros
            for k in range(8):
                if run_start >= 0 and run_start <= k < run_start + run_length:
                    if k == run_start:
                        out[np.uintp(at)] = _COLON
                        out[np.uintp(at + 1)] = _COLON
                        at += 2
                    continue
                if k > 0 and k != run_start + run_length:
                    out[np.uintp(at)] = _COLON
                    at += 1
                at = _hexadecimal(groups[k], out, at)
        elif length > 0:
            return -1 - i
        offsets[np.uintp(i + 1)] = at
    return 0


@kernel(COUNT(PAGE, INT32S, INT32S, INT32S, INT32S, INT64S))
def duration_parts(
    page: Page,
    starts: Int32s,
    lengths: Int32s,
    months: Int32s,
    days: Int32s,
    nanoseconds: NDArray[np.int64],
) -> Int:
    """Read the three vints of durations, 0 for a null. Returns how many are null or empty.

    A vint is as in `cells.find_items`, with the sign in the lowest bit (zigzag).
    """
    missing = 0
    for i in range(starts.size):
        months[np.uintp(i)] = 0
        days[np.uintp(i)] = 0
        nanoseconds[np.uintp(i)] = 0
        if lengths[np.uintp(i)] <= 0:
            missing += 1
            continue
        at = np.int64(starts[np.uintp(i)])
        end = at + np.int64(lengths[np.uintp(i)])
        for part in range(3):
            if at >= end:
                return -1 - i
            head = np.int64(page[np.uintp(at)])
            at += 1
            more = 0
            while more < 8 and head & (0x80 >> more):
                more += 1
            if more > end - at:
                return -1 - i
            unsigned = np.uint64(head & (0xFF >> more))
            for _ in range(more):
                unsigned = unsigned << np.uint64(8) | np.uint64(page[np.uintp(at)])
                at += 1
            value = np.int64(unsigned >> np.uint64(1))
            if unsigned & np.uint64(1):
                value = ~value
            if part == 2:
                nanoseconds[np.uintp(i)] = value
            elif value < -(2**31) or value >= 2**31:
                return -1 - i
            elif part == 1:
                days[np.uintp(i)] = value
            else:
                months[np.uintp(i)] = value
        if at != end:
            return -1 - i
    return missing

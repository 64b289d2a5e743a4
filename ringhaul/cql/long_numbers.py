"""Convert whole numbers of any length to and from decimal digits, in nearly linear time. Pure.

The length of a varint and of the digits of a decimal is not limited: a mutation of 16 MiB,
Cassandra's default limit, holds 40 million digits. Python's `int()` and `str()` refuse more than
4,300 digits, and their time is quadratic in the number of digits. Here both directions divide and
conquer:

- from digits: large numbers are multiplied by a fast Fourier transform over their bytes;
- to digits: in `decimal`, whose C library multiplies large numbers by a number theoretic transform.

A varint of 400 kB, 960,000 digits, takes about half a second in either direction.
"""

from __future__ import annotations

import decimal
import sys
from decimal import Decimal

import numpy as np

#: Up to this number of digits (640), `int` works whatever its limit is set to.
_PIECE_DIGITS = sys.int_info.str_digits_check_threshold
#: Up to this number of bits (some 600 digits), `str` works whatever its limit is set to.
_STR_BITS = 2000
#: Numbers of up to this many bytes become a `Decimal` directly, which takes quadratic time.
_LEAF_BYTES = 128
#: Size of each factor, in bytes, from which the transform is faster than Python's product.
_TRANSFORM_BYTES_MIN = 20_000
#: Limit on both factors of a transform together. It bounds the memory, some 32 bytes for each byte,
#: and the rounding error of a coefficient: 2**22 * 255**2 * 22 * 2**-52 is below 0.01, and must be
#: below 0.5.
_TRANSFORM_BYTES_MAX = 1 << 22

_EXACT = decimal.Context(
    prec=decimal.MAX_PREC,
    Emin=decimal.MIN_EMIN,
    Emax=decimal.MAX_EMAX,
    traps=[decimal.Inexact, decimal.InvalidOperation],
)


def integer_of(spelt: str) -> int:
    """Return the number that ASCII digits spell, with an optional sign in front."""
    digits = spelt.lstrip("+-")
    width = _PIECE_DIGITS
    parts = [int(digits[max(end - width, 0) : end]) for end in range(len(digits), 0, -width)]
    power, shift = 5**width, width  # 10**n is 5**n << n
    while len(parts) > 1:
        high = parts[1::2]
        odd = parts[2 * len(high) :]
        parts = [
            low + (product(above, power) << shift)
            for low, above in zip(parts[::2], high, strict=False)
        ]
        parts += odd
        if len(parts) > 1:
            power, shift = product(power, power), shift * 2
    return -parts[0] if spelt[0] == "-" else parts[0]


def digits_of(value: int) -> str:
    """Return the digits of a number, after a minus if it is negative."""
    if value.bit_length() <= _STR_BITS:
        return str(value)
    sign, value = "-" * (value < 0), abs(value)
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    # Powers of 256 by exponent, each the square of its predecessor.
    powers: dict[int, Decimal] = {}
    width, power = _LEAF_BYTES, Decimal(1 << (8 * _LEAF_BYTES))
    while width < len(data):
        powers[width] = power
        width *= 2
        if width < len(data):
            power = _EXACT.multiply(power, power)

    def decimal_of(begin: int, end: int) -> Decimal:
        if end - begin <= _LEAF_BYTES:
            return Decimal(int.from_bytes(data[begin:end], "big"))
        low_bytes = _LEAF_BYTES
        while 2 * low_bytes < end - begin:
            low_bytes *= 2
        middle = end - low_bytes
        return _EXACT.fma(decimal_of(begin, middle), powers[low_bytes], decimal_of(middle, end))

    return sign + str(decimal_of(0, len(data)))


def product(left: int, right: int) -> int:
    """Return `left * right`; neither may be negative."""
    left_bytes, right_bytes = _bytes_count(left), _bytes_count(right)
    if min(left_bytes, right_bytes) < _TRANSFORM_BYTES_MIN:
        return left * right
    if left_bytes + right_bytes > _TRANSFORM_BYTES_MAX:
        # Karatsuba: three products of halves.
        shift = 8 * (max(left_bytes, right_bytes) // 2)
        low_bits = (1 << shift) - 1
        high, low = left >> shift, left & low_bits
        other_high, other_low = right >> shift, right & low_bits
        top, bottom = product(high, other_high), product(low, other_low)
        middle = product(high + low, other_high + other_low) - top - bottom
        return (top << (2 * shift)) + (middle << shift) + bottom
    return _transformed(left, left_bytes, right, right_bytes)


def _transformed(left: int, left_bytes: int, right: int, right_bytes: int) -> int:
    """Return the product by multiplying polynomials in 256, whose coefficients are the bytes."""
    count = left_bytes + right_bytes
    size = 1 << (count - 1).bit_length()
    spectrum = np.fft.rfft(_coefficients(left, left_bytes), size)
    if left == right:
        spectrum *= spectrum
    else:
        spectrum *= np.fft.rfft(_coefficients(right, right_bytes), size)
    found = np.rint(np.fft.irfft(spectrum, size)[:count]).astype("<i8").view(np.uint8)
    # A coefficient is below 2**38: the bytes at each of its five places form a separate number.
    return sum(
        int.from_bytes(found[place::8].tobytes(), "little") << (8 * place) for place in range(5)
    )


def _coefficients(value: int, bytes_count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(value.to_bytes(bytes_count, "little"), np.uint8)


def _bytes_count(value: int) -> int:
    return (value.bit_length() + 7) // 8

"""Filter.db: the Bloom filter of the partition keys.

`i32 hashes | i32 words | bytes`: 8 bytes a word, and bit n is bit n % 8, from the lowest, of byte
n // 8. A key sets the bits `|(h2 + i * h1) % bits|` for i below `hashes`; h1 and h2 are the halves
of its Murmur3. Classes: `BloomFilterSerializer`, `OffHeapBitSet`, `BloomCalculations`.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

#: Bits that a filter has beyond its bits per key.
_EXCESS_BITS = 20
_BITS_A_KEY_MAX = 20


def filter_shape(fp_chance: float) -> tuple[int, int]:
    """Return bits per key and the number of hashes for a chance of false positives.

    Takes as few bits as the best number of hashes allows, then as few hashes as suffice.
    """
    for bits in range(2, _BITS_A_KEY_MAX + 1):
        best = max(1, round(bits * math.log(2)))
        if _fp_chance(bits, best) > fp_chance:
            continue
        return bits, next(n for n in range(1, best + 1) if _fp_chance(bits, n) <= fp_chance)
    return _BITS_A_KEY_MAX, round(_BITS_A_KEY_MAX * math.log(2))


def _fp_chance(bits: int, hashes: int) -> float:
    return (1 - math.exp(-hashes / bits)) ** hashes


def empty_filter(keys: int, bits_a_key: int) -> NDArray[np.uint8]:
    """Return the bytes of a filter for this many keys."""
    bits = keys * bits_a_key + _EXCESS_BITS
    return np.zeros(((bits - 1) // 64 + 1) * 8, np.uint8)


def filter_bytes(bits: NDArray[np.uint8], hashes: int) -> bytes:
    """Return the file."""
    return struct.pack(">ii", hashes, len(bits) // 8) + bits.tobytes()

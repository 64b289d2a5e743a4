"""Hashes of partition keys: Murmur3 for tokens and Bloom filters, Murmur2 for estimated counts.

Classes: `MurmurHash` (`hash3_x64_128`, `hash2_64`), `BloomFilter`, `HyperLogLogPlus`. Cassandra
extends the sign of the bytes of the last, incomplete block.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ringhaul.cql.compiled import INT32S, INT64S, UINT8S, Int, inlined, kernel

#: Bits of a hash that choose a register of HyperLogLog++; its registers.
PRECISION = 13
REGISTERS = 1 << PRECISION


@inlined
def _rotate(word: Int, bits: Int) -> Int:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@inlined
def _finish(word: Int) -> Int:
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@inlined
def _word(data: Int, at: Int) -> Int:
    """Return 8 bytes, little-endian."""
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return word


@inlined
def _tail(data: Int, at: Int, size: Int) -> Int:
    """Return up to 8 bytes, little-endian, each with its sign extended."""
    word = np.uint64(0)
    for k in range(size):
        word ^= np.uint64(np.int64(np.int8(data[at + k]))) << np.uint64(8 * k)
    return word


@inlined
def _murmur3(data: Int, at: Int, size: Int) -> Int:
    c1, c2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
    h1, h2 = np.uint64(0), np.uint64(0)
    for _ in range(size >> 4):
        h1 ^= _rotate(_word(data, at) * c1, 31) * c2
        h1 = (_rotate(h1, 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
        h2 ^= _rotate(_word(data, at + 8) * c2, 33) * c1
        h2 = (_rotate(h2, 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    rest = size & 15
    if rest > 8:
        h2 ^= _rotate(_tail(data, at + 8, rest - 8) * c2, 33) * c1
    if rest:
        h1 ^= _rotate(_tail(data, at, min(rest, 8)) * c1, 31) * c2
    h1 ^= np.uint64(size)
    h2 ^= np.uint64(size)
    h1 += h2
    h2 += h1
    h1, h2 = _finish(h1), _finish(h2)
    h1 += h2
    h2 += h1
    return h1, h2


@inlined
def _murmur2(data: Int, at: Int, size: Int) -> Int:
    factor, shift = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)
    found = factor * np.uint64(size)
    for _ in range(size >> 3):
        word = _word(data, at) * factor
        word ^= word >> shift
        found = (found ^ (word * factor)) * factor
        at += 8
    if size & 7:
        found = (found ^ _tail(data, at, size & 7)) * factor
    found ^= found >> shift
    found *= factor
    return found ^ (found >> shift)


@kernel(types.void(UINT8S, INT32S, UINT8S, types.int64, INT64S))
def add_keys(keys: Int, offsets: Int, bits: Int, hashes: Int, registers: Int) -> None:
    """Add keys, key i from `offsets[i]` to `offsets[i + 1]`, to a Bloom filter and to HyperLogLog.

    `bits`: the filter's bytes, each key sets `hashes` bits; none if it is empty. `registers`:
    `REGISTERS` of them, each the largest rank found.
    """
    capacity = np.int64(len(bits)) * 8
    for i in range(len(offsets) - 1):
        at = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - at
        if capacity:
            h1, h2 = _murmur3(keys, at, size)
            bit, step = np.int64(h2), np.int64(h1)
            for _ in range(hashes):
                # Java's remainder has the sign of the dividend; its absolute value counts.
                place = bit % capacity
                if bit < 0 and place:
                    place = capacity - place
                bits[place >> 3] |= np.uint8(1 << (place & 7))
                bit += step
        hashed = _murmur2(keys, at, size)
        # A one below the bits that are left bounds their leading zeros.
        left = (hashed << np.uint64(PRECISION)) | np.uint64(1 << (PRECISION - 1))
        rank = 1
        while not left >> np.uint64(63):
            left <<= np.uint64(1)
            rank += 1
        register = np.int64(hashed >> np.uint64(64 - PRECISION))
        registers[register] = max(registers[register], rank)

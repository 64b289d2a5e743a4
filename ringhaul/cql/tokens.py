"""Tokens: the positions of routing keys on the ring, by Cassandra's Murmur3Partitioner.

A token is the first half of MurmurHash3 x64 128, with a quirk that must be reproduced: the bytes of
the last, incomplete 16-byte block are sign-extended before they are combined. All keys of a column
are hashed at once; the loop runs over 16-byte blocks, so a column of short keys takes one round.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ringhaul.cql.column import TextColumn

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_LOW_BITS = np.uint64(0x0101010101010101)
_BLOCK = 16

Words = NDArray[np.uint64]


def murmur3_tokens(keys: pa.BinaryArray) -> NDArray[np.int64]:
    """Return the token of each routing key (no nulls), with -2^63 replaced by 2^63 - 1."""
    column = TextColumn.of(keys)
    lengths = column.lengths.astype(np.int64)
    starts = column.offsets[:-1].astype(np.int64)
    # A word begins at every byte; 16 extra zeros allow reading words past the last key's end.
    data = np.concatenate([column.data, np.zeros(_BLOCK, np.uint8)])
    words = np.ndarray((len(column.data) + 9,), np.dtype("<u8"), data.data, 0, (1,))

    h1, h2 = np.zeros(len(column), np.uint64), np.zeros(len(column), np.uint64)
    blocks = lengths // _BLOCK
    block, rows = 0, np.flatnonzero(blocks > 0)
    while len(rows):
        at = starts[rows] + block * _BLOCK
        h1[rows], h2[rows] = _mix_block(h1[rows], h2[rows], words[at], words[at + 8])
        block += 1
        rows = rows[blocks[rows] > block]

    tail_at = starts + blocks * _BLOCK
    tail_length = lengths - blocks * _BLOCK
    h1 ^= _scramble1(_signed_tail(words[tail_at], np.minimum(tail_length, 8)))
    if len(tail_length) and tail_length.max() > 8:
        h2 ^= _scramble2(_signed_tail(words[tail_at + 8], np.maximum(tail_length - 8, 0)))

    size = lengths.astype(np.uint64)
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    tokens: NDArray[np.int64] = (_finish(h1) + _finish(h2)).view(np.int64)
    tokens[tokens == np.iinfo(np.int64).min] = np.iinfo(np.int64).max
    return tokens


def _mix_block(h1: Words, h2: Words, k1: Words, k2: Words) -> tuple[Words, Words]:
    h1 = (_rotate(h1 ^ _scramble1(k1), 27) + h2) * np.uint64(5) + np.uint64(0x52DCE729)
    h2 = (_rotate(h2 ^ _scramble2(k2), 31) + h1) * np.uint64(5) + np.uint64(0x38495AB5)
    return h1, h2


def _signed_tail(words: Words, length: NDArray[np.int64]) -> Words:
    """Combine the first `length` (0..8) bytes of each word, each sign-extended, by exclusive or.

    A byte over 0x7f inverts all bytes above it, so byte i comes out inverted when an odd number
    of the bytes below it are over 0x7f.
    """
    # A shift by 64 is undefined, so shift twice by half.
    half = (length * 4).astype(np.uint64)
    kept = words & ~((np.uint64(0xFFFFFFFFFFFFFFFF) << half) << half)
    negative = (kept >> np.uint64(7)) & _LOW_BITS
    if not negative.any():
        return kept
    odd = negative << np.uint64(8)
    for shift in (8, 16, 32):
        odd ^= odd << np.uint64(shift)
    signed: Words = kept ^ odd * np.uint64(0xFF)
    return signed


def _scramble1(k1: Words) -> Words:
    return _rotate(k1 * _C1, 31) * _C2


def _scramble2(k2: Words) -> Words:
    return _rotate(k2 * _C2, 33) * _C1


def _rotate(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _finish(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))

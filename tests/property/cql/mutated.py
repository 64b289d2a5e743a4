"""Garbled pages of every type by the thousand: a script, to run with numba's own bounds checks.

`NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=NEW_FOLDER python -m tests.property.cql.mutated 12000` prints
how many pages were decoded and how many refused; an existing folder may have kernels
compiled without checks. Decoded pages are also spelled and joined into rows, which runs more
kernels. Any error other than `HostilePage` ends the script.
"""

from __future__ import annotations

import json
import random
import struct
import sys

import pyarrow as pa

from ringhaul.cql.decode import HostilePage, PageDecoder
from ringhaul.cql.spell import digits, kernels, text_of
from ringhaul.cql.types import SCALARS, CqlType, parse_type
from ringhaul.formats.write import rows
from tests.protocol import long_bytes

INTERESTING = [-(2**31), -(2**16), -2, -1, 0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 255, 2**16, 2**31 - 1]
REPLACEMENTS = [struct.pack(">i", number) for number in INTERESTING]
REPLACEMENTS += [bytes([number]) for number in (0, 1, 2, 0x7F, 0x80, 0xC3, 0xF0, 0xFE, 0xFF)]

#: Ends of the last value: first bytes of numbers that continue.
TAILS = [b"", b"", b"\0\0", b"\x80", b"\xc0\1", b"\xe0", b"\xff\1", b"\0\xf0"]

NESTED = [
    "list<int>",
    "list<text>",
    "map<text, list<bigint>>",
    "tuple<int, text, uuid>",
    "vector<float, 3>",
    "vector<text, 2>",
    "vector<vector<int, 2>, 2>",
    "list<tuple<map<int, inet>, vector<smallint, 2>>>",
]


def decode_or_refuse(decoder: PageDecoder, body: bytes) -> pa.RecordBatch | None:
    """The decoded page, validated by Arrow, or None if it was refused."""
    try:
        batch = decoder.decode(body)
    except HostilePage:
        return None
    batch.validate(full=True)
    return batch


def value(cql_type: CqlType, rng: random.Random) -> bytes | None:
    """A cell of roughly this type."""
    of = cql_type.of
    if rng.random() < 0.1:
        return None
    match cql_type.name:
        case "list" | "set" | "map":
            count = rng.randrange(4)
            parts = [long_bytes(value(inner, rng)) for _ in range(count) for inner in of]
            return struct.pack(">i", count) + b"".join(parts)
        case "tuple":
            return b"".join(long_bytes(value(inner, rng)) for inner in of)
        case "vector":
            items = [value(of[0], rng) or b"" for _ in range(cql_type.size)]
            if of[0].name in ("float", "int", "vector"):
                return b"".join(items)
            return b"".join(bytes([len(item)]) + item for item in items)
        case "text" | "ascii" | "varchar":
            return rng.choice(["", "a", "été", "long " * 5]).encode()
        case "duration":
            return rng.choice([b"\1\2\3", b"\x80\x80\xc0\1\2\xff" + b"\7" * 8])
        case "inet":
            return rng.randbytes(rng.choice([4, 16]))
        case "varint" | "decimal" | "blob":
            return rng.randbytes(rng.randrange(1, 16))
        case "time":
            return struct.pack(">q", rng.randrange(86_400 * 10**9))
        case "double" if rng.random() < 0.7:  # few decimals, like most real values
            return struct.pack(">d", rng.randrange(-(10**15), 10**15) / 10 ** rng.randrange(7))
        case "boolean" | "tinyint":
            return rng.randbytes(1)
        case "smallint":
            return rng.randbytes(2)
        case "int" | "float" | "date":
            return rng.randbytes(4)
        case "uuid" | "timeuuid":
            return rng.randbytes(16)
        case _:
            return rng.randbytes(8)


def main(pages_count: int) -> None:
    assert digits and kernels  # loaded before: short columns are spelled by them, too
    rng = random.Random(20)
    types = [CqlType(name) for name in SCALARS] + [parse_type(text) for text in NESTED]
    decoders = [PageDecoder(["c"], [cql_type]) for cql_type in types]
    decoded = 0
    for number in range(pages_count):
        which = number % len(types)
        cells = [long_bytes(value(types[which], rng)) for _ in range(rng.randrange(4))]
        if rng.random() < 0.4:  # the page ends in the middle of a value
            last = value(types[which], rng) or b""
            cells.append(long_bytes(last[: rng.randrange(len(last) + 1)] + rng.choice(TAILS)))
        body = bytearray(struct.pack(">iiii", 2, 4, 1, len(cells)) + b"".join(cells))
        for _ in range(rng.randrange(4)):
            replacement = rng.choice(REPLACEMENTS)
            at = rng.randrange(len(body))
            body[at : at + len(replacement)] = replacement
        batch = decode_or_refuse(decoders[which], bytes(body))
        if batch is not None:
            decoded += 1
            text = text_of(types[which], batch.column(0))
            rows.by_kernels([text, text], ["", ","], "\n", "null")
    print(json.dumps({"decoded": decoded, "refused": pages_count - decoded}))


if __name__ == "__main__":
    main(int(sys.argv[1]))

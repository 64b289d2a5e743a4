"""Tokens against the driver's own hash."""

import pyarrow as pa
from cassandra.metadata import Murmur3Token
from hypothesis import example, given
from hypothesis import strategies as st

from ringhaul.cql.tokens import murmur3_tokens


@given(st.lists(st.binary(max_size=70), max_size=12))
@example([bytes(range(n)) for n in range(40)])
@example([bytes(range(255, 255 - n, -1)) for n in range(40)])
@example([b"\xff" * n for n in range(40)])
@example([b"\x80\x00" * n for n in range(40)])
def test_tokens_are_the_drivers(keys: list[bytes]) -> None:
    array = pa.array(keys, pa.binary())

    assert murmur3_tokens(array).tolist() == [Murmur3Token.hash_fn(key) for key in keys]


def test_a_slice_of_a_column() -> None:
    keys = pa.array([b"a", b"bb", b"c" * 17, b"d"], pa.binary())

    assert murmur3_tokens(keys[1:3]).tolist() == [
        Murmur3Token.hash_fn(b"bb"),
        Murmur3Token.hash_fn(b"c" * 17),
    ]

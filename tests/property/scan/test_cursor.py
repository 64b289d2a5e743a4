"""Cursors survive packing; tokens of paging states; adaptive page sizes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.scan.cursor import Rest, pack_cursor, token_reached, unpack_cursor
from ringhaul.scan.ranges import MAX_TOKEN, MIN_TOKEN, TokenRange
from ringhaul.scan.sizing import PATIENCE, PATIENCE_MAX, ROWS_MAX, ROWS_MIN, Brake, PageSize

ranges = st.tuples(st.integers(MIN_TOKEN, MAX_TOKEN - 1), st.integers(1, 2**64)).map(
    lambda pair: TokenRange(pair[0], min(pair[0] + pair[1], MAX_TOKEN))
)
rests = st.lists(st.builds(Rest, ranges, st.none() | st.binary(min_size=1)))


@given(rests)
def test_a_cursor_unpacks_to_what_was_packed(given_rests: list[Rest]) -> None:
    assert unpack_cursor(pack_cursor(given_rests)) == given_rests


@pytest.mark.parametrize("packed", ["1:2@", "1:2@*", "1:2@AA=", "@AAAA", "1:2@AAAA;", "x"])
def test_an_invalid_cursor_is_refused(packed: str) -> None:
    if packed == "1:2@":
        assert unpack_cursor(packed) == [Rest(TokenRange(1, 2), b"")]
        return
    with pytest.raises(ValueError):
        unpack_cursor(packed)


def state_of(key: bytes, rest: bytes) -> bytes:
    """A paging state as the server writes it: the key after its length as an unsigned vint."""
    length = len(key)
    more = max((length.bit_length() - 1) // 7, 0)
    head = length.to_bytes(more + 1, "big")
    return bytes([head[0] | (0xFF00 >> more) & 0xFF]) + head[1:] + key + rest


@given(st.binary(min_size=1, max_size=70_000), st.binary(max_size=20))
def test_the_token_of_a_paging_state(key: bytes, rest: bytes) -> None:
    assert token_reached(state_of(key, rest)) == murmur3_tokens(pa.array([key], pa.binary()))[0]


@given(st.binary(max_size=30))
def test_any_bytes_as_a_state_are_handled(state: bytes) -> None:
    token = token_reached(state)
    assert token is None or MIN_TOKEN < token <= MAX_TOKEN


def test_a_truncated_state_has_no_token() -> None:
    state = state_of(b"x" * 300, b"")
    assert all(token_reached(state[:length]) is None for length in range(len(state)))


@given(st.integers(1, 10**6), st.integers(1, 5000))
def test_page_size_settles(row_bytes: int, first: int) -> None:
    size = PageSize(1 << 20, first)
    for _ in range(8):
        size.saw(size.rows, size.rows * row_bytes + 20)
    best = min(max((1 << 20) // row_bytes, 1), ROWS_MAX)
    assert 0.9 * best - 1 <= size.rows <= best


def test_page_size_shrinks_at_once_and_grows_by_steps() -> None:
    size = PageSize(1 << 20, 500)
    size.saw(500, 5000)
    assert size.rows == 4000
    size.saw(4000, 40 << 20)
    assert size.rows == 100
    size.saw(0, 30)
    assert size.rows == 100
    size.saw(1, 10)
    assert size.rows == 100


def test_a_brake_is_released_more_slowly_after_each_early_release() -> None:
    brake = Brake()
    assert brake.least(1000) == 1000
    pages = []
    for _ in range(7):
        brake.too_much(brake.least(1000))
        assert brake.least(1000) == 500
        pages.append(0)
        while brake.rows:
            brake.good(1000)
            pages[-1] += 1
    assert pages == [PATIENCE, 16, 64, 256, PATIENCE_MAX, PATIENCE_MAX, PATIENCE_MAX]


def test_several_time_outs_at_once_count_as_one() -> None:
    brake = Brake()
    for rows in (500, 250, 125):
        brake.too_much(brake.least(1000))
        assert brake.rows == rows
    for _ in range(3 * PATIENCE):
        assert brake.rows
        brake.good(1000)
    assert not brake.rows


def test_a_page_size_that_worked_is_retried_once() -> None:
    brake = Brake()
    for _ in range(PATIENCE):
        brake.good(1000)
    brake.too_much(1000)
    assert brake.least(1000) == 1000
    brake.too_much(1000)
    assert brake.least(1000) == 500


@given(st.integers(1, 10**6))
def test_a_brake_keeps_a_minimum_of_rows(rows: int) -> None:
    brake = Brake()
    for _ in range(30):
        brake.too_much(brake.least(rows))
    assert brake.least(rows) == min(rows, ROWS_MIN)
    for _ in range(30 * PATIENCE_MAX):
        brake.good(rows)
    assert brake.least(rows) == rows

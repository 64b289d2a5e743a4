"""A connection's window: how it grows and shrinks, and how it treats invalid answers."""

from __future__ import annotations

import numpy as np
import pytest

from ringhaul.cql.frames import FrameError
from ringhaul.dataplane import latency
from ringhaul.dataplane import window as module
from ringhaul.dataplane.window import (
    BLOCK_REQUESTS,
    FAST_S,
    HOLD_S,
    LIMIT_FIRST,
    LIMIT_FLOOR,
    SLOW_S,
    Window,
    WindowStats,
)

MIB = 2**20


def window(requests_max: int = 1024, bytes_max: int = 8 * MIB) -> Window[str]:
    """Return the window of a new connection to a near server."""
    made: Window[str] = Window(requests_max=requests_max, bytes_max=bytes_max)
    made.distance.saw(0.001, 0.0)
    return made


def fill(win: Window[str], now_s: float) -> list[np.ndarray]:
    """Send until the window is full; return the stream ids of each block."""
    sent = []
    while room := win.room():
        sent.append(win.sent("w", 0, room, room * 100, now_s))
    return sent


def round_trip(win: Window[str], now_s: float, took_s: float) -> float:
    """Fill the window, answer everything `took_s` later, and return that time."""
    sent = fill(win, now_s)
    for streams in sent:
        win.answered(streams.astype(np.int16), now_s + took_s, now_s + took_s)
    return now_s + took_s


def test_the_limit_doubles_until_the_first_sign_of_a_queue() -> None:
    # Given a new window to a server next door
    win, now_s = window(4096), 0.0
    limits = [win.limit]
    # When round trip after round trip is quick
    for _ in range(3):
        now_s = round_trip(win, now_s, FAST_S / 2)
        limits.append(win.limit)
    # Then its bound doubles each time
    assert limits == [LIMIT_FIRST * 2**n for n in range(4)]
    # When a whole round trip waits, then the start is over: 64 requests took as long already
    for _ in range(2):
        now_s = round_trip(win, now_s, FAST_S * 1.2)
    assert (win.limit, win.stats.shrunk) == (LIMIT_FIRST, 0)
    # And from then on it grows by a block, once the hold is over
    now_s += HOLD_S
    for n in range(1, 4):
        now_s = round_trip(win, now_s, FAST_S / 2)
        assert win.limit == LIMIT_FIRST + BLOCK_REQUESTS * n


def test_its_ceiling_holds() -> None:
    win, now_s = window(), 0.0
    for _ in range(14):
        now_s = round_trip(win, now_s, FAST_S / 2)
    assert (win.stats.limit_min, win.stats.limit_max, win.stats.shrunk) == (LIMIT_FIRST, 1024, 0)


@pytest.mark.parametrize(("distance_s", "ceiling"), [(0.0, 1024), (0.02, 3072), (0.2, 16384)])
def test_the_default_ceiling_rises_with_the_distance(distance_s: float, ceiling: int) -> None:
    win: Window[str] = Window(requests_max=1024, bytes_max=64 * MIB, far_max=10**6)
    win.distance.saw(distance_s, 0.0)
    now_s = 0.0
    for _ in range(30):
        now_s = round_trip(win, now_s, distance_s + FAST_S / 2)
    assert win.limit == ceiling


def test_distance_is_not_slowness() -> None:
    # Given a server so far that each answer takes longer than a queue should
    win: Window[str] = Window(requests_max=1024, bytes_max=64 * MIB, far_max=16384)
    win.distance.saw(0.55, 0.0)
    now_s = 0.0
    for _ in range(3):
        now_s = round_trip(win, now_s, 0.55 + FAST_S / 2)
    assert (win.limit, win.stats.shrunk) == (8 * LIMIT_FIRST, 0)
    # When its queue is long, then the window shrinks
    now_s = round_trip(win, now_s, 0.56 + SLOW_S)
    assert win.stats.shrunk == 1


def test_a_cap_does_not_forget_what_the_window_has_learnt() -> None:
    win, now_s = window(), 0.0
    for _ in range(4):
        now_s = round_trip(win, now_s, 0.001)
    win.cap(10)
    for _ in range(4):
        now_s = round_trip(win, now_s, 0.001)
    assert win.limit == 10
    win.cap(10**6)
    assert win.limit == 1024


def test_a_window_that_is_never_full_stays_as_it_is() -> None:
    win = window()
    for now_s in range(50):
        streams = win.sent("w", 0, 64, 100, now_s)
        win.answered(streams.astype(np.int16), now_s + 0.001, now_s + 0.001)
    assert win.limit == LIMIT_FIRST


def test_answers_that_are_neither_quick_nor_slow_change_nothing() -> None:
    win, now_s = window(), 0.0
    for _ in range(20):
        now_s = round_trip(win, now_s, (FAST_S + SLOW_S) / 2)
    assert win.limit == LIMIT_FIRST
    assert win.stats.shrunk == 0


def test_slow_answers_shrink_it_once_per_round_trip() -> None:
    win = window()
    # When four blocks of one round trip all come slowly
    now_s = round_trip(win, 0.0, SLOW_S * 1.5)
    # Then the bound shrank by a quarter, once
    assert (win.limit, win.stats.shrunk) == (192, 1)
    # When slow answers continue, it shrinks down to the floor and no further
    for _ in range(20):
        now_s = round_trip(win, now_s, SLOW_S * 1.5)
    assert win.limit == win.stats.limit_min == LIMIT_FLOOR


def test_time_in_which_the_client_did_not_look_is_not_latency() -> None:
    # Given requests sent at 0, and a client that polled at 0.01 and then was busy for 30 s
    win = window()
    sent = fill(win, 0.0)
    for streams in sent:
        win.answered(streams.astype(np.int16), 30.0, 0.01)
    # Then the window does not shrink
    assert (win.limit, win.stats.shrunk) == (LIMIT_FIRST, 0)
    # But the reported latency is the one that the client saw
    assert sum(win.stats.latencies.values()) == LIMIT_FIRST
    assert min(win.stats.latencies) >= latency.bucket(29_000_000)


def test_overload_halves_it_and_pauses_its_growth() -> None:
    win = window()
    # When the server refuses requests quickly, again and again
    now_s = 100.0
    for _ in range(4):
        for streams in fill(win, now_s):
            for stream in streams.tolist():
                win.answered_one(stream, now_s + 0.001, now_s)
                win.overloaded(now_s + 0.001)
        now_s += 0.002
    # Then it shrank once, and the quick refusals did not let it grow
    assert (win.limit, win.stats.shrunk) == (LIMIT_FIRST // 2, 1)
    # When the refusals continue, it shrinks to the floor
    for _ in range(8):
        now_s += SLOW_S
        win.overloaded(now_s)
    assert win.limit == LIMIT_FLOOR
    # And when the refusals end it grows again, after a pause
    limits = []
    end_s = now_s + HOLD_S
    while now_s < end_s + 1:
        now_s = round_trip(win, now_s, 0.01)
        limits.append((now_s < end_s - 0.001, win.limit))
    assert {limit for early, limit in limits if early} == {LIMIT_FLOOR}
    assert limits[-1][1] == 1024


def test_the_byte_bound_is_exceeded_by_one_request_at_most() -> None:
    win = window(bytes_max=1000)
    assert win.bytes_room == 1000
    win.sent("w", 0, 3, 900, 0.0)
    assert (win.bytes_room, win.room()) == (100, BLOCK_REQUESTS)
    big = win.sent("w", 3, 1, 5000, 0.0)
    assert (win.bytes_room, win.room()) == (0, 0)
    win.answered(big.astype(np.int16), 0.1, 0.1)
    assert win.bytes_room == 100


def test_one_request_larger_than_the_bound_goes_alone() -> None:
    win = window(bytes_max=10)
    assert win.room() > 0
    win.sent("w", 0, 1, 5000, 0.0)
    assert win.room() == 0


def test_little_room_stays_unused_until_it_fits_a_block() -> None:
    win = window()
    sent = fill(win, 0.0)
    assert win.requests == LIMIT_FIRST
    win.answered(sent[0][: BLOCK_REQUESTS // 2].astype(np.int16), 0.1, 0.1)
    assert win.room() == 0
    win.answered(sent[0][BLOCK_REQUESTS // 2 :].astype(np.int16), 0.1, 0.1)
    assert win.room() == BLOCK_REQUESTS


@pytest.mark.parametrize("requests_max", [1, 2, 31, 32, 33, 100])
def test_small_ceilings_hold(requests_max: int) -> None:
    win, now_s = window(requests_max), 0.0
    for _ in range(30):
        now_s = round_trip(win, now_s, 0.001)
        assert win.limit == requests_max
    for _ in range(30):
        now_s = round_trip(win, now_s, SLOW_S * 2)
    assert win.limit == min(requests_max, LIMIT_FLOOR)
    assert fill(win, now_s), "there is always room in an empty window"


def test_the_ceiling_is_what_stream_ids_allow() -> None:
    win = window(10**6)
    now_s = 0.0
    for _ in range(400):
        now_s = round_trip(win, now_s, 0.001)
    assert win.limit == module.BLOCKS_MAX * BLOCK_REQUESTS
    streams = np.concatenate(fill(win, now_s))
    assert sorted(streams.tolist()) == list(range(win.limit))


def test_invalid_answers_change_nothing() -> None:
    # Given a window with two blocks; one request of the second was answered
    win = window()
    first = win.sent("a", 0, 64, 100, 0.0)
    second = win.sent("b", 10, 64, 100, 0.0)
    win.answered(second[5:6].astype(np.int16), 0.1, 0.1)

    def left() -> dict[str, list[int]]:
        begins = {"a": (first[0], 0), "b": (second[0], 10)}
        return {
            work: [int(i) for i in range(64) if win._waiting[begin + i]]
            for work, (begin, _) in begins.items()
        }

    before = left()
    answers: list[list[int]] = [
        [int(first[0]), int(second[5])],  # one was answered already
        [int(first[0]), int(first[1]), int(first[0])],  # one came twice
        [int(first[0]), 9000],  # one was never sent
        [-1, int(first[0])],
        [32767, int(first[0])],
    ]
    for streams in answers:
        with pytest.raises(FrameError):
            win.answered(np.array(streams, np.int16), 0.1, 0.1)
        # Then the unanswered requests stay so: the connection ends, and they are sent again
        assert left() == before
        assert win.requests == 127
    for stream in (int(second[5]), 9000, 16384, 32767, -1):
        with pytest.raises(FrameError, match="not pending"):
            win.answered_one(stream, 0.1, 0.1)
    returned = {r.work: r.indexes.tolist() for r in win.lost()}
    assert returned == {"a": list(range(64)), "b": [10 + i for i in range(64) if i != 5]}


def test_a_lost_connection_resets_the_window() -> None:
    win, now_s = window(), 0.0
    for _ in range(5):
        now_s = round_trip(win, now_s, 0.001)
    fill(win, now_s)
    win.lost()
    assert (win.requests, win.bytes_count, win.limit) == (0, 0, LIMIT_FIRST)
    assert win.oldest_sent_at_s() is None
    assert win.lost() == []
    with pytest.raises(FrameError):
        win.answered(np.zeros(1, np.int16), now_s, now_s)


def test_it_reports_the_owners_of_unanswered_requests() -> None:
    win = window()
    first = win.sent("a", 0, 64, 6400, 0.0)
    win.sent("b", 0, 64, 6400, 0.0)
    win.answered(first[1:].astype(np.int16), 0.1, 0.1)
    assert sorted(win.works()) == ["a", "b"]
    win.answered(first[:1].astype(np.int16), 0.1, 0.1)
    assert list(win.works()) == ["b"]
    win.lost()
    assert not list(win.works())


def test_the_oldest_block_is_the_first_unanswered_one() -> None:
    win = window()
    assert win.oldest_sent_at_s() is None
    first = win.sent("w", 0, 2, 10, 1.0)
    second = win.sent("w", 2, 2, 10, 2.0)
    win.answered(first[:1].astype(np.int16), 3.0, 3.0)
    assert win.oldest_sent_at_s() == 1.0
    win.answered(first[1:].astype(np.int16), 3.0, 3.0)
    assert win.oldest_sent_at_s() == 2.0
    win.answered(second.astype(np.int16), 3.0, 3.0)
    assert win.oldest_sent_at_s() is None


def test_a_unit_that_borrows_a_window_gets_its_bound() -> None:
    win = window()
    round_trip(win, 0.0, 0.001)
    mine = WindowStats()
    win.note_in(mine)
    assert (mine.limit_min, mine.limit_max) == (512, 512)
    win.overloaded(10.0)
    assert (mine.limit_min, mine.limit_max, mine.shrunk) == (256, 512, 1)


def test_a_unit_with_other_bounds_starts_afresh_within_them() -> None:
    win = window()
    now_s = 0.0
    for _ in range(3):
        now_s = round_trip(win, now_s, 0.001)
    assert win.limit > 256
    win.bound(40, 40)
    win.note_in(WindowStats())
    assert win.limit == 40
    for _ in range(5):
        now_s = round_trip(win, now_s, 0.001)
    assert win.limit == 40 == win.stats.limit_max
    # Back to its own: it doubles again, as at the start
    win.bound(1024, 0)
    win.note_in(WindowStats())
    assert win.limit == 256
    round_trip(win, now_s, 0.001)
    assert win.limit == 512


def test_equal_bounds_change_nothing() -> None:
    win = window()
    round_trip(win, 0.0, 0.001)
    win.bound(1024, 0)
    assert win.limit == 512

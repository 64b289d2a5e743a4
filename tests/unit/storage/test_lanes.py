"""Parts of a file read side by side: which requests are sent, when, and how much is kept."""

import random
from collections.abc import Callable

import pytest

from ringhaul.storage.lanes import HOLE_BYTES, LANES_AHEAD, LaneReader, join_lanes

DATA = random.Random(1).randbytes(60_000)


class Rest:
    """The file outside of the lanes; counts the reads."""

    def __init__(self) -> None:
        self.at = self.reads = 0

    def read(self, size: int) -> bytes:
        self.reads += 1
        return DATA[self.at : self.at + size]

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (len(DATA) if whence == 2 else 0)
        return self.at


class Request:
    """A request; `server` counts how often one is waited for."""

    def __init__(self, server: "Server", start: int, end: int) -> None:
        self.server, self.start, self.end = server, start, end
        self.read = server.read

    def data(self) -> bytes:
        self.server.ahead -= 1
        self.server.waits += self.read == self.server.read
        return DATA[self.start : self.end]


class Server:
    """Counts requests. `read`: the number of the current read, set by tests."""

    def __init__(self) -> None:
        self.requested: list[tuple[int, int]] = []
        self.ahead = self.ahead_max = self.read = 0
        #: Pieces that were waited for by the read that requested them.
        self.waits = 0

    def ask(self, start: int, end: int) -> Request:
        self.requested.append((start, end))
        self.ahead += 1
        self.ahead_max = max(self.ahead, self.ahead_max)
        return Request(self, start, end)


def read_side_by_side(
    lanes: list[tuple[int, int]], place: Callable[[int, float], float], piece_bytes: int
) -> Server:
    """Read all lanes in 100 rounds; `place(lane, share of rounds)`: share read so far."""
    server, rest = Server(), Rest()
    reader = LaneReader(server.ask, rest, lanes, piece_bytes)
    done = [start for start, _ in lanes]
    for step in range(1, 101):
        for number, (start, end) in enumerate(lanes):
            until = start + round((end - start) * place(number, step / 100))
            while done[number] < until:
                server.read += 1
                reader.seek(done[number])
                data = reader.read(until - done[number])
                assert data == DATA[done[number] : done[number] + len(data)] and data
                done[number] += len(data)
    assert sorted(server.requested)[0][0] == lanes[0][0] and rest.reads == 0
    assert sum(end - start for start, end in server.requested) == sum(b - a for a, b in lanes)
    assert server.ahead == 0 and server.ahead_max <= LANES_AHEAD + 1
    return server


TWENTY = [(n * 3000, n * 3000 + 3000) for n in range(20)]


def test_lanes_at_one_pace_are_requested_in_time() -> None:
    server = read_side_by_side(TWENTY, lambda _, share: share, 500)
    assert len(server.requested) == 20 * 6 and server.waits == 1
    assert server.ahead_max == LANES_AHEAD + 1


def test_a_single_lane_is_read_ahead() -> None:
    server = read_side_by_side([(100, 50_100)], lambda _, share: share, 1000)
    assert len(server.requested) == 50 and server.waits == 1


def test_a_lane_that_is_read_late_does_not_block_the_others() -> None:
    late = lambda number, share: share if number else max(0.0, share * 10 - 9)  # noqa: E731
    server = read_side_by_side(TWENTY, late, 500)
    assert server.waits < 12


def test_pieces_of_a_lane_are_of_one_size() -> None:
    server = read_side_by_side([(0, 1001)], lambda _, share: share, 500)
    assert server.requested == [(0, 334), (334, 668), (668, 1001)]


def test_reads_at_any_offset_in_any_order() -> None:
    chance = random.Random(2)
    for lanes in ([(10, 20_000), (30_000, 59_000)], [(40_000, 50_000), (0, 40_000)]):
        server = Server()
        reader = LaneReader(server.ask, Rest(), lanes, 700)
        for _ in range(2000):
            at = chance.randrange(len(DATA)) if chance.random() < 0.3 else reader.tell()
            size = chance.randrange(1, 3000)
            assert reader.seek(at) == at == reader.tell()
            data = reader.read(size)
            assert data == DATA[at : at + len(data)] and (data or at >= len(DATA))
        assert reader.seek(-5, 2) == len(DATA) - 5 and reader.seek(2, 1) == len(DATA) - 3
        assert reader.read(10) == DATA[-3:] and reader.read(1) == b""


def test_an_error_of_a_prefetch_is_raised_in_its_own_lane() -> None:
    class Broken(Request):
        def data(self) -> bytes:
            if self.start:
                raise OSError("gone")
            return super().data()

    server = Server()
    reader = LaneReader(lambda a, b: Broken(server, a, b), Rest(), [(0, 400), (400, 800)], 400)
    assert reader.read(400) == DATA[:400]
    with pytest.raises(OSError, match="gone"):
        reader.read(1)


@pytest.mark.parametrize(
    "lanes, joined",
    [
        ([(0, 10), (10, 20), (20, 30)], [(0, 20), (20, 30)]),
        ([(20, 30), (10, 20), (0, 10)], [(20, 30), (0, 20)]),
        ([(0, 25), (25, 26), (26, 27)], [(0, 25), (25, 27)]),
        ([(0, 5), (12, 20)], [(0, 20)]),
        ([(0, 5), (15, 21)], [(0, 5), (15, 21)]),
        ([], []),
    ],
)
def test_neighbours_are_one_request(
    lanes: list[tuple[int, int]], joined: list[tuple[int, int]]
) -> None:
    assert join_lanes(lanes, 20) == joined


def test_a_large_gap_is_not_read() -> None:
    far = [(0, 1), (HOLE_BYTES + 2, HOLE_BYTES + 3)]
    assert join_lanes(far, 1 << 30) == far

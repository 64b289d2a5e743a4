"""A window against a dict as model: every request returns once, no bound is exceeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ringhaul.cql.frames import FrameError
from ringhaul.dataplane.window import (
    BLOCK_REQUESTS,
    LIMIT_FLOOR,
    Window,
)


class WindowMachine(RuleBasedStateMachine):
    """Requests are (work, item) pairs; the model knows the stream id of each unanswered one."""

    @initialize(
        requests_max=st.sampled_from([1, 5, 32, 100, 300, 1024]),
        bytes_max=st.sampled_from([1, 1000, 20_000, 10**7]),
    )
    def begin(self, requests_max: int, bytes_max: int) -> None:
        self.window: Window[int] = Window(requests_max=requests_max, bytes_max=bytes_max)
        self.requests_max, self.bytes_max = requests_max, bytes_max
        self.now_s = self.looked_at_s = 1000.0
        self.next_work = 0
        #: stream id -> (work, item)
        self.waiting: dict[int, tuple[int, int]] = {}
        #: work -> (bytes, time sent); gone when all of its requests are answered
        self.blocks: dict[int, tuple[int, float]] = {}
        self.largest = 0
        self.outcomes: dict[tuple[int, int], int] = {}

    def settle(self, stream: int) -> tuple[int, int]:
        """Remove a request from the model; it must not be seen again."""
        request = self.waiting.pop(stream)
        self.outcomes[request] = self.outcomes.get(request, 0) + 1
        if all(work != request[0] for work, _ in self.waiting.values()):
            del self.blocks[request[0]]
        return request

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.03, 0.2, 0.6, 3.0]), looked=st.booleans())
    def time_passes(self, seconds: float, looked: bool) -> None:
        self.now_s += seconds
        if looked:
            self.looked_at_s = self.now_s

    @rule(
        share=st.floats(0.01, 1),
        each_bytes=st.integers(1, 300),
        first=st.integers(0, 10**6),
        rounds=st.integers(1, 6),
    )
    def send(self, share: float, each_bytes: int, first: int, rounds: int) -> None:
        for _ in range(rounds):
            room = self.window.room()
            assert 0 <= room <= BLOCK_REQUESTS
            if not room:
                return
            # Like the writer: as many as fit in the bytes, at least one
            count = max(1, min(int(room * share), self.window.bytes_room // each_bytes))
            work, self.next_work = self.next_work, self.next_work + 1
            size = count * each_bytes
            streams = self.window.sent(work, first, count, size, self.now_s).tolist()
            # Then the ids are unused, and below the one that is reserved for control
            assert len(set(streams)) == count
            assert not set(streams) & self.waiting.keys()
            assert all(0 <= stream < 32767 for stream in streams)
            self.blocks[work] = (size, self.now_s)
            self.largest = max(self.largest, each_bytes)
            self.waiting |= {stream: (work, first + i) for i, stream in enumerate(streams)}

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), share=st.floats(0, 1))
    def answers_come(self, data: st.DataObject, share: float) -> None:
        streams = data.draw(st.permutations(sorted(self.waiting)))
        streams = streams[: max(1, int(len(streams) * share))]
        self.window.answered(np.array(streams, np.int16), self.now_s, self.looked_at_s)
        for stream in streams:
            self.settle(stream)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), overloaded=st.booleans())
    def an_error_comes(self, data: st.DataObject, overloaded: bool) -> None:
        stream = data.draw(st.sampled_from(sorted(self.waiting)))
        found = self.window.answered_one(stream, self.now_s, self.looked_at_s)
        assert found == self.settle(stream)
        if overloaded:
            limit = self.window.limit
            self.window.overloaded(self.now_s)
            assert self.window.limit <= limit

    @rule(data=st.data(), stream=st.integers(-(2**15), 2**15 - 1))
    def an_unexpected_answer_comes(self, data: st.DataObject, stream: int) -> None:
        """Unknown, duplicate or late; alone or among valid ones. Nothing changes."""
        good = data.draw(
            st.lists(st.sampled_from(sorted(self.waiting)), unique=True, max_size=5)
            if self.waiting
            else st.just([])
        )
        bad = [stream] if stream not in self.waiting else good[:1]
        if not bad:
            return
        place = data.draw(st.integers(0, len(good)))
        with pytest.raises(FrameError):
            self.window.answered(
                np.array(good[:place] + bad + good[place:], np.int16), self.now_s, self.looked_at_s
            )
        if stream not in self.waiting:
            with pytest.raises(FrameError):
                self.window.answered_one(stream, self.now_s, self.looked_at_s)

    @rule()
    def the_connection_is_lost(self) -> None:
        returned = self.window.lost()
        back = [(r.work, int(index)) for r in returned for index in r.indexes]
        assert sorted(back) == sorted(self.waiting.values())
        for stream in sorted(self.waiting):
            self.settle(stream)
        assert self.window.room() > 0

    @invariant()
    def nothing_comes_back_twice(self) -> None:
        assert all(count == 1 for count in self.outcomes.values())

    @invariant()
    def the_counts_are_those_of_the_model(self) -> None:
        assert self.window.requests == len(self.waiting)
        assert self.window.bytes_count == sum(size for size, _ in self.blocks.values())
        oldest = min((sent for _, sent in self.blocks.values()), default=None)
        assert self.window.oldest_sent_at_s() == oldest

    @invariant()
    def no_bound_is_exceeded(self) -> None:
        assert self.window.bytes_count < self.bytes_max + max(self.largest, 1)
        ceiling = self.requests_max
        assert min(LIMIT_FLOOR, ceiling) <= self.window.limit <= ceiling
        # A bound that shrank is exceeded only by what was sent before
        assert len(self.waiting) <= ceiling
        if self.window.requests >= self.window.limit:
            assert self.window.room() == 0
        assert self.window.requests + self.window.room() <= max(
            self.window.limit, self.window.requests
        )

    @invariant()
    def an_empty_window_has_room(self) -> None:
        if not self.waiting:
            assert self.window.room() > 0


WindowMachine.TestCase.settings = settings(deadline=None, stateful_step_count=60)
test_a_window_is_its_model = WindowMachine.TestCase

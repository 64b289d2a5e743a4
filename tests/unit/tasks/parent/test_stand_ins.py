"""Processes that stand in for those that wait for a rate limit: how many, when, and their end."""

from __future__ import annotations

import pytest

from tasks.parent.stand_ins import LOOK_S, STAY_S, StandIns


class FakePool:
    """A pool that counts its processes, of which `busy` have a task."""

    def __init__(self, processes: int) -> None:
        self.processes = self.busy = processes
        self.missing = 0

    def grow(self, n: int) -> None:
        self.missing += n

    def maintain_pool(self) -> None:
        self.processes += self.missing
        self.missing = 0

    def shrink(self, n: int) -> None:
        if self.busy + n > self.processes:
            raise ValueError("all processes are busy")
        self.processes -= n


class Worker:
    """A worker of two processes, whose waits and messages a test sets."""

    def __init__(self, slots: int = 2, most: int = 2) -> None:
        self.now_s = 100.0
        self.waits = dict.fromkeys(range(slots), 0.0)
        self.messages = False
        self.fetched = slots
        self.pool = FakePool(slots)
        self.stand_ins = StandIns(
            most,
            waits=lambda: dict(self.waits),
            messages_wait=lambda: self.messages,
            now=lambda: self.now_s,
        )
        self.stand_ins.look(self.pool, self.resize)

    def pass_time(self, *held: int, seconds: float = LOOK_S, share: float = 0.95) -> int:
        """Let the processes `held` wait for their limit, look, and return how many there are."""
        self.now_s += seconds
        for pid in held:
            self.waits[pid] = self.waits.get(pid, 0.0) + share * seconds
        self.stand_ins.look(self.pool, self.resize)
        return self.pool.processes

    def resize(self, change: int) -> None:
        self.fetched += change


def test_a_process_stands_in_for_each_that_only_waits_while_messages_wait() -> None:
    worker = Worker()
    assert worker.pass_time(0) == 2  # nothing else to do
    worker.messages = True
    assert worker.pass_time(0) == 3
    assert worker.pass_time(0) == 3
    assert worker.pass_time(0, 1) == 4
    worker.pool.busy = 4
    worker.waits |= {2: 0.0, 3: 0.0}
    worker.pass_time(0, 1)
    assert worker.pass_time(0, 1, 2, 3) == 4  # twice the slots at most
    assert worker.fetched == 4


@pytest.mark.parametrize("most", [0, 1])
def test_there_are_no_more_than_the_setting_allows(most: int) -> None:
    worker = Worker(most=most)
    worker.messages = True
    assert worker.pass_time(0, 1) == 2 + most
    assert worker.pass_time(0, 1) == 2 + most


def test_a_process_that_works_most_of_the_time_keeps_its_slot() -> None:
    worker = Worker()
    worker.messages = True
    assert worker.pass_time(0, 1, share=0.7) == 2


def test_a_new_process_is_not_held_by_what_its_predecessor_waited() -> None:
    worker = Worker()
    worker.messages = True
    worker.waits = {7: 500.0}
    assert worker.pass_time() == 2


def test_what_is_not_needed_ends_after_a_while_once_it_has_no_task() -> None:
    worker = Worker()
    worker.messages = True
    assert worker.pass_time(0, 1) == 4
    worker.messages = False
    worker.pool.busy = 3
    assert worker.pass_time(0, seconds=STAY_S - 1) == 4
    assert worker.pass_time(0, 1) == 4  # needed again
    assert worker.pass_time(0, seconds=STAY_S - 1) == 4
    assert worker.pass_time(0) == 3
    assert worker.pass_time() == 3  # the other has a task
    worker.pool.busy = 0
    assert worker.pass_time() == 2
    assert (worker.fetched, worker.stand_ins.count) == (2, 0)

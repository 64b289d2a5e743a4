"""Sessions send what one thread has paid for, and stop when it does."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ringhaul.streaming.allowance import Allowance, unlimited

WAIT_S = 30.0


def test_one_thread_pays_for_all_sessions() -> None:
    paid: list[tuple[int, int]] = []

    def spend(bytes_max: int) -> int:
        count = min(bytes_max, 7)
        paid.append((threading.get_ident(), count))
        return count

    allowance = Allowance(spend, 3)

    def send(size: int) -> int:
        sent = 0
        try:
            while sent < size:
                sent += allowance.take(size - sent)
        finally:
            allowance.leave()
        return sent

    with ThreadPoolExecutor(3) as threads:
        sizes = [100, 0, 33]
        sending = [threads.submit(send, size) for size in sizes]
        while allowance.serve(WAIT_S):
            pass
        assert [future.result(WAIT_S) for future in sending] == sizes
    assert sum(count for _, count in paid) == 133
    assert {thread for thread, _ in paid} == {threading.get_ident()}


def test_an_error_of_the_payer_ends_sessions_that_wait() -> None:
    def spend(bytes_max: int) -> int:
        raise KeyError("stop")

    allowance = Allowance(spend, 1)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(allowance.take, 10)
        with pytest.raises(KeyError, match="stop"):
            while True:
                allowance.serve(WAIT_S)
        allowance.end()
        with pytest.raises(ConnectionAbortedError, match="was aborted"):
            waiting.result(WAIT_S)


def test_the_payer_looks_up_now_and_then() -> None:
    allowance = Allowance(unlimited, 1)
    assert allowance.serve(0.01)
    allowance.leave()
    assert not allowance.serve(WAIT_S)

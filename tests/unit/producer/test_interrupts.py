"""Signals are collected while a command has more to do; the third one ends it."""

from __future__ import annotations

import signal

import pytest

from producer.interrupts import taking_interrupts

TAKEN = (signal.SIGINT, signal.SIGTERM)


def test_signals_are_collected_and_told() -> None:
    before = [signal.getsignal(number) for number in TAKEN]
    seen: list[list[int]] = []
    with taking_interrupts(lambda: seen.append(list(received))) as received:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert received == [signal.SIGTERM, signal.SIGINT]
    assert seen == [received[:1], received]
    assert [signal.getsignal(number) for number in TAKEN] == before


def test_the_third_signal_ends_the_command() -> None:
    before = [signal.getsignal(number) for number in TAKEN]
    with pytest.raises(KeyboardInterrupt), taking_interrupts() as received:
        for _ in range(4):
            signal.raise_signal(signal.SIGTERM)
    assert len(received) == 3
    assert [signal.getsignal(number) for number in TAKEN] == before

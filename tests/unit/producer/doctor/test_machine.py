"""Judgements of what a host gives to processes."""

from __future__ import annotations

import pytest

from producer.doctor.finding import State
from producer.doctor.machine import (
    judge_descriptors,
    judge_folders,
    judge_time_service,
)
from tasks.host.report import Folder, Machine


@pytest.mark.parametrize(
    ("limit", "state"),
    [
        (None, State.OK),
        (20_000, State.OK),
        (1024, State.OK),
        (1023, State.WARNING),
        (256, State.WARNING),
        (255, State.FAULT),
    ],
)
def test_few_descriptors_are_found(limit: int | None, state: State) -> None:
    found = judge_descriptors(Machine(descriptors=limit))
    assert found.state is state
    assert ("ulimit -n" in found.advice) == (state is not State.OK)


@pytest.mark.parametrize(
    ("free_bytes", "error", "state", "words"),
    [
        (2**40, "", State.OK, "1.0 TiB free"),
        (2**30, "", State.OK, "1.0 GiB free"),
        (2**30 - 1, "", State.WARNING, "of room left"),
        (2**20, "", State.FAULT, "1.0 MiB of room left"),
        (None, "", State.UNCHECKED, "not known"),
        (2**40, "no right", State.FAULT, "cannot be written: no right"),
    ],
)
def test_a_folder_needs_room_and_rights(
    free_bytes: int | None, error: str, state: State, words: str
) -> None:
    folder = Folder(role="state", path="/s", free_bytes=free_bytes, error=error)
    found = judge_folders(Machine(folders=(folder,)))
    assert found.state is state and words in found.text
    assert ("state_dir" in found.advice) == (state in (State.FAULT, State.WARNING))


def test_the_worst_folder_decides() -> None:
    fine = Folder(role="state", path="/s", free_bytes=2**40)
    full = Folder(role="spill", path="/p", free_bytes=0)
    found = judge_folders(Machine(folders=(fine, full)))
    assert found.state is State.FAULT
    assert "/p" in found.text and "/s" not in found.text and "query.spill_dir" in found.advice


@pytest.mark.parametrize(
    ("synchronised", "one_clock", "state"),
    [
        (True, False, State.OK),
        (False, False, State.WARNING),
        (False, True, State.OK),
        (None, False, State.UNCHECKED),
    ],
)
def test_the_time_service_matters_where_there_are_several_clocks(
    synchronised: bool | None, one_clock: bool, state: State
) -> None:
    found = judge_time_service(Machine(synchronised=synchronised), one_clock=one_clock)
    assert found.state is state
    assert ("chrony" in found.advice) == (state is State.WARNING)

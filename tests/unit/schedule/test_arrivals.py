"""Which files have arrived completely and are not loaded yet."""

from dataclasses import replace

import pytest

from ringhaul.schedule.arrivals import (
    ALONE,
    FAILED,
    LOADED,
    Arrived,
    Listed,
    Remembered,
    Settling,
    batch,
    candidates,
    is_alone,
    remember,
    same_content,
)

A, B = Listed("/in/a", 10, "t1"), Listed("/in/b", 20, "t1")


def known(file: Listed = A, state: str = LOADED, checksum: str = "c1") -> Remembered:
    return Remembered(
        size_bytes=file.size_bytes,
        stamp=file.stamp,
        checksum=checksum,
        state=state,
        run="20261120T013000Z",
        ms=1,
    )


def test_a_file_is_taken_when_it_was_unchanged_for_long_enough() -> None:
    settling = Settling(1000)
    assert settling.look([A], 0) == []
    assert settling.look([A, B], 999) == []
    assert settling.look([A, B], 1000) == [A]
    assert settling.look([A, B], 1999) == [A, B]


@pytest.mark.parametrize("changed", [A._replace(size_bytes=11), A._replace(stamp="t2")])
def test_a_file_that_still_changes_waits(changed: Listed) -> None:
    settling = Settling(1000)
    settling.look([A], 0)
    assert settling.look([changed], 1000) == []
    assert settling.look([changed], 1999) == []
    assert settling.look([changed], 2000) == [changed]


def test_a_file_that_vanished_and_came_back_waits_again() -> None:
    settling = Settling(1000)
    settling.look([A], 0)
    settling.look([], 500)
    assert settling.look([A], 1000) == []


def test_one_sighting_is_never_enough() -> None:
    settling = Settling(0)
    assert settling.look([A], 5_000_000) == []
    assert settling.look([A], 5_000_000) == [A]


def test_unchanged_files_are_not_loaded_again() -> None:
    assert candidates([A, B], {}) == [A, B]
    assert candidates([A, B], {A.path: known()}) == [B]
    assert candidates([A._replace(stamp="t2")], {A.path: known()}) == [A._replace(stamp="t2")]
    assert candidates([A._replace(size_bytes=9)], {A.path: known()}) != []


def test_a_file_that_failed_waits_for_a_change_or_a_retry() -> None:
    failed = {A.path: known(state=FAILED)}
    assert candidates([A], failed) == []
    assert candidates([A], failed, failed_too=True) == [A]
    assert candidates([A._replace(stamp="t2")], failed) != []


def test_a_file_that_was_only_touched_is_unchanged() -> None:
    touched = A._replace(stamp="t2")
    assert same_content(known(), touched, "c1")
    assert not same_content(known(), touched, "c2")
    assert not same_content(None, touched, "c1")
    assert not same_content(known(state=ALONE), touched, "c1"), "it was never loaded"
    assert not same_content(known(), A, "c1"), (
        "size and time are equal: the checksum is not compared"
    )


def test_files_that_could_not_be_loaded_together_are_tried_alone() -> None:
    one = Arrived(*A, checksum="c1")
    two = Arrived(*B, checksum="c2")
    loaded = remember([one, two], "r", 5, loaded=True)
    assert {path: file.state for path, file in loaded.items()} == {A.path: LOADED, B.path: LOADED}
    assert loaded[A.path].is_of(A) and loaded[A.path].checksum == "c1"
    failed = remember([one, two], "r", 5, loaded=False)
    assert {file.state for file in failed.values()} == {ALONE}
    assert remember([one], "r", 5, loaded=False)[A.path].state == FAILED
    # They stay candidates, one at a time and after new files
    new = Listed("/in/z", 1, "t1")
    assert candidates([A, B, new], failed) == [A, B, new]
    assert batch([A, B, new], failed, 10) == [new]
    assert batch([A, B], failed, 10) == [A]


def test_a_batch_is_bounded_and_in_order() -> None:
    assert batch([B, A], {}, 10) == [A, B]
    assert batch([B, A], {}, 1) == [A]
    assert batch([], {}, 10) == []


def test_files_that_are_tried_alone_take_turns() -> None:
    files = {A.path: replace(known(A, ALONE), ms=9), B.path: replace(known(B, ALONE), ms=8)}
    assert batch([A, B], files, 10) == [B]


def test_files_of_both_kinds_take_turns() -> None:
    files = {A.path: known(A, ALONE)}
    assert batch([A, B], files, 10) == [B]
    assert batch([A, B], files, 10, alone_first=True) == [A]
    # A turn without a candidate delays no other file
    assert batch([A], files, 10) == [A]
    assert batch([B], files, 10, alone_first=True) == [B]
    assert [is_alone(file, files) for file in (A, B, A._replace(stamp="t2"))] == [
        *(True, False, False)
    ]


def test_remembered_files_survive_packing() -> None:
    for one in (known(), replace(known(), gone_ms=7)):
        assert Remembered.unpack(one.pack()) == one
    assert len(known(checksum="c" * 64).pack()) < 250

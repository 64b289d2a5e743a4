"""Whether a row or its replicas cause an error that repeats."""

from __future__ import annotations

from ringhaul.dataplane.blame import (
    ALONE_TRIES,
    CONTROL_HOLDS_S,
    PATIENT_TRIES,
    Blame,
    Controlled,
    Ruling,
    Suspect,
)
from ringhaul.dataplane.control import TIMEOUT_S

HOST, REPLICA_SET = "n1", 0


class Clock:
    """A cluster whose control writes all end the same way, `took_s` after they were sent."""

    def __init__(self, took: bool | None, took_s: float = 0.01) -> None:
        self.now_s, self.controls = 100.0, 0
        self._took, self._took_s = took, took_s

    def control(self) -> Controlled:
        self.controls += 1
        self.now_s += self._took_s
        return Controlled(self._took, self.now_s)


def fail(blame: Blame, clock: Clock, before: Suspect | None, row: int) -> Suspect:
    return blame.suspect(before, HOST, REPLICA_SET, row, 1, clock.now_s)


def test_rows_that_wait_for_one_control_write_share_its_outcome() -> None:
    """Three hundred rows fail at once, and no control write gets through: each wave of tries
    waits for one control write, not each of its rows."""
    clock, blame = Clock(False, TIMEOUT_S), Blame(10)
    suspects: list[Suspect | None] = [None] * 300
    rulings: set[Ruling] = set()
    for tries in range(1, PATIENT_TRIES + 1):
        clock.now_s += 2 * CONTROL_HOLDS_S
        waves = clock.controls
        for row, before in enumerate(suspects):
            suspect = suspects[row] = fail(blame, clock, before, row)
            assert suspect.times == tries
            rulings.add(blame.rule(suspect, REPLICA_SET, clock.control))
        assert clock.controls - waves == (tries >= ALONE_TRIES)
    assert rulings == {Ruling.AGAIN, Ruling.CLUSTER}


def fail_until_controlled(blame: Blame, clock: Clock, row: int) -> Suspect:
    """Let a row fail until a control write is made for it, which convicts no row yet."""
    suspect = None
    for _ in range(ALONE_TRIES):
        clock.now_s += 1.0
        suspect = fail(blame, clock, suspect, row)
    assert suspect is not None
    assert blame.rule(suspect, REPLICA_SET, clock.control) is Ruling.AGAIN
    return suspect


def test_a_row_is_convicted_when_it_fails_again_after_a_control_write_was_taken() -> None:
    """At the time of the control write, the replicas may just have recovered."""
    clock, blame = Clock(True), Blame(10)
    suspect = fail_until_controlled(blame, clock, 1)
    clock.now_s += 1.0
    suspect = fail(blame, clock, suspect, 1)
    assert blame.rule(suspect, REPLICA_SET, clock.control) is Ruling.ROW
    assert clock.controls == 1


def test_a_row_that_shares_the_outcome_must_fail_again_too() -> None:
    clock, blame = Clock(True), Blame(10)
    suspects = [fail(blame, clock, None, row) for row in (1, 2)]
    for _ in range(ALONE_TRIES - 1):
        clock.now_s += 1.0
        suspects = [fail(blame, clock, suspects[row - 1], row) for row in (1, 2)]
    assert blame.rule(suspects[0], REPLICA_SET, clock.control) is Ruling.AGAIN
    clock.now_s += CONTROL_HOLDS_S / 2
    assert blame.rule(suspects[1], REPLICA_SET, clock.control) is Ruling.AGAIN
    clock.now_s += 1.0
    for suspect, row in zip(suspects, (1, 2), strict=True):
        again = fail(blame, clock, suspect, row)
        assert blame.rule(again, REPLICA_SET, clock.control) is Ruling.ROW
    assert clock.controls == 1


def test_an_outcome_from_before_a_row_failed_is_no_evidence_about_it() -> None:
    clock, blame = Clock(True), Blame(10)
    fail_until_controlled(blame, clock, 1)
    clock.now_s += 1.0
    fail_until_controlled(blame, clock, 2)
    assert clock.controls == 2


def test_an_outcome_from_before_the_last_two_failures_is_no_evidence() -> None:
    """Since then its replicas may have got into trouble again."""
    clock, blame = Clock(True), Blame(10)
    second = fail(blame, clock, None, 2)
    fail_until_controlled(blame, clock, 1)
    for _ in range(ALONE_TRIES - 1):
        clock.now_s += 1.0
        second = fail(blame, clock, second, 2)
    assert blame.rule(second, REPLICA_SET, clock.control) is Ruling.AGAIN
    assert clock.controls == 2


def test_a_row_that_times_out_is_convicted_after_its_last_try_only() -> None:
    retries = 10
    clock, blame = Clock(True), Blame(retries)
    suspect = None
    for tries_left in range(retries, -1, -1):
        clock.now_s += 5.0
        suspect = fail(blame, clock, suspect, 1)
        convicted = blame.rule_at_last(suspect, tries_left, REPLICA_SET, clock.control)
        assert convicted == (tries_left == 0)
        assert clock.controls == (tries_left <= 1)


def test_a_row_that_times_out_while_no_control_write_is_taken_is_not_convicted() -> None:
    clock, blame = Clock(False), Blame(10)
    suspect = None
    for tries_left in range(10, -1, -1):
        clock.now_s += 5.0
        suspect = fail(blame, clock, suspect, 1)
        assert not blame.rule_at_last(suspect, tries_left, REPLICA_SET, clock.control)


def test_replicas_that_took_other_rows_convict_a_row_without_a_control_write() -> None:
    clock, blame = Clock(None), Blame(10)
    suspect = None
    for _ in range(ALONE_TRIES):
        suspect = fail(blame, clock, suspect, 1)
        clock.now_s += 0.1
        blame.took(HOST, REPLICA_SET, clock.now_s)
        clock.now_s += 0.1
    assert suspect is not None and suspect.witnesses == ALONE_TRIES - 1
    assert blame.rule(suspect, REPLICA_SET, clock.control) is Ruling.ROW
    assert clock.controls == 0


def test_a_row_without_any_evidence_stays_open_after_the_last_try() -> None:
    clock, blame = Clock(None), Blame(retries_max=5)
    suspect = None
    for tries in range(1, 7):
        suspect = fail(blame, clock, suspect, 1)
        ruling = blame.rule(suspect, REPLICA_SET, clock.control)
        assert ruling is (Ruling.OPEN if tries == 6 else Ruling.AGAIN)


def test_a_row_that_failed_with_all_others_is_not_convicted_when_replicas_recover() -> None:
    """No control write is possible, and others are taken again only after its last failure."""
    clock, blame = Clock(None), Blame(10)
    rulings = []
    for taken_before in (True, False):
        clock.now_s += 10
        if taken_before:
            blame.took(HOST, REPLICA_SET, clock.now_s)
        suspect = None
        for _ in range(PATIENT_TRIES):
            suspect = fail(blame, clock, suspect, 1)
            clock.now_s += 1.0
        assert suspect is not None
        blame.took(HOST, REPLICA_SET, clock.now_s)
        rulings.append(blame.rule(suspect, REPLICA_SET, clock.control))
    assert rulings == [Ruling.ROW, Ruling.AGAIN]

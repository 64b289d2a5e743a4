"""Levels that a keyspace can never give are told from those that it can."""

from __future__ import annotations

import pytest

from ringhaul.cluster.consistency import (
    Replication,
    check_consistency,
    far_from_rows,
    too_far,
    too_few,
)
from ringhaul.errors import UsageError
from tests.unit.cluster.sessions import by_dc, session, simple, strategy

WHOLE = ("ONE", "TWO", "THREE", "QUORUM", "EACH_QUORUM", "ALL")
LOCAL = ("LOCAL_ONE", "LOCAL_QUORUM")
LEVELS = ("ANY", *WHOLE, *LOCAL)


def words(level: str, found: object, local_dc: str = "dc1") -> str:
    replication = Replication.of("shop", found)
    assert replication is not None
    few, far = too_few(level, replication), too_far(level, replication, local_dc)
    assert not (few and far), "one reason is told"
    return few or far


@pytest.mark.parametrize(
    ("found", "local_dc", "never"),
    [
        (simple("1"), "dc1", {"TWO", "THREE"}),
        (simple("2"), "dc1", {"THREE"}),
        (simple("3"), "dc1", set()),
        (simple("0"), "dc1", {*WHOLE, *LOCAL}),
        # Of three replicas one is transient: the server counts three
        (simple("3/1"), "dc1", set()),
        (by_dc(dc1="3/2"), "dc1", set()),
        # The replicas of all data centres are counted together
        (by_dc(dc1="1"), "dc1", {"TWO", "THREE"}),
        (by_dc(dc1="1", dc2="1"), "dc1", {"THREE"}),
        (by_dc(dc1="1", dc2="2"), "dc1", set()),
        (by_dc(dc1="3"), "dc2", {*LOCAL}),
        (by_dc(dc1="3", dc2="0"), "dc2", {*LOCAL}),
        (by_dc(), "dc1", {*WHOLE, *LOCAL}),
    ],
)
def test_what_replication_can_never_give(found: object, local_dc: str, never: set[str]) -> None:
    assert {level for level in LEVELS if words(level, found, local_dc)} == never


@pytest.mark.parametrize(
    "found",
    [
        strategy("LocalStrategy"),
        strategy("EverywhereStrategy"),
        strategy("SimpleStrategy", replication_factor="some"),  # nothing that the driver can read
        None,
    ],
)
def test_other_strategies_are_not_judged(found: object) -> None:
    assert Replication.of("shop", found) is None


def test_the_words_say_what_is_needed_what_is_there_and_what_to_do() -> None:
    assert words("TWO", simple("1")) == (
        "consistency TWO needs 2 replicas, keyspace shop has 1 (SimpleStrategy); "
        "lower --consistency or raise the replication"
    )
    assert words("THREE", by_dc(dc2="1", dc1="1")) == (
        "consistency THREE needs 3 replicas, keyspace shop has 2 (dc1: 1, dc2: 1); "
        "lower --consistency or raise the replication"
    )
    assert words("LOCAL_QUORUM", by_dc(dc1="0")) == (
        "consistency LOCAL_QUORUM needs 1 replica, keyspace shop has 0 (dc1: 0); "
        "raise the replication"
    )
    assert words("LOCAL_ONE", by_dc(dc3="2", dc1="3"), "dc2") == (
        "consistency LOCAL_ONE needs replicas in the local data centre dc2, keyspace shop has them "
        "only in dc1, dc3: choose --local-dc dc1 or --consistency ONE"
    )


def test_any_is_for_writes() -> None:
    asked = session("ANY", simple("1"), "dc1")
    check_consistency(asked, "shop", writes=True)
    for keyspace in ("shop", None):
        with pytest.raises(UsageError, match="consistency ANY is for writes only"):
            check_consistency(asked, keyspace, writes=False)


def test_replicas_are_looked_up_in_the_keyspace() -> None:
    asked = session("TWO", simple("1"), "dc1")
    for writes in (True, False):
        with pytest.raises(UsageError, match="consistency TWO needs 2 replicas, keyspace shop"):
            check_consistency(asked, "shop", writes=writes)
        check_consistency(asked, None, writes=writes)
        check_consistency(asked, "gone", writes=writes)


def test_only_who_asks_from_a_data_centre_is_far_from_the_rows() -> None:
    far = session("LOCAL_QUORUM", by_dc(dc1="3"), "dc2", "dc1")
    check_consistency(far, "shop", writes=True)
    # What is too few is told once, and before the workers are known
    assert far_from_rows(session("TWO", simple("1"), "dc1"), "shop") == ""
    assert "choose --local-dc dc1 or --consistency QUORUM" in far_from_rows(far, "shop")
    assert far_from_rows(far, None) == ""
    assert far_from_rows(session("LOCAL_QUORUM", by_dc(dc1="3"), "dc1", "dc2"), "shop") == ""
    assert far_from_rows(session("QUORUM", by_dc(dc1="3"), "dc2", "dc1"), "shop") == ""

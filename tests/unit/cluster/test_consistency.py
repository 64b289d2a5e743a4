"""Consistency levels that a keyspace can never meet are refused; others are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ringhaul.cluster.consistency import (
    Use,
    acknowledgements,
    check_consistency,
    far_from_rows,
    refused,
    too_far,
    too_few,
)
from ringhaul.cluster.replication import Replication
from ringhaul.errors import UsageError
from tests.cases import each
from tests.unit.cluster.sessions import by_dc, simple, strategy, view

WHOLE = ("ONE", "TWO", "THREE", "QUORUM", "EACH_QUORUM", "ALL")
LOCAL = ("LOCAL_ONE", "LOCAL_QUORUM")
LEVELS = ("ANY", *WHOLE, *LOCAL)
READS, WRITES = Use(writes=False), Use(writes=True)
#: Enough nodes for every test that is not about their number.
MANY = {"dc1": 9, "dc2": 9, "dc3": 9}


def words(level: str, found: object, local_dc: str = "dc1", nodes: Mapping[str, int] = MANY) -> str:
    replication = Replication.of("shop", found, nodes)
    assert replication is not None
    few, far = too_few(level, replication), too_far(level, replication, local_dc)
    assert not (few and far), "only one reason is given"
    return few or far


@each(
    ("found", "local_dc", "never"),
    [
        (simple("1"), "dc1", {"TWO", "THREE"}),
        (simple("2"), "dc1", {"THREE"}),
        (simple("3"), "dc1", set()),
        (simple("0"), "dc1", {*WHOLE, *LOCAL}),
        # One of three replicas is transient: the server counts three
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
def test_levels_that_the_replication_can_never_meet(
    found: object, local_dc: str, never: set[str]
) -> None:
    assert {level for level in LEVELS if words(level, found, local_dc)} == never


@pytest.mark.parametrize(
    "found",
    [
        strategy("LocalStrategy"),
        strategy("EverywhereStrategy"),
        strategy("SimpleStrategy", replication_factor="some"),  # the driver cannot parse it
        None,
    ],
)
def test_other_strategies_are_not_judged(found: object) -> None:
    assert Replication.of("shop", found, MANY) is None


QUORUMS = {"QUORUM", "EACH_QUORUM", "LOCAL_QUORUM"}


@each(
    ("found", "nodes", "never"),
    [
        (simple("3"), {"dc1": 1}, {*QUORUMS, "TWO", "THREE", "ALL"}),
        (simple("3"), {"dc1": 2}, {"THREE", "ALL"}),
        (simple("3"), {"dc1": 3}, set()),
        # Replicas of SimpleStrategy are in any data centre; which of them is local is known
        (simple("3"), {"dc1": 1, "dc2": 1}, {"THREE", "ALL", "LOCAL_QUORUM"}),
        (simple("3"), {"dc1": 1, "dc2": 2}, {"LOCAL_QUORUM"}),
        (simple("3"), {"dc1": 2, "dc2": 1}, set()),
        (by_dc(dc1="3"), {"dc1": 1}, {*QUORUMS, "TWO", "THREE", "ALL"}),
        # More nodes than replicas in one data centre make up for none in another
        (by_dc(dc1="3", dc2="1"), {"dc1": 1, "dc2": 9}, {*QUORUMS, "THREE", "ALL"}),
        (by_dc(dc1="3", dc2="3"), {"dc1": 1, "dc2": 3}, {"EACH_QUORUM", "LOCAL_QUORUM", "ALL"}),
        (by_dc(dc1="3", dc2="3"), {"dc1": 3, "dc2": 1}, {"EACH_QUORUM", "ALL"}),
        # A data centre that does not exist, because of a typo or because it is not built yet
        (by_dc(dc1="1", dc9="1"), {"dc1": 3}, {"TWO", "THREE", "QUORUM", "EACH_QUORUM", "ALL"}),
        (by_dc(dc9="1"), {"dc1": 3}, {*WHOLE, *LOCAL}),
        # Unknown
        (simple("3"), {}, set()),
        (by_dc(dc1="3"), {}, set()),
    ],
)
def test_levels_that_too_few_nodes_can_never_meet(
    found: object, nodes: Mapping[str, int], never: set[str]
) -> None:

    assert {level for level in LEVELS if words(level, found, nodes=nodes)} == never


def test_the_message_names_the_nodes_and_what_to_do() -> None:
    assert words("QUORUM", simple("3"), nodes={"dc1": 1}) == (
        "consistency QUORUM needs 2 nodes, as keyspace shop has replication factor 3 "
        "(SimpleStrategy), and the cluster knows of 1 node that can hold its rows: "
        "add nodes, or lower --consistency or the replication factor"
    )
    assert words("LOCAL_QUORUM", by_dc(dc1="3"), nodes={"dc1": 1, "dc2": 5}) == (
        "consistency LOCAL_QUORUM needs 2 nodes in data centre dc1, as keyspace shop has "
        "replication factor 3 (dc1: 3), and the cluster knows of 1 node there that can hold its "
        "rows: add nodes, or lower --consistency or the replication factor"
    )
    assert words("ONE", by_dc(dc9="1"), nodes={"dc1": 1}) == (
        "consistency ONE needs 1 node, as keyspace shop has replication factor 1 (dc9: 1), and "
        "the cluster knows of 0 nodes that can hold its rows: "
        "add nodes, or lower the replication factor"
    )
    assert words("LOCAL_QUORUM", by_dc(dc1="3", dc2="3"), nodes={"dc1": 1, "dc2": 3}).endswith(
        "; or choose --local-dc dc2 or --consistency QUORUM"
    )


def test_conditions_are_decided_by_a_quorum_whatever_the_level() -> None:
    def message(level: str, found: object, nodes: Mapping[str, int] = MANY) -> str:
        replication = Replication.of("shop", found, nodes)
        assert replication is not None
        assert refused(level, replication, WRITES) == ""
        return refused(level, replication, Use(writes=True, conditional=True))

    assert message("EACH_QUORUM", simple("3")) == (
        "consistency EACH_QUORUM allows conditions (IF) only in keyspaces of "
        "NetworkTopologyStrategy, keyspace shop is of SimpleStrategy: choose another "
        "--consistency, such as QUORUM"
    )
    assert message("EACH_QUORUM", by_dc(dc1="3")) == message("ANY", simple("3")) == ""
    assert message("ANY", simple("3"), {"dc1": 1}) == (
        "a condition (IF) needs 2 nodes, as keyspace shop has replication factor 3 "
        "(SimpleStrategy), and the cluster knows of 1 node that can hold its rows: "
        "add nodes, or lower the replication factor"
    )


def test_the_message_says_what_is_needed_what_exists_and_what_to_do() -> None:
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


def test_any_is_for_writes_only() -> None:
    client = view("ANY", simple("1"), "dc1")
    check_consistency(client, "shop", WRITES)
    for keyspace in ("shop", None):
        with pytest.raises(UsageError, match="consistency ANY is for writes only"):
            check_consistency(client, keyspace, READS)
        with pytest.raises(UsageError, match="consistency ANY is not for counters"):
            check_consistency(client, keyspace, Use(writes=True, counters=True))


def test_replicas_are_looked_up_in_the_keyspace() -> None:
    client = view("TWO", simple("1"), "dc1")
    for use in (WRITES, READS):
        with pytest.raises(UsageError, match="consistency TWO needs 2 replicas, keyspace shop"):
            check_consistency(client, "shop", use)
        check_consistency(client, None, use)
        check_consistency(client, "gone", use)


def test_nodes_are_counted_by_data_centre() -> None:
    rows = by_dc(dc1="3")
    with pytest.raises(UsageError, match="LOCAL_QUORUM needs 2 nodes in data centre dc1"):
        check_consistency(view("LOCAL_QUORUM", rows, "dc1", "dc2"), "shop", WRITES)
    check_consistency(view("LOCAL_QUORUM", rows, "dc1", "dc1"), "shop", WRITES)
    with pytest.raises(UsageError, match="a condition"):
        conditional = Use(writes=True, conditional=True)
        check_consistency(view("ONE", rows, "dc1", "dc2"), "shop", conditional)


def test_only_a_local_level_in_another_data_centre_is_far_from_the_rows() -> None:
    far = view("LOCAL_QUORUM", by_dc(dc1="3"), "dc2", "dc1", "dc1")
    check_consistency(far, "shop", WRITES)
    # Too few nodes are reported once, and before the workers are known
    assert far_from_rows(view("TWO", simple("1"), "dc1"), "shop") == ""
    assert "choose --local-dc dc1 or --consistency QUORUM" in far_from_rows(far, "shop")
    assert far_from_rows(far, None) == ""
    assert far_from_rows(view("LOCAL_QUORUM", by_dc(dc1="3"), "dc1", "dc2"), "shop") == ""
    assert far_from_rows(view("QUORUM", by_dc(dc1="3"), "dc2", "dc1"), "shop") == ""


@pytest.mark.parametrize(
    ("level", "found", "needed"),
    [
        ("LOCAL_QUORUM", by_dc(dc1=3, dc2=5), {"dc1": 2}),
        ("EACH_QUORUM", by_dc(dc1=3, dc2=5), {"dc1": 2, "dc2": 3}),
        ("QUORUM", by_dc(dc1=3, dc2=5), {None: 5}),
        ("ALL", by_dc(dc1=3, dc2=5), {None: 8}),
        ("ANY", by_dc(dc1=3), {None: 1}),
        ("LOCAL_ONE", by_dc(dc2=3), {None: 1}),
        ("LOCAL_QUORUM", simple("3"), {"dc1": 2}),
        ("TWO", simple("3"), {None: 2}),
    ],
)
def test_how_many_replicas_must_have_a_row(
    level: str, found: object, needed: dict[str | None, int]
) -> None:
    replication = Replication.of("shop", found, MANY)
    assert replication is not None
    assert acknowledgements(level, replication, "dc1") == needed

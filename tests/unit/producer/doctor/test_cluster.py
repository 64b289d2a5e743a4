"""Judgements of the cluster."""

from __future__ import annotations

import pytest
from cassandra.metadata import NetworkTopologyStrategy, SimpleStrategy

from producer.doctor.cluster import (
    judge_compression,
    judge_data_centre,
    judge_nodes,
    judge_replication,
    judge_schema,
    judge_versions,
)
from producer.doctor.finding import State
from ringhaul.cluster.replication import Replication
from tasks.host.report import HostView, Node


def test_a_node_that_does_not_offer_the_compression() -> None:
    def node(address: str, error: str = "") -> Node:
        return Node(address=address, used=True, error=error)

    nodes = [node("a"), node("b", "the node does not offer lz4 for requests, it offers snappy")]
    assert judge_compression("lz4", nodes[:1]).state is State.OK
    assert judge_compression("lz4", [node("c", "timed out")]).state is State.OK, "of `nodes`"
    found = judge_compression("lz4", nodes)
    assert (found.state, found.text) == (State.FAULT, "lz4 is set, and not offered by b")
    assert found.advice == 'set cluster.compression = "none"'


def keyspaces(**factors: int) -> dict[str, Replication]:
    found = {}
    for name, factor in factors.items():
        strategy = SimpleStrategy({"replication_factor": str(factor)})
        replication = Replication.of(name, strategy, {"dc1": 3})
        assert replication is not None
        found[name] = replication
    return found


@pytest.mark.parametrize(
    ("level", "keyspace", "state", "words"),
    [
        ("LOCAL_QUORUM", None, State.OK, "2 keyspaces"),
        ("THREE", None, State.WARNING, "consistency THREE needs 3 replicas, keyspace one has 1"),
        ("THREE", "one", State.FAULT, "keyspace one has 1"),
        ("THREE", "three", State.OK, "in three"),
        ("ONE", "tow", State.FAULT, "no keyspace tow"),
    ],
)
def test_replication_is_compared_with_the_level(
    level: str, keyspace: str | None, state: State, words: str
) -> None:
    found = judge_replication(level, "dc1", keyspaces(one=1, three=3), keyspace)
    assert found.state is state and words in found.text


def test_replicas_in_another_data_centre_only_are_found() -> None:
    strategy = NetworkTopologyStrategy({"dc2": "1"})
    far = Replication.of("far", strategy, {"dc1": 1, "dc2": 1})
    assert far is not None
    found = judge_replication("LOCAL_QUORUM", "dc1", {"far": far}, "far")
    assert found.state is State.FAULT and "--local-dc dc2" in found.text


def test_an_empty_cluster_has_nothing_to_judge() -> None:
    assert judge_replication("ONE", "dc1", {}, None).state is State.OK


def test_nodes_that_do_not_answer_are_named() -> None:
    good, bad = Node(address="10.0.0.1"), Node(address="10.0.0.2", error="timed out")
    far = Node(address="10.0.9.1", used=False)
    assert judge_nodes([good, far], []).text == "1 node answers, 1 in other data centres"
    cut = judge_nodes([good, bad], [])
    assert cut.state is State.FAULT and "10.0.0.2 (timed out)" in cut.text
    down = judge_nodes([good, bad], ["10.0.0.2"])
    assert down.state is State.WARNING and "1 of 2 nodes down (10.0.0.2)" in down.text


def test_schemas_versions_and_data_centres() -> None:
    assert judge_schema(["a", "a"]).state is State.OK
    assert judge_schema(["a", "b"]).text == "2 versions"
    nodes = [Node(address="1", release="5.0.2", data_centre="dc1")]
    assert judge_versions(nodes).text == "Cassandra 5.0.2"
    both = [*nodes, Node(address="2", release="4.1.1", data_centre="dc2")]
    assert judge_versions(both).state is State.WARNING
    assert judge_versions([]).state is State.UNCHECKED
    one = HostView(local_dc="dc1", nodes=tuple(nodes))
    assert judge_data_centre(one, "").state is State.OK
    two = HostView(local_dc="dc1", nodes=tuple(both))
    assert judge_data_centre(two, "dc1").text == "dc1 of dc1, dc2"
    unset = judge_data_centre(two, "")
    assert unset.state is State.WARNING and "cluster.local_dc" in unset.advice

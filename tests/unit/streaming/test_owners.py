"""Rows go to the nodes that own them, in the fewest files; enough of them must have each row."""

from __future__ import annotations

import numpy as np
import pytest

from ringhaul.streaming.owners import Node, Owners, lacking, slices

NODES = [Node(address=f"10.0.0.{n}", port=7000, data_centre=f"dc{n % 2}") for n in range(8)]


def ring(nodes: int, replicas: int) -> Owners:
    """A ring of a token for each node, each range held by the nodes that follow."""
    sets = [
        tuple(sorted(NODES[(start + n) % nodes] for n in range(replicas))) for start in range(nodes)
    ]
    known = list(dict.fromkeys(sets))
    return Owners(
        tokens=tuple(-100 + 50 * n for n in range(nodes)),
        sets=tuple(known),
        set_of=tuple(known.index(found) for found in sets),
    )


def test_a_range_ends_at_its_token_and_the_first_one_wraps() -> None:
    owners = ring(3, 1)
    tokens = np.array([-(2**63), -101, -100, -99, -50, -49, 0, 1, 2**63 - 1])
    nodes = [owners.sets[number][0] for number in owners.assign(tokens)]
    assert nodes == [NODES[n] for n in (0, 0, 0, 1, 1, 2, 2, 0, 0)]


@pytest.mark.parametrize(
    ("nodes", "replicas", "files"),
    [(1, 1, 1), (3, 3, 3), (3, 1, 3), (3, 2, 3), (8, 3, 8), (2, 2, 2)],
)
def test_no_node_gets_rows_of_others_and_each_gets_all_of_its_own(
    nodes: int, replicas: int, files: int
) -> None:
    owners = ring(nodes, replicas)
    found = slices(owners, range(len(owners.sets)))
    assert sum(len(part.nodes) for part in found) == files
    got: dict[Node, set[int]] = {}
    for part in found:
        for node in part.nodes:
            assert not part.sets & got.get(node, set()), "sent twice"
            got.setdefault(node, set()).update(part.sets)
    wanted = {
        node: {number for number, replicas in enumerate(owners.sets) if node in replicas}
        for node in NODES[:nodes]
    }
    assert got == wanted


def test_one_set_of_replicas_is_encoded_once() -> None:
    (only,) = slices(ring(3, 3), [0])
    assert only.nodes == tuple(NODES[:3])


def test_only_sets_with_rows_are_sliced() -> None:
    found = slices(ring(8, 3), [2])
    assert [part.nodes for part in found] == [tuple(NODES[2:5])]


def test_enough_replicas_are_counted_by_data_centre() -> None:
    replicas = NODES[:4]  # dc0, dc1, dc0, dc1
    assert lacking({None: 2}, replicas, NODES[:2]) == ""
    assert lacking({None: 3}, replicas, NODES[:2]) == "2 of 4 replicas took the rows, 3 must"
    assert lacking({"dc0": 1, "dc1": 1}, replicas, [NODES[0], NODES[3]]) == ""
    assert lacking({"dc1": 2}, replicas, [NODES[0], NODES[1], NODES[2]]) == (
        "1 of 2 replicas in data centre dc1 took the rows, 2 must"
    )
    assert lacking({None: 1}, replicas, [NODES[7]]) == "0 of 4 replicas took the rows, 1 must"

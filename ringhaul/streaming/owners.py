"""Which nodes own which tokens, which rows go to which node, and when enough nodes have them. Pure.

Nodes never forward streamed rows, and store whatever they are sent. So each replica of a row gets
the row from us, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, order=True, kw_only=True)
class Node:
    """A node's address for other nodes."""

    address: str
    port: int
    data_centre: str = ""

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Owners:
    """The replicas of each token in one keyspace. Equal if nothing has changed."""

    #: Ends of the ring's ranges, ascending and inclusive. Tokens past the last are in the first.
    tokens: tuple[int, ...]
    sets: tuple[tuple[Node, ...], ...]  #: the sets of replicas that occur
    set_of: tuple[int, ...]  #: each range's set, an index of `sets`

    def assign(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the set of replicas that owns each token."""
        place = np.searchsorted(np.array(self.tokens, np.int64), tokens, side="left")
        place[place == len(self.tokens)] = 0
        return np.array(self.set_of, np.int64)[place]


class Slice(NamedTuple):
    """Rows that become one SSTable, and the nodes that each get it: they own all of these rows."""

    sets: frozenset[int]  #: the sets of replicas that own the rows, indices of `Owners.sets`
    nodes: tuple[Node, ...]


def slices(owners: Owners, present: Iterable[int]) -> list[Slice]:
    """Slice rows of some sets of replicas so that the fewest files are sent.

    One SSTable for each set costs least to make, one for each node makes the fewest files in a ring
    of many sets.
    """
    sets = sorted(set(present))
    by_set = [Slice(frozenset([number]), owners.sets[number]) for number in sets]
    nodes = sorted({node for number in sets for node in owners.sets[number]})
    if sum(len(part.nodes) for part in by_set) <= len(nodes):
        return by_set
    return [Slice(frozenset(n for n in sets if node in owners.sets[n]), (node,)) for node in nodes]


def lacking(
    needed: Mapping[str | None, int], replicas: Collection[Node], having: Collection[Node]
) -> str:
    """Return why too few of some replicas have their rows; empty if enough do.

    `needed`: see `ringhaul.cluster.consistency.acknowledgements`.
    """
    for place, count in needed.items():
        there = [node for node in replicas if place is None or node.data_centre == place]
        found = sum(node in having for node in there)
        if found < count:
            where = "" if place is None else f" in data centre {place}"
            return f"{found} of {len(there)} replicas{where} took the rows, {count} must"
    return ""

"""Token ranges that a job left out because no replica could read them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class MissingRange(NamedTuple):
    """A range whose rows are missing from what a job wrote or counted."""

    token_after: int
    token_to: int
    partition: str  #: its key as a JSON object, if the range is one partition and the key is known
    partly: bool  #: the first rows of the partition at `token_after` + 1 were read and are included
    nodes: str  #: addresses of the nodes that failed
    reason: str  #: explanation for people

    @property
    def place(self) -> str:
        """Tokens, and the partition if it is known, for people."""
        return place_text(self.token_after, self.token_to, self.partition)

    def to_json(self) -> dict[str, Any]:
        return self._asdict() | {"partition": self.partition or None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MissingRange:
        """Read `to_json`'s dict. Raises `KeyError` for any other."""
        found = {name: data[name] for name in cls._fields}
        return cls(**found | {"partition": data["partition"] or ""})


def place_text(token_after: int, token_to: int, partition: str = "") -> str:
    """Return `token 5` or `tokens 5 to 9`, inclusive, and the partition if it is known."""
    first = token_after + 1
    tokens = f"token {first}" if first == token_to else f"tokens {first} to {token_to}"
    return f"{tokens}, partition {partition}" if partition else tokens


def join_missing(ranges: Iterable[MissingRange]) -> list[MissingRange]:
    """Return the ranges in token order, joining unnamed neighbours that failed alike."""
    joined: list[MissingRange] = []
    for one in sorted(ranges):
        last = joined[-1] if joined else None
        if last is not None and _join(last, one):
            joined[-1] = last._replace(token_to=one.token_to)
        else:
            joined.append(one)
    return joined


def _join(last: MissingRange, one: MissingRange) -> bool:
    alike = (last.nodes, last.reason) == (one.nodes, one.reason)
    named = last.partition or one.partition or one.partly
    return alike and not named and last.token_to == one.token_after


def condition_of(missing: MissingRange, token: str) -> str:
    """Return the range as a condition of a SELECT. `token`: such as `token(p)`."""
    return f"{token} > {missing.token_after} AND {token} <= {missing.token_to}"

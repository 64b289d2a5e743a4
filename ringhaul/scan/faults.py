"""Read failures caused by the data: which errors they are, and how certain that is.

A timeout or an unavailable node passes. A partition with too many tombstones, a damaged SSTable or
a partition on the server's denylist fails every read of it. The server reports some of these with a
reason code: in a map by address since native protocol v5, before that in the text of the message
(Cassandra 4.0 and later). If the reason is UNKNOWN or missing, only repeating the read can tell.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cassandra import InvalidRequest, ReadFailure
from cassandra.protocol import ServerError

from ringhaul.cql.failures import server_message

#: Codes of `RequestFailureReason` in Cassandra 5.0.
_REASONS = {
    0: "UNKNOWN",
    1: "READ_TOO_MANY_TOMBSTONES",
    2: "TIMEOUT",
    3: "INCOMPATIBLE_SCHEMA",
    4: "READ_SIZE",
    5: "NODE_DOWN",
    6: "INDEX_NOT_AVAILABLE",
    7: "READ_TOO_MANY_INDEXES",
    503: "INDEX_BUILD_IN_PROGRESS",
}
#: Reasons that lie in the amount of data: a read of fewer rows may succeed.
_BY_AMOUNT = ("READ_TOO_MANY_TOMBSTONES", "READ_SIZE", "READ_TOO_MANY_INDEXES")
DENYLISTED = "DENYLISTED"
#: Reasons that lie in the data: the next read fails in the same way.
CERTAIN = (*_BY_AMOUNT, DENYLISTED)
#: What each reason means, and what to do about it.
_WORDS = {
    "READ_TOO_MANY_TOMBSTONES": "more tombstones than tombstone_failure_threshold allows",
    "READ_SIZE": "more bytes than the server's read size threshold allows",
    "READ_TOO_MANY_INDEXES": "more SSTable indexes than the server allows",
    DENYLISTED: "the server's denylist forbids reading it",
    "UNKNOWN": "the node's log has the cause, such as a corrupt SSTable",
}
_ADVICE = {
    "READ_TOO_MANY_TOMBSTONES": "Compact the table when gc_grace_seconds have passed, or raise the "
    "threshold",
    "READ_SIZE": "Raise the threshold",
    DENYLISTED: "Take the partition off system_distributed.partition_denylist",
    "UNKNOWN": "Scrub or repair the table",
}
_ADVICE_ELSE = "Look into the node's log"

#: `READ_TOO_MANY_TOMBSTONES from /10.0.0.1:7000`, in the message of a READ_FAILURE.
_IN_WORDS = re.compile(r"\b([A-Z][A-Z_]+) from ([^\s,]+)")
#: The end of such an endpoint, after its last slash.
_ADDRESS = re.compile(r"((?:\d+\.){3}\d+|\[?[0-9a-fA-F:]+\]?):\d+")
#: The server's words in an invalid request's error, for a denylisted partition or a range with one.
_ON_DENYLIST = re.compile(r"\bdenylisted (?:keys|partition)\b")
#: The guardrail `page_size_fail_threshold`.
_PAGE_SIZE = re.compile(r"Guardrail page_size violated\b")
#: Sent by a coordinator that added up the tombstones or bytes of all replicas.
_ABORTED = (
    (re.compile(r"tombstone", re.IGNORECASE), "READ_TOO_MANY_TOMBSTONES"),
    (re.compile(r"read_size|read size", re.IGNORECASE), "READ_SIZE"),
)


class ReadFault(NamedTuple):
    """The server's report of data that it cannot read."""

    name: str  #: name of the reason; `server_error` for an error without a reason
    nodes: str  #: addresses of the replicas, or of the coordinator if they are unknown
    said: str  #: the server's message, on one line

    @property
    def certain(self) -> bool:
        """Whether the reason certainly lies in the data; if not, the read has to be repeated."""
        return self.name in CERTAIN

    @property
    def by_amount(self) -> bool:
        """Whether a read of fewer rows may succeed."""
        return self.name in _BY_AMOUNT

    @property
    def reason(self) -> str:
        """The reason in words, without the node."""
        return f"{self.name}: {_WORDS.get(self.name, self.said)}"

    @property
    def advice(self) -> str:
        """Advice for repairing the data."""
        return _ADVICE.get(self.name, _ADVICE_ELSE)


def data_fault(error: BaseException, coordinator: str) -> ReadFault | None:
    """Return the fault of a failed read if the data may be the cause; None for a passing problem.

    `coordinator`: address of the node that answered.
    """
    if isinstance(error, ServerError):
        return ReadFault("server_error", coordinator, _said(error))
    if isinstance(error, InvalidRequest) and _ON_DENYLIST.search(_said(error)):
        return ReadFault(DENYLISTED, coordinator, _said(error))
    if not isinstance(error, ReadFailure):
        return None
    said = _said(error)
    reasons = _reasons(error, said) or [("UNKNOWN", coordinator)]
    for name in (*CERTAIN, "UNKNOWN"):
        nodes = sorted({node for found, node in reasons if found == name})
        if nodes:
            return ReadFault(name, ", ".join(nodes), said)
    return None


def forbids_page(error: BaseException) -> bool:
    """Return whether a guardrail forbids pages of as many rows as were requested."""
    return isinstance(error, InvalidRequest) and bool(_PAGE_SIZE.search(_said(error)))


def _reasons(error: ReadFailure, said: str) -> list[tuple[str, str]]:
    """Return (reason, address) of each replica that failed, as far as the server reports it."""
    if error.error_code_map:
        codes = error.error_code_map.items()
        return [(_REASONS.get(code, "UNKNOWN"), str(node)) for node, code in codes]
    ends = [(name, end.rpartition("/")[2]) for name, end in _IN_WORDS.findall(said)]
    listed = [(name, at[1].strip("[]")) for name, end in ends if (at := _ADDRESS.match(end))]
    if listed:
        return listed
    return [(name, "") for words, name in _ABORTED if words.search(said)]


def _said(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error)
    return " ".join(server_message(text).split())

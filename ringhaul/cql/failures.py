"""Explain READ_FAILURE and WRITE_FAILURE: which replica failed, and why. Pure.

Since Cassandra 3.11 the message itself names each replica's reason ("UNKNOWN from /10.0.0.1:7000"),
by the names of `RequestFailureReason` in Cassandra's source. Native protocol v5 adds a map from
replica to reason code (native_protocol_v5.spec, section 9). The two number the reasons differently
from 0x0002 on, so a name takes precedence over a code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: By the names of `org.apache.cassandra.exceptions.RequestFailureReason`.
_BY_NAME = {
    "UNKNOWN": "reason unknown, see the replica's log",
    "READ_TOO_MANY_TOMBSTONES": "too many tombstones",
    "TIMEOUT": "the replica timed out",
    "INCOMPATIBLE_SCHEMA": "the replica has another schema",
    "READ_SIZE": "the read is larger than the replica allows",
    "NODE_DOWN": "the replica is down",
    "INDEX_NOT_AVAILABLE": "an index is not available",
    "READ_TOO_MANY_INDEXES": "the read uses too many indexes",
    "NOT_CMS": "the replica does not manage the cluster's metadata",
    "INVALID_ROUTING": "the replica does not own the token",
    "COORDINATOR_BEHIND": "the coordinator's metadata is behind",
    "INDEX_BUILD_IN_PROGRESS": "an index is being built",
}
#: By the codes of the protocol's specification.
_BY_CODE = {
    0x0000: "reason unknown, see the replica's log",
    0x0001: "too many tombstones",
    0x0002: "an index is not available",
    0x0003: "the space for CDC is full",
    0x0004: "the leader of a counter write saw other replicas fail",
    0x0005: "the replica does not know the table",
    0x0006: "the replica does not know the keyspace",
}
_BEGIN, _END = 'message="', '" info='
_NAMED = re.compile(r"\b([A-Z][A-Z_]+) from (\S*/)?([^\s,]+)")


def server_message(text: str) -> str:
    """Return the server's message inside the driver's text, `... message="..." info=...`, or all of
    the text if it holds no message. No regular expression, as it would look for the end once for
    each beginning: the message may quote anything."""
    begin = text.find(_BEGIN) + len(_BEGIN)
    end = len(text) - 1 if text.endswith('"') else text.rfind(_END)
    return text[begin:end] if len(_BEGIN) <= begin <= end else text


def failure_words(message: str, codes: Mapping[str, int] | None = None) -> str:
    """Return the reasons of a failure, with their replicas; empty if the server gives none.

    `message`: the server's message. `codes`: replica -> reason code of protocol v5.
    """
    named = [
        f"{at}: {_BY_NAME[name]}" for name, _, at in _NAMED.findall(message) if name in _BY_NAME
    ]
    if not named:
        named = [
            f"{at}: {_BY_CODE.get(code, 'an unknown reason')} ({code:#06x})"
            for at, code in (codes or {}).items()
        ]
    return "; ".join(dict.fromkeys(named))


def with_reasons(message: str, codes: Mapping[str, int] | None = None) -> str:
    """Return the server's message, followed by its reasons in plain words."""
    words = failure_words(message, codes)
    return f"{message} ({words})" if words else message

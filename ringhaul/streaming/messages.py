"""Messages of Cassandra's streaming protocol, messaging versions 12 and 13, as bytes. Pure.

A *session* brings files to one node. It has a control connection and a connection for files, both
to the storage port. Each begins with a handshake: the magic number, flags, our address and a
checksum one way; the node's versions and a checksum the other way. Then messages follow, each a
byte for its kind and a body. These messages matter to a sender:

| from | connection | message | body |
|---|---|---|---|
| us | control | STREAM_INIT | address, session number, plan, reason, repair, preview |
| us | control | PREPARE_SYN | requests (none), then for each table: id, files, bytes |
| node | control | PREPARE_SYNACK | what the node would send (nothing) |
| us | files | STREAM | header, serialization header, list of components, the components |
| node | control | RECEIVED | table and number of a file that it has |
| node | control | COMPLETE | all files can be read |
| node | control | SESSION_FAILED | the node has discarded all files; its log says why |
| node | control | KEEP_ALIVE | nothing |

A file is sent as an *entire SSTable*: the node stores the components as they are. It counts
components, not SSTables, as files. It checks neither Data.db nor who owns its tokens.

The messages are the same in both versions. A node streams only in its own version: we offer both,
and it chooses. Nodes of version 13 write SSTables of version oa, but also take earlier versions.

Classes: `MessagingService`, `HandshakeProtocol`, `InboundConnectionInitiator`, `Crc`,
`InetAddressAndPort.Serializer`, `StreamMessage`, `StreamInitMessage`, `PrepareSynMessage`,
`StreamSummary`, `StreamMessageHeader`, `CassandraStreamHeader`, `ComponentManifest`,
`CassandraEntireSSTableStreamReader`.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import ip_address

from ringhaul.sstables.version import SSTableVersion
from ringhaul.sstables.vints import unsigned_vint, with_short_length, with_vint_length

#: Cassandra 4.0 and 4.1 speak version 12, and so does 5.0 in its default
#: `storage_compatibility_mode`; in the other modes 5.0 speaks version 13.
MESSAGING_VERSIONS = (12, 13)
#: Bytes of the answer to a handshake.
ACCEPTED_BYTES = 12
_MAGIC = 0xCA552DFA
_IS_STREAM = 1 << 3
#: Checksums begin with these bytes, so that zeros do not pass for a message.
_CRC_START = b"\xfa\x2d\x55\xca"
#: The node keeps figures for each address that streams to it. This is the port in ours: no node has
#: it, and all processes of a host share it.
_PORT = 1
_REASON = "Bulk Load"


class Kind(IntEnum):
    """Kinds of messages, as in `StreamMessage.Type`."""

    PREPARE_SYN = 1
    STREAM = 2
    RECEIVED = 3
    COMPLETE = 5
    SESSION_FAILED = 6
    KEEP_ALIVE = 7
    PREPARE_SYNACK = 8
    STREAM_INIT = 10


#: Bytes of the bodies that do not vary; a PREPARE_SYNACK has a count and summaries.
BODY_BYTES = {Kind.RECEIVED: 20, Kind.COMPLETE: 0, Kind.SESSION_FAILED: 0, Kind.KEEP_ALIVE: 0}
COUNT_BYTES, SUMMARY_BYTES = 4, 28


@dataclass(frozen=True, kw_only=True)
class Versions:
    """A node's answer to a handshake."""

    highest: int  #: highest version that the node speaks
    used: int  #: version that it wants to use

    @property
    def sstables(self) -> SSTableVersion:
        """The version of the SSTables that the node writes. It also takes earlier versions."""
        return SSTableVersion.OA if self.highest >= 13 else SSTableVersion.NB


class HandshakeDamaged(ValueError):
    """The answer to a handshake is not one of Cassandra."""


def hello(sender: str) -> bytes:
    """Return the handshake of a connection for streaming. `sender`: our IP address."""
    first, last = min(MESSAGING_VERSIONS), max(MESSAGING_VERSIONS)
    flags = _IS_STREAM | first << 8 | first << 16 | last << 24
    start = struct.pack(">II", _MAGIC, flags) + _address(sender)
    return start + struct.pack(">I", _crc(start))


def accepted(answer: bytes) -> Versions:
    """Return what a node answered to `hello`. Raises `HandshakeDamaged`."""
    if len(answer) != ACCEPTED_BYTES:
        raise HandshakeDamaged(f"{len(answer)} bytes instead of {ACCEPTED_BYTES}")
    highest, used, crc = struct.unpack(">iiI", answer)
    if crc != _crc(answer[:8]):
        raise HandshakeDamaged("its checksum is wrong")
    return Versions(highest=highest, used=used)


def session_start(sender: str, plan: uuid.UUID) -> bytes:
    """Return STREAM_INIT: session 0 of a plan, with neither repair nor preview."""
    body = _address(sender) + struct.pack(">i", 0) + plan.bytes
    return bytes([Kind.STREAM_INIT]) + body + _utf(_REASON) + struct.pack(">?i", False, 0)


def announcement(table: uuid.UUID, components: int, bytes_count: int) -> bytes:
    """Return PREPARE_SYN: no requests, and components of one table."""
    body = struct.pack(">ii", 0, 1) + table.bytes + struct.pack(">iq", components, bytes_count)
    return bytes([Kind.PREPARE_SYN]) + body


def file_header(
    sender: str,
    plan: uuid.UUID,
    table: uuid.UUID,
    version: SSTableVersion,
    header: bytes,
    components: Sequence[tuple[str, int]],
    first_key: bytes,
) -> bytes:
    """Return STREAM without the components, which follow in their order.

    `header`: the serialization header, as in Statistics.db. `components`: name and bytes of each.
    """
    message = table.bytes + _address(sender) + plan.bytes
    # Not from a follower; session, number of the file, repaired at, no pending repair.
    message += struct.pack(">?iiq?", False, 0, 0, 0, False)
    # Estimated keys, sections, no compression (the node needs neither), level.
    stream = _utf(version) + _utf("big") + struct.pack(">qiii", 0, 0, -1, 0)
    stream += header + table.bytes + struct.pack(">?", True) + unsigned_vint(len(components))
    stream += b"".join(_utf(name) + unsigned_vint(size) for name, size in components)
    return bytes([Kind.STREAM]) + message + stream + with_vint_length(first_key)


def summaries_bytes(count: bytes) -> int:
    """Return how many bytes of a PREPARE_SYNACK follow its count."""
    return SUMMARY_BYTES * int(struct.unpack(">i", count)[0])


def _address(ip: str) -> bytes:
    packed = ip_address(ip).packed
    return bytes([len(packed) + 2]) + packed + struct.pack(">H", _PORT)


def _utf(text: str) -> bytes:
    return with_short_length(text.encode())


def _crc(data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(_CRC_START))

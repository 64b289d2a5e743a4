"""The server's own limit of reading: token ranges paged over plain sockets, rows dropped.

The denominator of the figures of unload, count and query. `python -m bench.read_limit HOST PORT
KEYSPACE.TABLE COLUMN,...` prints one JSON line. Each socket has one page in flight: it requests
the next one when the last has arrived.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
from typing import NamedTuple

from cassandra import ConsistencyLevel

from bench.replay import EXECUTE, HEADER, RESULT, VERSION, connect, spending
from bench.ring import ring_slices
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import quote_identifier
from ringhaul.cluster.tables import find_table
from ringhaul.cql.decode.head import read_head

#: Unanswered requests in total; enough for two cores, most of which the node uses.
SOCKETS = 4
#: ringhaul's largest page: shorter pages cost the server more for each row.
PAGE_ROWS = 30_000
RANGES = 64
_VALUES, _SKIP_METADATA, _PAGE_SIZE, _PAGING_STATE = 0x01, 0x02, 0x04, 0x08


class Seen(NamedTuple):
    """Rows and bytes in total."""

    rows: int
    bytes_count: int


def main() -> None:
    host, port, name, columns = sys.argv[1:5]
    session = open_session(ClusterConfig(contact_points=(host,), port=int(port)))
    keyspace, _, table = name.partition(".")
    schema = find_table(DriverView(session), keyspace, table)
    token = f"token({', '.join(quote_identifier(column) for column in schema.partition_key)})"
    query_id = session.prepare(
        f"SELECT {columns} FROM {name} WHERE {token} > ? AND {token} <= ?"
    ).query_id
    close_session(session)
    with spending() as spent:
        seen = _read(host, int(port), query_id)
    result = {"rows": seen.rows, "bytes": seen.bytes_count}
    print(json.dumps(result | {"work_s": spent.work_s, "cpu_s": spent.cpu_s}))


def _read(host: str, port: int, query_id: bytes) -> Seen:
    selector = selectors.DefaultSelector()
    todo = ring_slices(RANGES)
    rows, bytes_count = 0, 0
    for _ in range(SOCKETS):
        reader = _Reader(connect(host, port), query_id, todo)
        reader.request_next()
        selector.register(reader.socket, selectors.EVENT_READ, reader)
    while selector.get_map():
        for key, _ in selector.select():
            page = key.data.receive()
            if page is None:
                continue
            rows += page.rows
            bytes_count += page.bytes_count
            if not key.data.request_next():
                selector.unregister(key.fileobj)
    return Seen(rows, bytes_count)


class _Reader:
    """One socket: the page in flight and its range."""

    def __init__(
        self, connection: socket.socket, query_id: bytes, todo: list[tuple[int, int]]
    ) -> None:
        self.socket, self._query_id, self._todo = connection, query_id, todo
        self._range: tuple[int, int] | None = None
        self._state: bytes | None = None
        self._page, self._filled = bytearray(1 << 20), 0

    def request_next(self) -> bool:
        """Request the next page, of the next range if one is done. Return False if all are read."""
        if self._state is None:
            if not self._todo:
                return False
            self._range = self._todo.pop()
        assert self._range is not None
        self.socket.sendall(page_request(self._query_id, self._range, self._state))
        return True

    def receive(self) -> Seen | None:
        """Receive data, and return the page once it is complete."""
        page = memoryview(self._page)
        self._filled += self.socket.recv_into(page[self._filled :])
        if self._filled < HEADER.size:
            return None
        _, _, _, opcode, length = HEADER.unpack_from(page)
        whole = HEADER.size + length
        if opcode != RESULT:
            raise RuntimeError(f"an answer that is no result: {bytes(page[:200])!r}")
        if self._filled < whole:
            if len(page) < whole:
                self._page = bytearray(page[: self._filled]) + bytes(2 * whole - self._filled)
            return None
        head = read_head(page[HEADER.size : whole])
        self._filled, self._state = 0, head.paging_state
        return Seen(head.rows_count, whole)


def page_request(query_id: bytes, of: tuple[int, int], state: bytes | None) -> bytes:
    """Return the frame that requests a page of a range, after `state` if given."""
    flags = _VALUES | _SKIP_METADATA | _PAGE_SIZE | (_PAGING_STATE if state else 0)
    body = struct.pack(">H", len(query_id)) + query_id
    body += struct.pack(
        ">HBHiqiqi", ConsistencyLevel.LOCAL_QUORUM, flags, 2, 8, of[0], 8, of[1], PAGE_ROWS
    )
    if state:
        body += struct.pack(">i", len(state)) + state
    return HEADER.pack(VERSION, 0, 0, EXECUTE, len(body)) + body


if __name__ == "__main__":
    main()

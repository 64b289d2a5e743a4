"""Fetch raw pages through the official driver: the body of a result, without row objects.

The driver still handles connections, timeouts and re-preparing. A protocol handler replaces its
decoder for results with rows, only for the requests of a `PageReader`, which share the session's
connections with all others.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session
from cassandra.pool import Host
from cassandra.protocol import ProtocolHandler, ResultMessage
from cassandra.query import PreparedStatement

from ringhaul.cluster.connect import Reconnecting
from ringhaul.cql.decode.head import read_head, result_body
from ringhaul.cql.result_codes import KIND_ROWS
from ringhaul.scan.ranges import TokenRange

_INT = struct.Struct(">i")
#: A request that takes the server no time: its answer shows how far the server is.
_SOUND = "SELECT key FROM system.local"
#: How many of the latest round trips are kept; the shortest counts as the distance.
SOUNDINGS_KEPT = 3
#: Frame flag. Since v5 frames come in segments, which are compressed instead.
_COMPRESSED = 0x01
_SEGMENTS_SINCE = 5


class Page(NamedTuple):
    """One page of a result."""

    body: bytes  #: body of the RESULT message of kind Rows
    rows: int
    state: bytes | None  #: paging state for the next page; None: the last page


class PageReader:
    """Requests pages on a session whose other users get rows.

    Keep one per session: each adds a listener to it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        session.add_request_init_listener(_ask_for_pages)
        self._reconnecting = Reconnecting(self.session)
        # Only a copy of the profile returns pages, so that other users of the session get rows.
        self._profile = self.session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT, row_factory=_page_of
        )
        self._soundings: deque[float] = deque(maxlen=SOUNDINGS_KEPT)
        self._learnt: tuple[bytes, int] = b"", 0

    @property
    def distance_s(self) -> float:
        """The time of a round trip to the nodes; 0 while it is unknown."""
        return min(list(self._soundings), default=0.0)

    def sound(self) -> None:
        """Measure the distance, without waiting for it. Once per unit, so that changes are seen."""
        sent_at_s = time.monotonic()

        def came(_: object) -> None:
            self._soundings.append(time.monotonic() - sent_at_s)

        try:
            future = self.session.execute_async(_SOUND)
        except Exception:
            return  # pages meet the same error, and handle it
        future.add_callbacks(came, _ignore)

    def learn(self, prepared: PreparedStatement, rows: int) -> None:
        """Remember how many rows of a statement made a good page."""
        self._learnt = prepared.query_id, rows

    def learnt(self, prepared: PreparedStatement) -> int:
        """Return how many rows of a statement made a good page; 0 if unknown."""
        query_id, rows = self._learnt
        return rows if query_id == prepared.query_id else 0

    def request(
        self,
        prepared: PreparedStatement,
        tokens: TokenRange,
        state: bytes | None,
        *,
        rows: int,
        consistency: int,
        timeout_s: float,
        host: Host | None,
        on_page: Callable[[Page], None],
        on_error: Callable[[BaseException], None],
    ) -> None:
        """Request a page of the rows of a range, those after `state`, from `host` or from any.

        One of the callbacks is called, in the driver's thread or immediately in this one.
        """
        statement = prepared.bind(tokens)
        statement.consistency_level = consistency
        statement.fetch_size = rows
        try:
            future = self.session.execute_async(
                statement,
                timeout=timeout_s,
                execution_profile=self._profile,
                paging_state=state,
                host=host,
            )
        except Exception as error:
            on_error(error)
            return
        future.add_callbacks(on_page, on_error)

    def reconnect(self) -> None:
        """Let the driver reopen broken connections after an error, without waiting for it."""
        self._reconnecting.begin()


def _ignore(_: object) -> None:
    pass


def _page_of(names: object, page: Page) -> Page:
    """Row factory: return the page that `RawPages` puts in the place of the rows."""
    return page


def _ask_for_pages(future: Any) -> None:
    """Before a request is sent: keep its response undecoded if a page is wanted."""
    if future.row_factory is _page_of:
        future._protocol_handler = RawPages


class RawPages(ProtocolHandler):  # type: ignore[misc]
    """Decodes a result with rows to a `Page`, where the driver keeps the rows."""

    @classmethod
    def decode_message(
        cls,
        protocol_version: int,
        user_type_map: Any,
        stream_id: int,
        flags: int,
        opcode: int,
        body: bytes,
        decompressor: Callable[[bytes], bytes] | None,
        result_metadata: Any,
    ) -> Any:
        if flags & _COMPRESSED and protocol_version < _SEGMENTS_SINCE and decompressor is not None:
            body = decompressor(body)
            flags &= ~_COMPRESSED
        if opcode == ResultMessage.opcode:
            # Warnings, such as about many tombstones, are dropped: the server's log has more
            # detail.
            rows, _ = result_body(flags, body)
            if _INT.unpack_from(rows)[0] == KIND_ROWS:
                return _message(bytes(rows), stream_id)
        return super().decode_message(
            protocol_version,
            user_type_map,
            stream_id,
            flags,
            opcode,
            body,
            decompressor,
            result_metadata,
        )


def _message(body: bytes, stream_id: int) -> ResultMessage:
    """Return the driver's message for a result, with its page in the place of the rows."""
    head = read_head(body)
    message = ResultMessage(KIND_ROWS)
    message.stream_id = stream_id
    message.column_names = ()
    message.paging_state = head.paging_state
    message.parsed_rows = Page(body, head.rows_count, head.paging_state)
    return message

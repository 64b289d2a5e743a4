"""Bring SSTables to several nodes at once, with retries: streamed, or imported by the nodes.

A node that does not take an SSTable is tried again for a while. If the node failed lately, it is
tried only once more: a node that is down must not cost that time for each SSTable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from ringhaul.errors import RinghaulError, Transient
from ringhaul.streaming.allowance import Allowance, unlimited
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamedSSTable, StreamSession

#: Pauses between the tries of a node, in seconds.
PAUSES_S = (0.5, 2.0, 5.0)
#: So long a node that failed is tried only once.
FAILED_S = 60.0
_TICK_S = 0.2


class Session(Protocol):
    """One try of one node."""

    def send(self, sstable: StreamedSSTable, take: Callable[[int], int]) -> None:
        """Return when the node serves the SSTable's rows. Raises `Transient` or `Terminal`.

        `take`: see `Allowance`.
        """

    def abort(self) -> None:
        """End the session, from another thread."""


class Delivery:
    """Sends the SSTables of one worker process, by sessions of one kind."""

    def __init__(self, new_session: Callable[[Node], Session] = StreamSession) -> None:
        self._new_session = new_session
        self._failed_at: dict[Node, float] = {}
        self._lock = threading.Lock()  # sessions run in threads
        self.retries = 0

    def send(
        self,
        sstable: StreamedSSTable,
        nodes: Sequence[Node],
        tick: Callable[[], None],
        spend: Callable[[int], int] = unlimited,
    ) -> Mapping[Node, Transient]:
        """Send an SSTable to nodes; return the nodes that did not take it, and why.

        `tick` is called several times a second, and `spend` before bytes are sent: see
        `WriterHooks`. If either raises, all sessions are aborted. Raises `Terminal` for a node to
        which nothing can be sent.
        """
        stop = threading.Event()
        sessions: list[Session] = []
        allowance = Allowance(spend, len(nodes))
        with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as threads:
            sending = {
                node: threads.submit(self._send, sstable, node, allowance, sessions, stop)
                for node in nodes
            }
            for future in sending.values():
                future.add_done_callback(lambda _: allowance.leave())
            try:
                _serve(allowance, tick)
            except BaseException:
                stop.set()
                allowance.end()
                for session in list(sessions):
                    session.abort()
                raise
        missed: dict[Node, Transient] = {}
        for node, future in sending.items():
            error = future.exception()
            if isinstance(error, Transient):
                missed[node] = error
                self._failed_at[node] = time.monotonic()
            elif error is not None:
                raise error
            else:
                self._failed_at.pop(node, None)
        return missed

    def _send(
        self,
        sstable: StreamedSSTable,
        node: Node,
        allowance: Allowance,
        sessions: list[Session],
        stop: threading.Event,
    ) -> None:
        failed_s = time.monotonic() - self._failed_at.get(node, -FAILED_S)
        pauses = PAUSES_S if failed_s >= FAILED_S else ()
        for pause_s in (*pauses, None):
            session = self._new_session(node)
            sessions.append(session)
            if stop.is_set():
                session.abort()
            try:
                session.send(sstable, allowance.take)
                return
            except Transient:
                if pause_s is None or stop.wait(pause_s):
                    raise
                with self._lock:
                    self.retries += 1


def _serve(allowance: Allowance, tick: Callable[[], None]) -> None:
    """Pay for what sessions send, until all have ended."""
    ticked_s = time.monotonic()
    while allowance.serve(_TICK_S):
        if time.monotonic() - ticked_s >= _TICK_S:
            tick()
            ticked_s = time.monotonic()


def why(missed: Mapping[Node, RinghaulError]) -> str:
    """Return in words which nodes did not take rows."""
    return "; ".join(str(error) for _, error in sorted(missed.items()))

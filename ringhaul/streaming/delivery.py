"""Send SSTables to several nodes at once, with retries.

A node that does not take one is tried again for a while. If it failed lately, it is tried only once
more: a node that is down must not cost that time for each SSTable.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from ringhaul.errors import RinghaulError, Transient
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamedSSTable, StreamSession

#: Pauses between the tries of a node, in seconds.
PAUSES_S = (0.5, 2.0, 5.0)
#: So long a node that failed is tried only once.
FAILED_S = 60.0
_TICK_S = 0.2


class Delivery:
    """Sends the SSTables of one worker process."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._failed_at: dict[Node, float] = {}
        self.retries = 0

    def send(
        self, sstable: StreamedSSTable, nodes: Sequence[Node], tick: Callable[[], None]
    ) -> Mapping[Node, Transient]:
        """Send an SSTable to nodes; return those that did not take it, and why.

        `tick` is called several times a second; if it raises, all sessions are aborted. Raises
        `Terminal` for a node to which nothing can be sent.
        """
        stop = threading.Event()
        sessions: list[StreamSession] = []
        with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as threads:
            sending = {
                node: threads.submit(self._send, sstable, node, sessions, stop) for node in nodes
            }
            try:
                self._await(list(sending.values()), tick)
            except BaseException:
                stop.set()
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

    def _await(self, sending: Sequence[Future[None]], tick: Callable[[], None]) -> None:
        while wait(sending, timeout=_TICK_S).not_done:
            tick()

    def _send(
        self,
        sstable: StreamedSSTable,
        node: Node,
        sessions: list[StreamSession],
        stop: threading.Event,
    ) -> None:
        failed_s = time.monotonic() - self._failed_at.get(node, -FAILED_S)
        pauses = PAUSES_S if failed_s >= FAILED_S else ()
        for pause_s in (*pauses, None):
            session = StreamSession(node, self._tls)
            sessions.append(session)
            if stop.is_set():
                session.abort()
            try:
                session.send(sstable)
                return
            except Transient:
                if pause_s is None or stop.wait(pause_s):
                    raise
                self.retries += 1


def why(missed: Mapping[Node, RinghaulError]) -> str:
    """Return in words which nodes did not take rows."""
    return "; ".join(str(error) for _, error in sorted(missed.items()))

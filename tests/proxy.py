"""A TCP proxy in front of one server, for faults of connections and for distance.

It forwards bytes both ways, if wanted some time later, until a test requests a fault. Two threads a
connection, four with a delay; blocking sockets.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

Address = tuple[str, int]

READ_BYTES = 64 * 1024


class _Link(NamedTuple):
    """A client's connection and its connection to the server."""

    client: socket.socket
    server: socket.socket

    def end(self) -> None:
        """Shut both down, which wakes waiting threads."""
        for connection in self:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Later:
    """Sends data some time after it came, in a thread."""

    def __init__(self, to: socket.socket, delay_s: float) -> None:
        self._to, self._delay_s = to, delay_s
        self._data: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, data: bytes) -> None:
        self._data.put((time.monotonic() + self._delay_s, data))

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                due_s, data = self._data.get()
                if not data:
                    return
                time.sleep(max(due_s - time.monotonic(), 0.0))
                self._to.sendall(data)


class Proxy:
    """Listens until `stop`; see the module."""

    def __init__(self, listen: Address, target: Address, delay_s: float = 0.0) -> None:
        """`delay_s`: how much later bytes arrive, each way."""
        self.cut = 0  #: connections that were cut in the middle of an answer or a request
        self._target, self._delay_s = target, delay_s
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._doomed: set[_Link] = set()
        self._requests: Callable[[bytes], bytes | None] | None = None
        self._answers: Callable[[bytes], bytes] = lambda data: data
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(listen)
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def cut_answers(self) -> None:
        """On each open connection send half of the next answer, then close it."""
        with self._lock:
            self._doomed |= self._links

    def filter_requests(self, change: Callable[[bytes], bytes | None]) -> None:
        """Pass what clients send through a function; if it returns None, the connection is cut."""
        self._requests = change

    def filter_answers(self, change: Callable[[bytes], bytes]) -> None:
        """Pass what the server sends through a function."""
        self._answers = change

    def stop(self) -> None:
        """End the listener and all connections."""
        # Shutdown, unlike close, wakes the thread that waits on the listener.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for link in self._links:
                link.end()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _start(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        # If the server is down, close the client's connection at once.
        with client, suppress(OSError), socket.create_connection(self._target, 5) as server:
            server.settimeout(None)
            link = _Link(client, server)
            for connection in link:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._links.add(link)
            to_client, to_server = self._ways(link)
            answers = self._start(self._forward_answers, link, to_client)
            with suppress(OSError):
                while data := client.recv(READ_BYTES):
                    changed = data if self._requests is None else self._requests(data)
                    if changed is None:
                        self.cut += 1
                        break
                    to_server(changed)
            link.end()
            if self._delay_s:
                to_client(b"")
                to_server(b"")
            answers.join()
            with self._lock:
                self._links.discard(link)

    def _ways(self, link: _Link) -> tuple[Callable[[bytes], None], Callable[[bytes], None]]:
        """Return what sends to the client, and what sends to the server."""
        if not self._delay_s:
            return link.client.sendall, link.server.sendall
        return _Later(link.client, self._delay_s).send, _Later(link.server, self._delay_s).send

    def _forward_answers(self, link: _Link, to_client: Callable[[bytes], None]) -> None:
        with suppress(OSError):
            while data := link.server.recv(READ_BYTES):
                with self._lock:
                    if link in self._doomed:
                        self._doomed.discard(link)
                        self.cut += 1
                        link.client.sendall(data[: len(data) // 2])
                        break
                to_client(self._answers(data))
        link.end()


@contextmanager
def proxied(target: Address, delay_s: float = 0.0) -> Iterator[tuple[Proxy, int]]:
    """Run a proxy during the block; gives it and its port on 127.0.0.1."""
    proxy = Proxy(("127.0.0.1", 0), target, delay_s)
    try:
        yield proxy, proxy.port
    finally:
        proxy.stop()

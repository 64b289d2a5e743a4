"""The driver's connection, fixed for servers that close it in the middle of a response.

The driver mistakes the end of the stream for more data once part of a response has come: its loop
spins, and callers wait until the request times out. Here the connection ends as soon as the stream
does, and everything pending on it fails at once.

It also reads larger pieces: a response of 1 MiB took 256 calls in 4 KiB steps. And if requests are
to be compressed, it refuses a server that cannot: the driver would silently do without, if it and
the server have no compression in common.
"""

from __future__ import annotations

import ssl
from typing import Any

from cassandra.connection import ConnectionException, ConnectionShutdown
from cassandra.io.libevreactor import LibevConnection, libev
from cassandra.protocol import SupportedMessage

#: How a `CompressionNotOffered` is known by its text, in the report of another host.
NOT_OFFERED = "the node does not offer"
#: Errors that mean that there is nothing to read yet.
_NOTHING_YET = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ConnectionNotTaken(ConnectionShutdown):  # type: ignore[misc]
    """The node closed the connection before it answered anything.

    Cassandra does so when it has reached its limit of connections (`ConnectionLimitHandler`).
    """


class CompressionNotOffered(ConnectionException):  # type: ignore[misc]
    """The node does not support the compression of requests that is set."""


class PromptConnection(LibevConnection):  # type: ignore[misc]
    """A driver connection that fails its pending requests as soon as the peer closes it.

    Runs in the driver's event loop; see the module."""

    in_buffer_size = 64 * 1024
    heard = False  #: whether any data has come

    def handle_read(self, watcher: Any, revents: int, errno: int | None = None) -> None:
        """Read what has come; the driver calls this when the socket is readable."""
        if revents & libev.EV_ERROR:
            super().handle_read(watcher, revents, errno)
            return
        ended = False
        try:
            while not ended:
                data = self._socket.recv(self.in_buffer_size)
                ended = not data
                self._iobuf.write(data)
                if len(data) < self.in_buffer_size:
                    break
        except _NOTHING_YET:
            pass
        except OSError as error:
            self.defunct(error)
            return
        if self._iobuf.tell():
            self.heard = True
            self.process_io_buffer()
        if ended:
            # Not `close`: the driver would wait for the rest of a handshake, and a pool would not
            # learn the reason.
            self.defunct(ConnectionShutdown(f"{self.endpoint} has closed the connection"))

    def _handle_options_response(self, options_response: Any) -> None:
        if isinstance(options_response, SupportedMessage) and isinstance(self.compression, str):
            offered = options_response.options.get("COMPRESSION", [])
            if self.compression not in offered:
                words = f"it offers {', '.join(sorted(offered))}" if offered else "it offers none"
                self.defunct(
                    CompressionNotOffered(
                        f"the node does not offer {self.compression} for requests, {words}"
                    )
                )
                return
        super()._handle_options_response(options_response)

    def defunct(self, exc: BaseException) -> None:
        """Give the connection up: `ConnectionNotTaken` if it ended before any data.

        Not in TLS, where such an end is about the handshake.
        """
        ended = isinstance(exc, (ConnectionResetError, BrokenPipeError, ConnectionShutdown))
        if ended and not self.heard and self.ssl_context is None:
            exc = ConnectionNotTaken(f"{self.endpoint} closed the connection before it answered")
        super().defunct(exc)

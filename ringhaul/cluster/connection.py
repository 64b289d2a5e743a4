"""The driver's connection, mended where the other side ends it in the middle of an answer.

The driver's own takes the end of the stream for more of the answer while some of it has come: its
loop spins, and whoever waits for the answer does so until the request's time-out. Here the
connection is over as soon as the stream is, and everything asked on it fails at once.

It also reads more at a time: an answer of 1 MiB took 256 calls in 4 KiB steps.
"""

from __future__ import annotations

import ssl
from typing import Any

from cassandra.connection import ConnectionShutdown
from cassandra.io.libevreactor import LibevConnection, libev

#: What the system says where there is nothing to read yet.
_NOTHING_YET = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ConnectionNotTaken(ConnectionShutdown):  # type: ignore[misc]
    """The node closed the connection before it answered anything.

    So does Cassandra when it has as many connections as it may have (`ConnectionLimitHandler`).
    """


class PromptConnection(LibevConnection):  # type: ignore[misc]
    """See the module. In the driver's event loop, as all that it is made of."""

    in_buffer_size = 64 * 1024
    heard = False  #: something has come

    def handle_read(self, watcher: Any, revents: int, errno: int | None = None) -> None:
        """Take what has come; the driver calls this when there is something."""
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
            # know why.
            self.defunct(ConnectionShutdown(f"{self.endpoint} has closed the connection"))

    def defunct(self, exc: BaseException) -> None:
        """The connection is of no more use. In TLS an end like this is about the handshake."""
        ended = isinstance(exc, (ConnectionResetError, BrokenPipeError, ConnectionShutdown))
        if ended and not self.heard and self.ssl_context is None:
            exc = ConnectionNotTaken(f"{self.endpoint} closed the connection before it answered")
        super().defunct(exc)

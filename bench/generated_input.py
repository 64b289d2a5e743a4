"""A large CSV that is never stored: a web server on loopback makes the bytes of each request.

All lines have one length, so any range can be made at once. Their values compress well.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Columns of the table, and of the lines, which have no header.
COLUMNS = ("id", "score", "note")
SCHEMA = "id bigint, score int, note text, PRIMARY KEY (id)"
FIRST_ID = 10**11
#: `id,score,note` and a line end: digits of both numbers, and the note.
_ID_DIGITS, _SCORE_DIGITS, _NOTE_BYTES = 12, 9, 176
LINE_BYTES = _ID_DIGITS + _SCORE_DIGITS + _NOTE_BYTES + 3
_WORDS = ("delivered ", "returned ", "cancelled ", "in transit ", "on hold ", "lost ", "new ")
_PIECE_LINES = 20_000


def ids(first: int, count: int) -> NDArray[np.int64]:
    """Return the keys of some records, by their numbers from 0."""
    return np.arange(FIRST_ID + first, FIRST_ID + first + count, dtype=np.int64)


def scores(first: int, count: int) -> NDArray[np.int64]:
    """Return the scores of some records."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    found: NDArray[np.int64] = numbers * 7_919 % 899_999_963 + 10 ** (_SCORE_DIGITS - 1)
    return found


def note(number: int) -> str:
    """Return the note of a record."""
    word = _WORDS[number % len(_WORDS)]
    return (word * _NOTE_BYTES)[:_NOTE_BYTES]


def lines(first: int, count: int) -> NDArray[np.uint8]:
    """Return the lines of some records, of shape (count, LINE_BYTES)."""
    notes = np.array([list(note(n).encode()) for n in range(len(_WORDS))], np.uint8)
    out = np.full((count, LINE_BYTES), ord(","), np.uint8)
    _put_digits(out[:, :_ID_DIGITS], ids(first, count))
    at = _ID_DIGITS + 1
    _put_digits(out[:, at : at + _SCORE_DIGITS], scores(first, count))
    out[:, at + _SCORE_DIGITS + 1 : -1] = notes[np.arange(first, first + count) % len(_WORDS)]
    out[:, -1] = ord("\n")
    return out


def _put_digits(out: NDArray[np.uint8], numbers: NDArray[np.int64]) -> None:
    for place in range(out.shape[1] - 1, -1, -1):
        numbers, digits = np.divmod(numbers, 10)
        out[:, place] = digits + ord("0")


def part(first: int, last: int) -> Iterator[bytes]:
    """Yield the bytes from `first` to before `last` of the file."""
    while first < last:
        record = first // LINE_BYTES
        count = min(_PIECE_LINES, -(-last // LINE_BYTES) - record)
        skipped = first - record * LINE_BYTES
        data = lines(record, count).tobytes()[skipped : last - record * LINE_BYTES]
        yield data
        first += len(data)


class _Generator(BaseHTTPRequestHandler):
    """Serve ranges of a file of so many bytes."""

    protocol_version = "HTTP/1.1"

    def __init__(self, size_bytes: int, *rest: Any) -> None:
        self._size_bytes = size_bytes
        super().__init__(*rest)

    def handle(self) -> None:
        with suppress(ConnectionError):  # from a client that has read enough
            super().handle()

    def do_HEAD(self) -> None:
        self._begin(200, self._size_bytes)

    def do_GET(self) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-"))
        assert wanted is not None
        first = int(wanted[1])
        last = min(int(wanted[2] or self._size_bytes), self._size_bytes - 1)
        self._begin(206, last + 1 - first, f"bytes {first}-{last}/{self._size_bytes}")
        for data in part(first, last + 1):
            self.wfile.write(data)

    def _begin(self, code: int, length: int, content_range: str = "") -> None:
        self.send_response(code)
        self.send_header("ETag", '"1"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Log nothing."""


@contextmanager
def served(records: int) -> Iterator[str]:
    """Yield the URL of a CSV with so many records."""
    handler = partial(_Generator, records * LINE_BYTES)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/generated.csv"
    finally:
        server.shutdown()
        server.server_close()

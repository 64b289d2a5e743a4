"""The grammar of records as a state machine, whose cost does not depend on the bytes.

Compiled, it takes some 2 ns a byte; where few bytes mean anything, plain Python jumps from one such
byte to the next, without the 60 MB that numba takes. It handles what costs `records.py` most, whose
methods need time and memory for each quote and escape: a record that may be hundreds of MiB long
and hold nothing else, and buffers that are full of them. From one window of a record to the next
only a state and the place of the last opening quote are carried, so `tick` can be called between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringhaul.formats.dialect import BLANKS, CsvDialect

#: Bytes between two ticks: some 10 ms compiled, half a second otherwise.
WINDOW_BYTES = 2**22
#: Below this, plain Python takes less time than loading numba.
COMPILED_BYTES_MIN = 2**17
#: Changes of the state in a window up to which plain Python follows them: some 2 ms.
JUMPS_MAX = 2**12

Tick = Callable[[], None]

#: What the bytes so far mean for the next one. In the first two states a quote opens.
_RECORD_BEGINS, _FIELD_BEGINS, _PLAIN, _QUOTED, _QUOTE_IN_QUOTED = range(5)
_ESCAPED, _QUOTED_ESCAPED, _COMMENT, _END = range(5, 9)
#: Later states: how many bytes of a delimiter of several bytes were read.
_IN_DELIMITER = _END + 1
#: A line end in one of these states does not end the record. A state is less than 256.
_HIDING = np.isin(np.arange(256), (_QUOTED, _ESCAPED, _QUOTED_ESCAPED))

#: (end or -1, state, place of the last opening quote or -1)
_Walked = tuple[int, int, int]


class FirstRecord(NamedTuple):
    """The record at the start of a buffer, which may be hundreds of MiB long."""

    #: Where its line end begins; None: not in the buffer.
    end: int | None
    #: The quote that is open at the end of the buffer, if the record does not end in it.
    open_quote: int | None


def no_tick() -> None:
    """Do nothing between two windows."""


def first_record(
    buffer: bytes,
    dialect: CsvDialect,
    *,
    final: bool,
    size_bytes: int | None = None,
    tick: Tick = no_tick,
) -> FirstRecord:
    """Find the end of the first record of `buffer[:size_bytes]`, which begins at a record boundary.

    Uses no memory, whatever the buffer holds, and calls `tick` after each `WINDOW_BYTES`. Finds the
    same records as `scan_records`. `final`: nothing follows the buffer.
    """
    length = len(buffer) if size_bytes is None else min(size_bytes, len(buffer))
    ends_in_cr = dialect.line_end == "any" and buffer.endswith(b"\r", 0, length)
    length -= not final and ends_in_cr
    specials = [c.encode() for c in (dialect.quote, dialect.escape) if c is not None]
    state, open_quote = _RECORD_BEGINS, -1
    if any(buffer.find(special, 0, length) >= 0 for special in specials):
        table = _table(dialect)
        for begin in range(0, length, WINDOW_BYTES):
            stop = min(begin + WINDOW_BYTES, length)
            end, state, open_quote = _walk(buffer, table, begin, stop, state, open_quote)
            if end >= 0:
                return FirstRecord(end, None)
            tick()
    else:
        ends = (b"\n", b"\r") if dialect.line_end == "any" else (b"\n",)
        found = [buffer.find(end, 0, length) for end in ends]
        if max(found) >= 0:
            return FirstRecord(min(at for at in found if at >= 0), None)
    if _is_open(state):
        return FirstRecord(None, open_quote)
    return FirstRecord(length if final else None, None)


def hidden_bytes(
    buffer: bytes, length: int, dialect: CsvDialect
) -> tuple[npt.NDArray[np.bool_], int | None]:
    """Return for each byte of `buffer[:length]` whether it is inside quotes or escaped.

    Also returns the quote that is open at the end. Takes a byte or two of memory per byte.
    """
    view, table = (np.frombuffer(data, np.uint8) for data in (buffer, _table(dialect)))
    states = np.empty(length, np.uint8)
    if length < COMPILED_BYTES_MIN:
        state, open_quote = note_states(buffer, _table(dialect), states)
    else:
        state, open_quote = _compiled().note_states(view, table, states)
    return _HIDING[states], open_quote if _is_open(state) else None


def _is_open(state: int) -> bool:
    return state in (_QUOTED, _QUOTED_ESCAPED)


@lru_cache(maxsize=16)
def _table(dialect: CsvDialect) -> bytes:
    """Return the following state for each state and byte."""
    delimiter = dialect.raw_delimiter
    partial = range(_IN_DELIMITER, _IN_DELIMITER + len(delimiter) - 1)
    rows = {state: bytearray([_PLAIN] * 256) for state in (*range(_IN_DELIMITER), *partial)}
    rows[_QUOTED] = bytearray([_QUOTED] * 256)
    rows[_QUOTED_ESCAPED] = bytearray([_QUOTED] * 256)
    rows[_COMMENT] = bytearray([_COMMENT] * 256)
    unquoted = (_RECORD_BEGINS, _FIELD_BEGINS, _PLAIN, _QUOTE_IN_QUOTED, *partial)
    for state in unquoted:
        read = delimiter[: max(0, state - _END)]
        for byte in set(delimiter):
            rows[state][byte] = _after(read + bytes([byte]), delimiter)
    if dialect.trim != "none":
        for state in (_RECORD_BEGINS, _FIELD_BEGINS):
            for blank in BLANKS.encode():
                if blank not in delimiter:
                    rows[state][blank] = _FIELD_BEGINS
    for state in (*unquoted, _COMMENT):
        for line_end in b"\r\n" if dialect.line_end == "any" else b"\n":
            rows[state][line_end] = _END
    if dialect.quote is not None:
        for state in (_RECORD_BEGINS, _FIELD_BEGINS, _QUOTE_IN_QUOTED):
            rows[state][ord(dialect.quote)] = _QUOTED
        rows[_QUOTED][ord(dialect.quote)] = _QUOTE_IN_QUOTED
    if dialect.bare_escape is not None:
        for state in unquoted:
            rows[state][ord(dialect.bare_escape)] = _ESCAPED
    if dialect.escape is not None:
        rows[_QUOTED][ord(dialect.escape)] = _QUOTED_ESCAPED
    if dialect.comment is not None:
        rows[_RECORD_BEGINS][ord(dialect.comment)] = _COMMENT
    return b"".join(rows[state] for state in sorted(rows))


def _after(read: bytes, delimiter: bytes) -> int:
    """Return the state after the bytes `read`, the last of which may end a delimiter."""
    if read == delimiter:
        return _FIELD_BEGINS
    length = next(n for n in range(len(read), -1, -1) if read.endswith(delimiter[:n]))
    return _END + length if length else _PLAIN


def _walk(
    buffer: bytes, table: bytes, begin: int, end: int, state: int, open_quote: int
) -> _Walked:
    if end - begin < COMPILED_BYTES_MIN:
        return walk(buffer, table, begin, end, state, open_quote)
    begin, (found, state, open_quote) = _jump(buffer, table, begin, end, state, open_quote)
    if begin == end or found >= 0:
        return found, state, open_quote
    views = (np.frombuffer(data, np.uint8) for data in (buffer, table))
    return _compiled().walk(*views, begin, end, state, open_quote)


def _jump(
    buffer: bytes, table: bytes, begin: int, end: int, state: int, open_quote: int
) -> tuple[int, _Walked]:
    """Process bytes as `walk` does, up to `JUMPS_MAX` changes of the state.

    Returns the place of the first byte that is not processed, and what `walk` returns.
    """
    changes = _changes(table)
    for _ in range(JUMPS_MAX):
        found = changes[state].search(buffer, begin, end)
        if found is None:
            return end, (-1, state, open_quote)
        at = found.start()
        following = table[state * 256 + buffer[at]]
        if following == _END:
            return at, (at, _END, open_quote)
        if following == _QUOTED and state <= _FIELD_BEGINS:
            open_quote = at
        state, begin = following, at + 1
    return begin, (-1, state, open_quote)


@lru_cache(maxsize=16)
def _changes(table: bytes) -> list[re.Pattern[bytes]]:
    """Return for each state a pattern of the bytes that change it."""
    rows = [table[begin : begin + 256] for begin in range(0, len(table), 256)]
    changing = [[bytes([b]) for b in range(256) if row[b] != at] for at, row in enumerate(rows)]
    return [re.compile(b"[%s]" % b"".join(map(re.escape, of))) for of in changing]


def walk(buffer: Any, table: Any, begin: int, end: int, state: int, open_quote: int) -> _Walked:
    """Process the bytes `buffer[begin:end]`, up to the end of the record.

    Returns the place of that end or -1, the state after the last byte, and the place of the last
    opening quote or -1.
    """
    for at in range(begin, end):
        following = table[state * 256 + buffer[at]]
        if following != state:
            if following == _END:
                return at, _END, open_quote
            if following == _QUOTED and state <= _FIELD_BEGINS:
                open_quote = at
            state = following
    return -1, state, open_quote


def note_states(buffer: Any, table: Any, states: Any) -> tuple[int, int]:
    """Note the state before each byte of `buffer`, for as many bytes as fit in `states`.

    Returns the state after the last one, and the place of the last opening quote or -1.
    """
    state, open_quote = _RECORD_BEGINS, -1
    for at in range(states.size):
        states[at] = state
        following = table[state * 256 + buffer[at]]
        if following == _END:
            following = _RECORD_BEGINS
        if following == _QUOTED and state <= _FIELD_BEGINS:
            open_quote = at
        state = following
    return state, open_quote


class _Compiled(NamedTuple):
    """The compiled functions of this module, for arrays of bytes."""

    walk: Callable[..., _Walked]
    note_states: Callable[..., tuple[int, int]]


@lru_cache(maxsize=1)
def _compiled() -> _Compiled:
    from numba import types

    from ringhaul.cql.compiled import COUNT, PAGE, UINT8S, kernel

    walked = types.UniTuple(COUNT, 3)  # type: ignore[no-untyped-call]
    noted = types.UniTuple(COUNT, 2)  # type: ignore[no-untyped-call]
    return _Compiled(
        kernel(walked(PAGE, PAGE, COUNT, COUNT, COUNT, COUNT))(walk),
        kernel(noted(PAGE, PAGE, UINT8S))(note_states),
    )


def warm_up() -> None:
    """Load the compiled functions, or compile them."""
    _compiled()

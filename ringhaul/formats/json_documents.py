"""Find JSON objects that are not one on each line: over several lines, one after the other, in one
array, separated by commas or record separators (RFC 7464), with comments if those are allowed.

A record is an object at the top level. Between records only blanks, commas, brackets, record
separators and comments are skipped; any other text there is also a record, which is rejected when
it is parsed. Where a record begins, nothing of what came before matters: units and blocks may begin
at any record, also in the middle of an array of any size. Brackets are counted: only an open
bracket at the end of a file shows that the file was cut short between two objects.

The walk over the bytes is compiled for all but small buffers. It takes constant memory, and some
nanoseconds for each byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ringhaul.formats.record_end import COMPILED_BYTES_MIN

#: What `walk` is within: what separates records, an object, text that is neither.
_NOTHING, _OBJECT, _STRAY = range(3)
#: What `walk` returns if nothing follows and a comment is open.
_IN_COMMENT = 2

Offsets = npt.NDArray[np.int64]
_Walked = tuple[int, int, int, int, int]


class Documents(NamedTuple):
    """The complete records of a buffer."""

    starts: Offsets
    ends: Offsets
    #: The first record or comment that is not complete begins here; else the buffer's end.
    consumed_bytes: int
    #: Nesting of the brackets between the records, up to `consumed_bytes`.
    nesting: Nesting


class Nesting(NamedTuple):
    """How far arrays are open after some bytes, and where fewest were."""

    depth: int = 0
    lowest: int = 0
    in_comment: bool = False  #: nothing follows, and a comment `/*` is not closed

    def and_then(self, depth: int, lowest: int, in_comment: bool) -> Nesting:
        """Return the nesting after further bytes, whose own nesting has these values."""
        return Nesting(self.depth + depth, min(self.lowest, self.depth + lowest), in_comment)


def scan_documents(
    buffer: bytes, length: int, *, comments: bool, final: bool, first: bool = False
) -> Documents:
    """Find the records of `buffer[:length]`, which begins at a record or between two.

    `final`: nothing follows the buffer. An object that is not closed is left unconsumed even then.
    `first`: stop after the first record.
    """
    # A record takes two bytes at least, with what separates it from the next: `{}` or `1,`.
    room = 1 if first else min(length // 2 + 1, 2**16)
    starts: list[Offsets] = []
    ends: list[Offsets] = []
    at, nesting = 0, Nesting()
    view = np.frombuffer(buffer, np.uint8)
    compiled = length >= COMPILED_BYTES_MIN
    while True:
        found = np.empty((2, room), np.int64)
        run: Callable[..., _Walked] = _compiled() if compiled else walk
        data: Any = view if compiled else buffer
        count, at, complete, depth, lowest = run(
            data, at, length, comments, final, found[0], found[1]
        )
        nesting = nesting.and_then(depth, lowest, complete == _IN_COMMENT)
        starts.append(found[0, :count])
        ends.append(found[1, :count])
        if complete or (first and count):
            return Documents(np.concatenate(starts), np.concatenate(ends), at, nesting)


def walk(
    buffer: Any, begin: int, length: int, comments: bool, final: bool, starts: Any, ends: Any
) -> _Walked:
    """Note where records begin and end, as many as fit.

    Returns the number of records, the place where the walk stopped, whether nothing but an
    incomplete record follows (`_IN_COMMENT`: nothing does, and a comment is open at the end), and
    the depth and lowest depth of arrays in the bytes before that place.
    """
    count, state, start, depth, at = 0, _NOTHING, begin, 0, begin
    arrays, lowest = 0, 0
    in_string, comment, opened = False, 0, 0
    while at < length:
        byte = buffer[at]
        if comment == 1:  # up to the end of the line
            if byte == 0x0A or byte == 0x0D:
                comment = 0
        elif comment == 2:  # up to */
            if byte == 0x2F and at > opened + 2 and buffer[at - 1] == 0x2A:
                comment = 0
        elif comments and not in_string and state != _STRAY and (byte == 0x23 or byte == 0x2F):
            following = buffer[at + 1] if at + 1 < length else 0x2F
            opened = at
            if byte == 0x23 or following == 0x2F:
                comment = 1
            elif following == 0x2A:
                comment = 2
            elif state == _NOTHING:
                if count == starts.size:
                    return count, at, 0, arrays, lowest
                state, start = _STRAY, at
        elif state == _OBJECT:
            if in_string:
                if byte == 0x5C:  # a backslash: the next byte is ordinary
                    at += 1
                elif byte == 0x22:
                    in_string = False
            elif byte == 0x22:
                in_string = True
            elif byte == 0x7B:  # {
                depth += 1
            elif byte == 0x7D:  # }
                depth -= 1
                if depth == 0:
                    starts[count], ends[count] = start, at + 1
                    count += 1
                    state = _NOTHING
        else:
            separates = byte <= 0x20 or byte == 0x2C or byte == 0x5B or byte == 0x5D  # , [ ]
            if byte == 0x5B:
                arrays += 1
            elif byte == 0x5D:
                arrays -= 1
                lowest = min(lowest, arrays)
            if state == _STRAY and (separates or byte == 0x7B):
                starts[count], ends[count] = start, at
                count += 1
                state = _NOTHING
            if state == _NOTHING and not separates:
                if count == starts.size:
                    return count, at, 0, arrays, lowest
                state, start, depth = (_OBJECT if byte == 0x7B else _STRAY), at, 1
        at += 1
    if state == _STRAY and final:
        starts[count], ends[count] = start, length
        count += 1
    elif state != _NOTHING:
        return count, start, 1, arrays, lowest
    elif comment != 0 and not final:
        return count, opened, 1, arrays, lowest
    return count, length, _IN_COMMENT if comment == 2 else 1, arrays, lowest


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., _Walked]:
    from numba import types

    from ringhaul.cql.compiled import COUNT, FLAG, INT64S, PAGE, kernel

    walked = types.UniTuple(COUNT, 5)  # type: ignore[no-untyped-call]
    return kernel(walked(PAGE, COUNT, COUNT, FLAG, FLAG, INT64S, INT64S))(walk)


def warm_up() -> None:
    """Load the compiled function, or compile it."""
    _compiled()


_COMMENT_OR_STRING = re.compile(
    # What is not closed goes to the end: trying again at each quote within would be quadratic.
    rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
    rb"|(?P<comment>//[^\r\n]*+|#[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))",
    re.S,
)


def without_comments(text: bytes) -> bytes:
    """Replace the comments of a JSON text by blanks, so that positions in it stay."""
    if b"/" not in text and b"#" not in text:
        return text
    return _COMMENT_OR_STRING.sub(
        lambda found: found[0] if found["comment"] is None else b" " * len(found[0]), text
    )

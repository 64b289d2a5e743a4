"""Find where records begin and end. Shared by the splitter and the reader.

A scan never looks at fields. It only needs to know which line ends are *hidden*, that is inside
quotes or after an escape character. There are three ways to find out, fastest first:

1. No quote and no escape in the buffer: no line end is hidden.
2. Only quotes, each opening one right after a delimiter, a line end or another quote: a byte is
   inside quotes if an odd number of quotes precedes it. (An opening quote after a quote is
   the second half of a doubled one: parity flips twice, with nothing in between.)
3. Anything else, such as quotes in the middle of a field, escapes, quotes in comments: one
   regular expression, every quantifier possessive so that its time is linear, walks over the
   buffer and stops only at quoted fields that hold a line end and at escaped line ends. A buffer
   with very many quotes and escapes is left to the state machine of `record_end.py`.

With an escape character but neither quotes nor comments, a line end is hidden if an odd number of
escape characters stands right before it: in such a buffer nothing else matters.

A delimiter of several bytes, and blanks that may precede a quote, are left to that state machine
where the second way cannot tell.

Where more than one of these applies, all give the same answer. A property test checks that, and
compares them with pyarrow's own parser.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.json_documents import Nesting, scan_documents
from ringhaul.formats.record_end import hidden_bytes

Offsets = npt.NDArray[np.int64]
#: Tells for each of the given offsets, in order, whether its byte is inside quotes or escaped.
Hidden = Callable[[Offsets], npt.NDArray[np.bool_]]

LF, CR = 10, 13
#: With this many quotes and escapes in a buffer, the walk takes longer than the state machine takes
#: to load.
DENSE_COUNT_MIN = 2**19
_NO_OFFSETS: Offsets = np.empty(0, np.int64)


class Scan(NamedTuple):
    """The records of a buffer, as offsets into it."""

    #: First byte of each record.
    starts: Offsets
    #: One past the last byte of each record; its line end is not part of it.
    ends: Offsets
    #: The first incomplete record begins at or after this offset; blank lines are consumed.
    consumed_bytes: int
    #: The quote that is open at the end of the buffer; None: no quote is open.
    open_quote: int | None
    #: Nesting of JSON up to `consumed_bytes`.
    nesting: Nesting = Nesting()


def scan_records(buffer: bytes, dialect: CsvDialect, *, final: bool) -> Scan:
    """Find the records of `buffer`, which begins at a record boundary.

    `final`: nothing follows the buffer, so a last record without a line end is complete, unless
    a quote is open in it. Otherwise such a record is left unconsumed, and so is a CR at the end,
    since an LF may follow.
    """
    if dialect.json_layout != "lines":
        return _scan_json(buffer, dialect, final=final)
    # Excluded by its length, because cutting it off would copy the buffer.
    ends_in_cr = dialect.line_end == "any" and buffer.endswith(b"\r")
    length = len(buffer) - (not final and ends_in_cr)
    if length == 0:
        return Scan(_NO_OFFSETS, _NO_OFFSETS, 0, None)
    view = np.frombuffer(buffer, np.uint8, length)
    hidden, open_quote, by_parity = _hidden(buffer, view, dialect)
    starts, ends, consumed_bytes = _lines(buffer, view, hidden, dialect.line_end)
    comment = None if dialect.comment is None else ord(dialect.comment)
    if comment is not None and by_parity and _any_comment(view, starts, consumed_bytes, comment):
        # Quotes in a comment do not count, so parity may be wrong from there on.
        hidden, open_quote = _hidden_exactly(buffer, view, dialect)
        starts, ends, consumed_bytes = _lines(buffer, view, hidden, dialect.line_end)

    if final and consumed_bytes < length and open_quote is None:
        starts = np.append(starts, consumed_bytes)
        ends = np.append(ends, length)
        consumed_bytes = length
    is_record = starts < ends
    if comment is not None:
        is_record &= view[starts] != comment
    if dialect.end_of_data is not None:
        is_record &= ~_end_of_data(view, starts, ends, ord(dialect.end_of_data[0]))
    if not is_record.all():
        starts, ends = starts[is_record], ends[is_record]
    return Scan(starts, ends, consumed_bytes, open_quote)


def _scan_json(buffer: bytes, dialect: CsvDialect, *, final: bool, first: bool = False) -> Scan:
    comments = dialect.json_layout == "commented"
    found = scan_documents(buffer, len(buffer), comments=comments, final=final, first=first)
    return Scan(found.starts, found.ends, found.consumed_bytes, None, found.nesting)


def first_document(buffer: bytes, dialect: CsvDialect) -> int | None:
    """Return where the JSON object at the start of a buffer ends; None: not in the buffer."""
    ends = _scan_json(buffer, dialect, final=False, first=True).ends
    return int(ends[0]) if len(ends) else None


def is_record(buffer: bytes, end: int, dialect: CsvDialect) -> bool:
    """Return whether the line `buffer[:end]`, which is not blank, is a record to `scan_records`."""
    if dialect.comment is not None and buffer.startswith(dialect.comment.encode()):
        return False
    mark = dialect.end_of_data
    return not (mark is not None and end == 2 and buffer[:2] == mark.encode())


def _end_of_data(
    view: npt.NDArray[np.uint8], starts: Offsets, ends: Offsets, escape: int
) -> npt.NDArray[np.bool_]:
    r"""Return which lines are ``\.`` alone, the end of data to PostgreSQL's COPY."""
    found: npt.NDArray[np.bool_] = ends - starts == 2
    for i, byte in enumerate((escape, ord("."))):
        found[found] = view[starts[found] + i] == byte
    return found


def count_line_ends(buffer: bytes, begin: int, end: int, line_end: str = "any") -> int:
    """Count the physical line ends (LF, CRLF as one, lone CR) in `buffer[begin:end]`.

    With the `line_end` "lf" of a dialect, only LF counts.
    """
    view = np.frombuffer(buffer, np.uint8)[begin:end]
    is_lf = view == LF
    count = int(np.count_nonzero(is_lf))
    if line_end == "lf" or buffer.find(b"\r", begin, end) < 0:
        return count
    is_cr = view == CR
    return count + int(np.count_nonzero(is_cr)) - int(np.count_nonzero(is_cr[:-1] & is_lf[1:]))


def _hidden(
    buffer: bytes, view: npt.NDArray[np.uint8], dialect: CsvDialect
) -> tuple[Hidden | None, int | None, bool]:
    """Return what hides line ends (None: nothing), the open quote, and whether parity was used."""
    length = len(view)
    has_escape = dialect.escape is not None and _contains(buffer, dialect.escape, length)
    has_quote = dialect.quote is not None and _contains(buffer, dialect.quote, length)
    if not has_quote and not (has_escape and dialect.bare_escape is not None):
        return None, None, False
    if not has_escape and dialect.quote is not None:
        quotes = np.flatnonzero(view == ord(dialect.quote))
        if _all_openings_proper(view, quotes, dialect):
            return _by_parity(quotes), _open_by_parity(view, quotes), True
    if dialect.bare_escape is not None and not has_quote and dialect.comment is None:
        return _by_escapes(view, ord(dialect.bare_escape)), None, False
    return *_hidden_exactly(buffer, view, dialect), False


def _contains(buffer: bytes, character: str, length: int) -> bool:
    return buffer.find(character.encode(), 0, length) >= 0


def _all_openings_proper(view: npt.NDArray[np.uint8], quotes: Offsets, dialect: CsvDialect) -> bool:
    opening = quotes[::2]
    if opening[0] == 0:
        opening = opening[1:]
    delimiter = dialect.raw_delimiter
    proper = np.zeros(256, np.bool_)
    proper[[LF, ord(dialect.quote or "")]] = True
    proper[CR] |= dialect.line_end == "any"
    if len(delimiter) > 1:
        opening = opening[~proper[view[opening - 1]]]
        return _behind_delimiter(view, opening, delimiter)
    proper[ord(delimiter)] = True
    return bool(proper[view[opening - 1]].all())


def _behind_delimiter(view: npt.NDArray[np.uint8], places: Offsets, delimiter: bytes) -> bool:
    """Return whether a delimiter of several bytes surely ends right before each of `places`.

    Not sure if another one begins a few bytes before it and overlaps it.
    """
    size = len(delimiter)
    begins = places - size
    if (begins < 0).any() or not _all_equal(view, begins, delimiter):
        return False
    overlaps = [n for n in range(1, size) if delimiter.startswith(delimiter[n:])]
    # The earlier one's first `n` bytes are all that would be before this one.
    return not any(_any_equal(view, begins[begins >= n] - n, delimiter[:n]) for n in overlaps)


def _all_equal(view: npt.NDArray[np.uint8], begins: Offsets, text: bytes) -> bool:
    return all(bool((view[begins + i] == byte).all()) for i, byte in enumerate(text))


def _any_equal(view: npt.NDArray[np.uint8], begins: Offsets, text: bytes) -> bool:
    for i, byte in enumerate(text):
        begins = begins[view[begins + i] == byte]
    return bool(len(begins))


def _by_parity(quotes: Offsets) -> Hidden:
    return lambda offsets: (np.searchsorted(quotes, offsets) & 1).astype(np.bool_)


def _by_escapes(view: npt.NDArray[np.uint8], escape: int) -> Hidden:
    """Hide the bytes right after an odd number of escape characters."""

    escapes = np.flatnonzero(view == escape)
    indexes = np.arange(len(escapes))
    begins_run = np.ones(len(escapes), np.bool_)
    begins_run[1:] = np.diff(escapes) != 1
    run_lengths = indexes - np.maximum.accumulate(np.where(begins_run, indexes, 0)) + 1

    def hidden(offsets: Offsets) -> npt.NDArray[np.bool_]:
        last = np.searchsorted(escapes, offsets) - 1
        behind = (last >= 0) & (escapes[last] == offsets - 1)
        odd: npt.NDArray[np.bool_] = behind & (run_lengths[last] & 1).astype(np.bool_)
        return odd

    return hidden


def _open_by_parity(view: npt.NDArray[np.uint8], quotes: Offsets) -> int | None:
    if len(quotes) % 2 == 0:
        return None
    index = len(quotes) - 1
    # Skip doubled quotes: they are inside a field that an earlier quote opened.
    while index >= 2 and quotes[index] == quotes[index - 1] + 1:
        index -= 2
    return int(quotes[index])


def _hidden_exactly(
    buffer: bytes, view: npt.NDArray[np.uint8], dialect: CsvDialect
) -> tuple[Hidden | None, int | None]:
    """Find hidden bytes by the full grammar: walk over the buffer, or read each byte."""
    length = len(view)
    if len(dialect.raw_delimiter) > 1 or dialect.trim != "none":
        is_hidden, open_quote = hidden_bytes(buffer, length, dialect)
        return is_hidden.__getitem__, open_quote
    if length >= DENSE_COUNT_MIN:
        specials = (ord(c) for c in (dialect.quote, dialect.escape) if c is not None)
        if sum(int(np.count_nonzero(view == c)) for c in specials) >= DENSE_COUNT_MIN:
            is_hidden, open_quote = hidden_bytes(buffer, length, dialect)
            return is_hidden.__getitem__, open_quote
    return _walked(buffer, length, dialect)


def _walked(buffer: bytes, length: int, dialect: CsvDialect) -> tuple[Hidden | None, int | None]:
    quote = -1 if dialect.quote is None else ord(dialect.quote)
    begins: list[int] = []
    ends: list[int] = []
    open_quote = None
    for match in _walker(dialect).finditer(buffer, 0, length):
        begin, end = match.span("hides")
        if begin < 0:
            continue
        begins.append(begin)
        ends.append(end)
        if buffer[begin] == quote and match.start("closes") < 0:
            open_quote = begin
    if not begins:
        return None, None
    begin_offsets, end_offsets = np.array(begins, np.int64), np.array(ends, np.int64)

    def hidden(offsets: Offsets) -> npt.NDArray[np.bool_]:
        opened = np.searchsorted(begin_offsets, offsets, "right")
        closed = np.searchsorted(end_offsets, offsets, "right")
        hides: npt.NDArray[np.bool_] = opened > closed
        return hides

    return hidden, open_quote


@lru_cache(maxsize=16)
def _walker(dialect: CsvDialect) -> re.Pattern[bytes]:
    """Return a pattern: bytes that hide nothing, then (`hides`) something that hides line ends."""
    delimiter = re.escape(dialect.raw_delimiter)
    quote, escape, comment = (
        b"" if character is None else re.escape(character.encode())
        for character in (dialect.quote, dialect.escape, dialect.comment)
    )
    line_ends = rb"\r\n" if dialect.line_end == "any" else rb"\n"
    bare = escape if dialect.bare_escape is not None else b""
    plain = [rb"[^%s%s%s]++" % (quote, bare, comment)]
    hiding = []
    if quote:
        opens = rb"%s(?:(?<=[%s%s]%s)|(?<=\A%s))" % (quote, delimiter, line_ends, quote, quote)
        stray = rb"%s(?<![%s%s]%s)(?<!\A%s)" % (quote, delimiter, line_ends, quote, quote)
        text = rb"[^%s%s]*+" % (quote, escape)
        text_in_line = rb"[^%s%s%s]*+" % (quote, escape, line_ends)
        pair, pair_in_line = quote * 2, quote * 2
        if escape:
            pair += rb"|%s[\s\S]" % escape
            pair_in_line += rb"|%s[^%s]" % (escape, line_ends)
        plain.append(
            rb"%s%s(?:(?:%s)%s)*+%s" % (opens, text_in_line, pair_in_line, text_in_line, quote)
        )
        plain.append(stray)
        last = rb"%s?\Z" % escape if escape else rb"\Z"
        hiding.append(
            rb"%s%s(?:(?:%s)%s)*+(?:(?P<closes>%s)|%s)" % (quote, text, pair, text, quote, last)
        )
    else:
        hiding.append(rb"(?!)(?P<closes>)")
    if bare:
        # Behind an escaped character no quote opens and no comment starts.
        plain.append(rb"%s[^%s]%s" % (escape, line_ends, quote and quote + b"?+"))
        inert = rb"[%s%s]?+" % (quote, comment) if quote or comment else b""
        hiding.append(rb"%s[%s]%s" % (escape, line_ends, inert))
    if comment:
        begins_line = rb"(?:(?<=[%s]%s)|(?<=\A%s))" % (line_ends, comment, comment)
        plain.append(rb"%s(?:%s[^%s]*+)?+" % (comment, begins_line, line_ends))
    return re.compile(rb"(?:%s)*+(?P<hides>%s)?+" % (b"|".join(plain), b"|".join(hiding)))


def _lines(
    buffer: bytes, view: npt.NDArray[np.uint8], hidden: Hidden | None, line_end: str
) -> tuple[Offsets, Offsets, int]:
    """Return starts and ends of the lines, also empty ones, and the end of the last line end."""
    ends, nexts = _line_ends(buffer, view, hidden, line_end)
    starts = np.zeros_like(ends)
    starts[1:] = nexts[:-1]
    return starts, ends, int(nexts[-1]) if len(nexts) else 0


def _line_ends(
    buffer: bytes, view: npt.NDArray[np.uint8], hidden: Hidden | None, line_end: str
) -> tuple[Offsets, Offsets]:
    """Return where each line ends that is not hidden, and where the next line begins."""
    lf = np.flatnonzero(view == LF)
    any_cr = line_end == "any" and _contains(buffer, "\r", len(view))
    cr = np.flatnonzero(view == CR) if any_cr else _NO_OFFSETS
    if hidden is not None:
        lf = lf[~hidden(lf)]
        cr = cr[~hidden(cr)]
    if not len(cr):
        return lf, lf + 1
    if len(cr) == len(lf) and np.array_equal(cr + 1, lf):
        return cr, lf + 1
    ends = np.concatenate((cr, np.setdiff1d(lf, cr + 1, assume_unique=True)))
    nexts = np.concatenate((lf + 1, np.setdiff1d(cr + 1, lf, assume_unique=True)))
    return np.sort(ends), np.sort(nexts)


def _any_comment(
    view: npt.NDArray[np.uint8], starts: Offsets, consumed_bytes: int, comment: int
) -> bool:
    if (view[starts] == comment).any():
        return True
    return consumed_bytes < len(view) and int(view[consumed_bytes]) == comment

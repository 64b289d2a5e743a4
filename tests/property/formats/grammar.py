"""A plain second implementation of the CSV grammar: the oracle of the property tests."""

from typing import NamedTuple

from hypothesis import strategies as st

from ringhaul.formats.dialect import CsvDialect

#: One dialect for each code path of the scanner.
DIALECTS = [
    CsvDialect(),
    CsvDialect(quote=None),
    CsvDialect(escape="\\"),
    CsvDialect(comment="#"),
    CsvDialect(escape="\\", comment="#"),
    CsvDialect(quote="'", delimiter="|", escape="^", comment="-"),
    CsvDialect(quote=None, escape="\\", comment="#", delimiter="\t"),
    CsvDialect(quote=None, escape="\\", delimiter="\t"),
    CsvDialect(quote=None, escape="\\", delimiter="\t", escape_style="c"),
    CsvDialect(quote=None, escape="\\", delimiter="\t", escape_style="mysql", line_end="lf"),
    CsvDialect(escape="\\", escape_style="mysql", line_end="lf", null_strings=("\\N", "NULL")),
    CsvDialect(quote=None, escape="\\", delimiter="|", escape_style="postgresql"),
    CsvDialect(quote=None, delimiter="\x01", line_end="lf", null_strings=("\\N",)),
    CsvDialect(escape="\\", escape_style="hive", quote=None, delimiter="\x01"),
    CsvDialect(delimiter="||"),
    CsvDialect(delimiter="<|<", quote="'", comment="#"),
    CsvDialect(delimiter="::", escape="\\", null_strings=("\\N", "NULL"), null_quoted=True),
    CsvDialect(delimiter="|~", quote=None),
    CsvDialect(delimiter="\u00a7", line_end="lf"),
    CsvDialect(trim="text", comment="#"),
    CsvDialect(trim="quoted", null_strings=("NULL", ""), null_quoted=True),
    CsvDialect(trim="text", delimiter="||", escape="^"),
    CsvDialect(trim="quoted", delimiter="\t", quote="'"),
    CsvDialect(null_quoted=True, null_strings=("", "NULL")),
    CsvDialect(escape="\\", escape_style="quoted"),
    CsvDialect(escape="\\", escape_style="quoted", comment="#", delimiter="||", trim="quoted"),
    CsvDialect(escape="^", escape_style="quoted", quote="'", line_end="lf", null_strings=("^N",)),
]


class Record(NamedTuple):
    start: int
    end: int
    #: Offset of the next line.
    next: int
    #: The quote that is open at the end of the text.
    open_quote: int | None


def records(text: bytes, dialect: CsvDialect, *, final: bool = True) -> list[Record]:
    """All records; the last one may lack its line end, or have an open quote."""
    found = []
    at = 0
    while at < len(text):
        record = _record(text, at, dialect)
        if record is None:
            break
        is_comment = dialect.comment is not None and text[at:].startswith(dialect.comment.encode())
        marker = dialect.escape_style == "postgresql" and text[at : record.end] == b"\\."
        if record.end > at and not is_comment and not marker:
            found.append(record)
        at = record.next
    return found


def first_line(text: bytes, dialect: CsvDialect) -> Record:
    """The line at the start of `text`, which may be blank or a comment."""
    return _record(text, 0, dialect)


def _record(text: bytes, start: int, dialect: CsvDialect) -> Record:
    comment, quote, escape = (
        -1 if c is None else ord(c) for c in (dialect.comment, dialect.quote, dialect.escape)
    )
    delimiter = dialect.delimiter.encode()
    line_ends = b"\r\n" if dialect.line_end == "any" else b"\n"
    in_comment = text[start] == comment
    opened: int | None = None
    field_start = True
    at = start
    while at < len(text):
        byte = text[at]
        if in_comment:
            if byte in line_ends:
                break
            at += 1
        elif opened is not None:
            doubled = byte == quote and text[at + 1 : at + 2] == bytes([quote])
            if byte == escape or doubled:
                at += 2
            else:
                if byte == quote:
                    opened = None
                at += 1
        elif field_start and byte == quote:
            opened, field_start = at, False
            at += 1
        elif byte == escape and dialect.escape_style != "quoted":
            field_start = False
            at += 2
        elif byte in line_ends:
            break
        elif text.startswith(delimiter, at):
            field_start = True
            at += len(delimiter)
        else:
            field_start = field_start and dialect.trim != "none" and byte in b" \t"
            at += 1
    at = min(at, len(text))
    line_end = 2 if text[at : at + 2] == b"\r\n" else min(1, len(text) - at)
    return Record(start, at, at + line_end, opened)


def texts(dialect: CsvDialect, *, wild: bool = True) -> st.SearchStrategy[bytes]:
    """Texts with many special characters of `dialect`; `wild` adds invalid UTF-8 and NUL."""
    special = [c for c in (dialect.delimiter, dialect.quote, dialect.escape, dialect.comment) if c]
    quote = dialect.quote or "x"
    tokens = [c.encode() for c in special]
    tokens += [c.encode() for c in dialect.delimiter if len(dialect.delimiter) > 1]
    tokens += [b"NULL", b"\t"] if dialect.trim != "none" or dialect.null_quoted else []
    tokens += [b"\n", b"\r", b"\r\n", b"a", b"bc", b" ", "\u00e9".encode(), b"\xef\xbb\xbf"]
    tokens += [(quote * 2).encode(), (dialect.delimiter + quote).encode(), b"\n" + quote.encode()]
    tokens += [(quote + dialect.delimiter).encode(), quote.encode() + b"\n"]
    if dialect.escape is not None:
        escape = dialect.escape.encode()
        tokens += [escape + c for c in (b"N", b"n", b"0", b"12", b"x4", b"xe9", b"Z", b".", b"\n")]
        tokens += [escape * 2, b"\n" + escape + b".\n", b"3", b"f"]
    if wild:
        tokens += [b"\xff", b"\0"]
    return st.lists(st.sampled_from(tokens), max_size=40).map(b"".join)


def quoted_texts(dialect: CsvDialect) -> st.SearchStrategy[bytes]:
    """Well-formed texts: a field is quoted as a whole or not at all."""
    quote = (dialect.quote or "x").encode()
    inner = st.lists(st.sampled_from([b"a", b"\n", b"\r\n", quote * 2, b",", b"#"]), max_size=5)
    field = st.one_of(
        st.sampled_from([b"", b"a", b"bc"]),
        inner.map(lambda parts: quote + b"".join(parts) + quote),
    )
    record = st.lists(field, min_size=1, max_size=4).map(dialect.delimiter.encode().join)
    end = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"])
    return st.lists(st.tuples(record, end).map(b"".join), max_size=8).map(b"".join)


def dialect_texts(*, wild: bool = True) -> st.SearchStrategy[tuple[CsvDialect, bytes]]:
    def both(dialect: CsvDialect) -> st.SearchStrategy[tuple[CsvDialect, bytes]]:
        text = texts(dialect, wild=wild)
        if dialect.quote is not None:
            text |= quoted_texts(dialect)
        return st.tuples(st.just(dialect), text)

    return st.sampled_from(DIALECTS).flatmap(both)

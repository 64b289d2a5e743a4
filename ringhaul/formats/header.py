"""Read the first record of a source as field names, and write names as a first record."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from ringhaul.cql.column import SHOWN_CHARACTERS_MAX
from ringhaul.cql.hints import western_hint
from ringhaul.errors import UsageError
from ringhaul.formats.csv_read import decode_bytes, parse_fields
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import BOM
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.signature import binary_kind
from ringhaul.formats.split import START, Block, Position, Stream, read_blocks
from ringhaul.option_names import input_option, job_option

#: How many field numbers a message lists at most.
_SHOWN_FIELDS_MAX = 20
HEADER_CHUNK_BYTES = 64 * 2**10
#: Real column names are never this long: the file is of another kind, or has no line ends.
HEADER_BYTES_MAX = 16 * 2**20


class SourceEmpty(UsageError):
    """A source without records."""


def read_header(
    stream: Stream, dialect: CsvDialect, *, start: Position = START, known: Sequence[str] = ()
) -> tuple[list[str], Position]:
    """Read the names of the fields, and where the first record after them may begin.

    `stream` is positioned at `start`. Blanks around names are dropped, but for names in `known`;
    names may be empty or repeated, see `check_names`. Raises `SourceEmpty` for a source without
    records, and `UsageError` for a source that is not text or cannot be decoded.
    """
    bounded = replace(dialect, record_bytes_max=min(HEADER_BYTES_MAX, dialect.record_bytes_max))
    blocks = read_blocks(stream, bounded, block_bytes=HEADER_CHUNK_BYTES, start=start)
    block = next(blocks, None)
    if block is None:
        raise SourceEmpty("is empty: it has no header and no records")
    refuse_binary(block, dialect)
    if block.defect is not None:
        raise UsageError(f"has no readable header: {block.defect}")
    begin, end = int(block.starts[0]), int(block.ends[0])
    text = block.data[begin:end]
    if b"\0" in text:
        raise UsageError(
            "holds NUL bytes in its header, as UTF-16 text does; "
            f"give its encoding, for example {input_option('encoding')} utf-16"
        )
    names = _decode_names(text, dialect, set(known))
    line_end = block.data[end : end + 2]
    size_bytes = end + (2 if line_end == b"\r\n" else min(1, len(line_end)))
    position = Position(
        block.position.offset_bytes + size_bytes,
        start.ordinal,
        block.position.line + count_line_ends(block.data, 0, size_bytes, block.line_end),
    )
    return names, position


def _otherwise() -> str:
    """Return what to do about a header whose names cannot be used."""
    columns, no_header = job_option("columns"), job_option("no-header")
    return f"name all fields by {columns}, with {no_header} if the first record is data"


def write_header(names: Sequence[str], dialect: CsvDialect) -> bytes:
    """Return a line that `read_header` reads these names from; UTF-8 if a stream is encoded later.

    Without quotes and escapes some characters cannot be written; `_` replaces them. Only names that
    a user gave in place of a header have such characters, and those names match by position.
    """
    line = dialect.delimiter.join(_written(name, dialect) for name in names) + "\n"
    encoding = dialect.encoding if dialect.decoding == "block" else "utf-8"
    return line.encode(encoding, "replace")


def check_names(names: Sequence[str], unneeded: Sequence[str] = ()) -> None:
    """Raise `UsageError` for names that do not identify a field: empty ones and repeated ones.

    `unneeded`: names of fields that are not used.
    """
    for number, name in enumerate(names, start=1):
        if not name:
            raise UsageError(
                f"header: field {number} of {len(names)} has no name; name it, or {_otherwise()}"
            )
    left_out = set(unneeded)
    for name, count in Counter(names).items():
        if count > 1 and name not in left_out:
            every = (str(i) for i, other in enumerate(names, start=1) if other == name)
            numbers = ", ".join(islice(every, _SHOWN_FIELDS_MAX))
            more = ", ..." if count > _SHOWN_FIELDS_MAX else ""
            raise UsageError(
                f"header: {_short(name)!r} names {count} fields ({numbers}{more}); make the names "
                f"differ, or {_otherwise()}"
            )


def _short(name: str) -> str:
    return name if len(name) <= SHOWN_CHARACTERS_MAX else f"{name[:SHOWN_CHARACTERS_MAX]}..."


def refuse_binary(block: Block, dialect: CsvDialect) -> None:
    """Raise `UsageError` if the first block of a source shows that it is not text."""
    words = None if dialect.decoding == "stream" else binary_kind(block.data)
    if words is not None:
        raise UsageError(words)


def _written(name: str, dialect: CsvDialect) -> str:
    quote, escape = dialect.quote, dialect.escape
    characters = (dialect.delimiter[:1], quote, escape, dialect.comment, "\r", "\n", BOM.decode())
    special = {character for character in characters if character is not None}
    if name and special.isdisjoint(name):
        return name
    if quote is not None:
        for character in (escape, quote):
            name = name if character is None else name.replace(character, 2 * character)
        return f"{quote}{name}{quote}"
    if escape is not None:
        return "".join(escape + c if c in special else c for c in name)
    return "".join("_" if c in special else c for c in name)


def _decode_names(text: bytes, dialect: CsvDialect, known: Collection[str]) -> list[str]:
    if dialect.decoding == "block":
        text = decode_bytes(text, dialect.encoding)
    names = []
    for number, field in enumerate(parse_fields(text, dialect), start=1):
        try:
            name = field.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"header: field {number} is not valid {dialect.encoding}"
                f"{western_hint(field, error.start, input_option('encoding'))}"
            ) from None
        names.append(name if name in known else name.strip())
    return names

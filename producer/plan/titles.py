"""Find the header of a CSV file that begins with titles, as spreadsheets and reports are exported.

`--header-at N` names its line. `--header-at auto` takes, of the first lines, the earliest that
names the most columns. A first line `sep=;` names the delimiter, as in Excel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from producer.plan.files import each_file
from producer.plan.heads import LOOK_BYTES, Heads, SourceHead
from producer.request.input_draft import AUTO, AnyDraft, InputDraft
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.formats.csv_read import decode_bytes, parse_fields
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty
from ringhaul.formats.pieces import BOM
from ringhaul.formats.split import Position, Stream
from ringhaul.formats.suffixes import format_of
from ringhaul.option_names import input_option

#: A header further down is not found; nothing in front of one may be larger.
LINES_MAX, BYTES_MAX = 1000, 1 << 20
#: `auto` looks at this many lines.
AUTO_LINES_MAX = 50
_SEP = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
#: The same line, once it is split where the delimiter is.
SEPARATOR_LINE = re.compile("sep=.?", re.IGNORECASE)


def with_separator(request: AnyDraft, heads: Heads) -> AnyDraft:
    """Return the request with the delimiter that lines `sep=` name, if --header-at is given.

    Raises `UsageError` for files with different ones, and for another --delimiter.
    """
    if request.header_at is None:
        return request
    csv = [file for file in heads.files if format_of(file.path, request.file_format) == "csv"]
    named = dict(
        zip(csv, each_file(csv, lambda file: _separator(heads[file], request)), strict=True)
    )
    found = {separator for separator in named.values() if separator is not None}
    if not found:
        return request
    first = next(file for file, separator in named.items() if separator is not None)
    option = input_option("delimiter")
    usual = CsvDialect().delimiter
    if len(found) > 1 or None in named.values():
        other = next(file for file in named if named[file] != named[first])
        raise UsageError(
            f"{first.path} begins with sep={named[first]}, but {other.path} does not: load them "
            "one after the other"
        )
    separator = found.pop()
    if request.dialect.delimiter not in (usual, separator):
        raise UsageError(
            f"{first.path} begins with sep={separator}, but {option} is "
            f"{request.dialect.delimiter!r}: leave the option out"
        )
    return replace(request, dialect=replace(request.dialect, delimiter=separator))


def header_position(request: InputDraft, head: SourceHead, table: TableSchema) -> Position:
    """Return where the header of a file begins. Raises `UsageError` if it cannot be found."""
    assert request.header_at is not None
    option = input_option("header-at")
    lines = []
    with head.text(request.dialect) as stream:
        for number, (offset, text) in enumerate(_lines(stream, request.dialect), start=1):
            if request.header_at == number:
                return Position(offset, 0, number)
            lines.append((offset, text))
            if request.header_at == AUTO and number == AUTO_LINES_MAX:
                break
    if not lines:
        raise SourceEmpty("is empty: it has no header and no records")
    if request.header_at != AUTO:
        raise UsageError(
            f"has no line {request.header_at} for the header ({option}): it has {len(lines):,} "
            f"within its first {BYTES_MAX >> 20} MiB"
        )
    wanted = {name.lower() for name in (*table.column_names, *request.mapping.named)}
    scores = [_score(text, wanted, request.dialect) for _, text in lines]
    if not scores or not max(scores):
        raise UsageError(
            f"names no column of {table.name} in its first {len(lines)} lines: instead of "
            f"{option} auto give the number of the header's line"
        )
    place = scores.index(max(scores))
    return Position(lines[place][0], 0, place + 1)


def _separator(head: SourceHead, request: InputDraft) -> str | None:
    """Return the delimiter that the first line of a file names; None if it names none."""
    with head.text(request.dialect) as stream:
        _, text = next(_lines(stream, request.dialect), (0, ""))
    found = _SEP.fullmatch(text)
    return found[1] if found else None


def _score(text: str, wanted: Collection[str], dialect: CsvDialect) -> int:
    """Return how many columns the fields of a line name."""
    if not text.strip() or (dialect.comment and text.startswith(dialect.comment)):
        return 0
    fields = parse_fields(text.encode(), dialect)
    names = {field.decode("utf-8", "replace").strip().lower() for field in fields}
    return len(names & set(wanted))


def _lines(stream: Stream, dialect: CsvDialect) -> Iterator[tuple[int, str]]:
    """Yield the first lines: where each begins, and its text without the line end. Reads on only
    while more lines are wanted."""
    end = re.compile(rb"\n" if dialect.line_end == "lf" else rb"\r\n|\n|\r")
    data, begin, count, at_end = b"", 0, 0, False
    while not at_end:
        piece = stream.read(min(LOOK_BYTES, BYTES_MAX - len(data)))
        data += piece
        at_end = not piece or len(data) == BYTES_MAX
        for found in end.finditer(data, begin):
            if found.end() == len(data) and not at_end:
                break  # what follows a CR is not known yet
            yield begin, _text(data[begin : found.start()], dialect)
            begin, count = found.end(), count + 1
            if count == LINES_MAX:
                return
    if begin < len(data):
        yield begin, _text(data[begin:], dialect)


def _text(line: bytes, dialect: CsvDialect) -> str:
    if dialect.decoding == "block":
        line = decode_bytes(line, dialect.encoding)
    return line.removeprefix(BOM).decode("utf-8", "replace")

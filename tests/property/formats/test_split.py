"""Records, ordinals, lines and defects of a source do not depend on how it is cut."""

import io
from itertools import pairwise
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import BOM
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import (
    START,
    Position,
    UnitRange,
    read_blocks,
    split_units,
)
from tests.property.formats import grammar
from tests.property.formats.positions import record_position


class Seen(NamedTuple):
    position: Position
    data: bytes
    defect: str | None


class Dribble:
    """A stream whose reads return less than requested."""

    def __init__(self, text: bytes) -> None:
        self.inner = io.BytesIO(text)

    def read(self, size: int, /) -> bytes:
        return self.inner.read(min(size, 3))


def seen(
    stream: io.BytesIO | Dribble, dialect: CsvDialect, size: int, start: Position
) -> list[Seen]:
    found = []
    for block in read_blocks(stream, dialect, block_bytes=size, start=start):
        assert block.defect is None or len(block.starts) == 1
        for record in range(len(block.starts)):
            data = block.data[block.starts[record] : block.ends[record]]
            found.append(Seen(record_position(block, record), data, block.defect))
    return found


def expected(text: bytes, dialect: CsvDialect) -> list[Seen]:
    """Expected records, by the grammar and the definition of defects in pieces.py."""
    found: list[Seen] = []
    base = len(BOM) if text.startswith(BOM) else 0
    longest = dialect.record_bytes_max
    line_ends = b"\r\n" if dialect.line_end == "any" else b"\n"
    while base < len(text):
        records = grammar.records(text[base:], dialect)
        if not records:
            break
        record = records[0]
        start, end = base + record.start, base + record.end
        line = 1 + count_line_ends(text, 0, start, dialect.line_end)
        position = Position(start, len(found), line)
        if end - start <= longest and record.open_quote is None:
            found.append(Seen(position, text[start:end], None))
            base += record.next
            continue
        held = grammar.records(text[start : start + longest], dialect)
        window = [r for r in held if r.start == 0]
        opened = window[0].open_quote if window else None
        at = start + (longest if opened is None else opened)
        while at < len(text) and text[at] not in line_ends:
            at += 1
        found.append(Seen(position, text[start:at], "quote" if opened is not None else "longer"))
        base = at + (2 if text[at : at + 2] == b"\r\n" else 1)
    return found


def with_longest(dialect: CsvDialect, longest: int) -> CsvDialect:
    return CsvDialect.from_json(dialect.to_json() | {"record_bytes_max": longest})


cases = st.tuples(grammar.dialect_texts(), st.sampled_from([1, 2, 5, 9, 20, 1000])).map(
    lambda case: (with_longest(case[0][0], case[1]), case[0][1])
)


@settings(max_examples=800, deadline=None)
@given(cases, st.integers(1, 40), st.booleans())
def test_blocks_of_any_size_hold_the_records_of_the_grammar(
    case: tuple[CsvDialect, bytes], block_bytes: int, dribble: bool
) -> None:
    dialect, text = case
    stream = Dribble(text) if dribble else io.BytesIO(text)
    found = seen(stream, dialect, block_bytes, START)
    wanted = expected(text, dialect)
    assert [(s.position, s.data) for s in found] == [(s.position, s.data) for s in wanted]
    for got, want in zip(found, wanted, strict=True):
        assert (got.defect is None) == (want.defect is None)
        assert want.defect is None or want.defect in (got.defect or "")


#: The end of PostgreSQL's data, longer than a record may be.
END_OF_DATA = (
    with_longest(CsvDialect(quote=None, escape="\\", escape_style="postgresql"), 1),
    b"\n\\.\n",
)


@settings(max_examples=800, deadline=None)
@given(cases, st.integers(1, 40), st.integers(1, 40))
@example(END_OF_DATA, 1, 1)
def test_units_of_any_size_read_in_blocks_of_any_size_hold_the_same_records(
    case: tuple[CsvDialect, bytes], unit_bytes: int, block_bytes: int
) -> None:
    dialect, text = case
    whole = seen(io.BytesIO(text), dialect, 1 << 20, START)
    units = list(split_units(io.BytesIO(text), dialect, unit_bytes=unit_bytes, start=START))
    assert_tiled(units, text)
    found: list[Seen] = []
    for unit in units:
        data = text[unit.offset_bytes : unit.offset_bytes + unit.length_bytes]
        start = Position(unit.offset_bytes, unit.first_ordinal, unit.first_line)
        assert unit.first_line == 1 + count_line_ends(text, 0, unit.offset_bytes, dialect.line_end)
        assert unit.first_ordinal == len(found)
        if unit.defect is not None:
            assert unit.records_count == 1
            (record,) = [s for s in whole if s.position == start]
            assert record.defect == unit.defect
            assert data.rstrip(b"\r\n") == record.data.rstrip(b"\r\n")
            # Read alone it has the same defect, although its end may now be the input's.
            (again,) = seen(io.BytesIO(data), dialect, block_bytes, start)
            assert again.defect is not None
            assert (again.position, again.data) == (record.position, record.data)
            found.append(record)
            continue
        records = seen(io.BytesIO(data), dialect, block_bytes, start)
        assert len(records) == unit.records_count
        assert all(record.defect is None for record in records)
        found += records
    assert found == whole


def assert_tiled(units: list[UnitRange], text: bytes) -> None:
    if not units:
        assert text in (b"", BOM)
        return
    at = 0
    for unit in units:
        assert unit.offset_bytes == at
        assert unit.length_bytes > 0
        at += unit.length_bytes
    assert at == len(text)


@settings(max_examples=300, deadline=None)
@given(grammar.dialect_texts(), st.integers(1, 60))
def test_a_unit_reaches_its_size_with_its_last_record(
    case: tuple[CsvDialect, bytes], unit_bytes: int
) -> None:
    dialect, text = case
    units = list(split_units(io.BytesIO(text), dialect, unit_bytes=unit_bytes, start=START))
    records = seen(io.BytesIO(text), dialect, 99, START)
    for unit, following in pairwise(units):
        if unit.defect is None and following.defect is None and following.records_count:
            mine = records[unit.first_ordinal : following.first_ordinal]
            ends = [r.position.offset_bytes + len(r.data) - unit.offset_bytes for r in mine]
            assert ends[-1] >= unit_bytes
            assert all(end < unit_bytes for end in ends[:-1])

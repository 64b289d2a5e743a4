"""Fixed-width records are read as a plain second implementation reads them, in any pieces."""

from __future__ import annotations

import io
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_layout import FixedField
from ringhaul.formats.fixed_read import fixed_dialect, read_fixed
from ringhaul.formats.split import START, read_blocks, split_units

PLAIN = fixed_dialect(CsvDialect())
TEXTS = st.text('ab \t\0"\\,é€😀', max_size=24)
ENCODINGS = st.sampled_from(["utf-8", "latin-1", "utf-16", "cp037"])


@st.composite
def layouts(draw: st.DrawFn) -> tuple[FixedField, ...]:
    at, fields = 1, []
    for number in range(draw(st.integers(1, 5))):
        first = at + draw(st.integers(0, 3))
        at = first + draw(st.integers(1, 6))
        trim = draw(st.sampled_from(["both", "left", "right", "none"]))
        fields.append(FixedField(f"f{number}", first, at - 1, trim))
    return tuple(draw(st.permutations(fields)))


def field_of(record: str, field: FixedField) -> bytes | None:
    """Return a field by slices of text; None for null."""
    text = record[field.first - 1 : field.last]
    if field.trim in ("both", "left"):
        text = text.lstrip(" \t")
    if field.trim in ("both", "right"):
        text = text.rstrip(" \t")
    return text.encode() or None


@given(
    st.lists(TEXTS, min_size=1, max_size=12),
    layouts(),
    st.integers(1, 200),
    ENCODINGS,
    st.booleans(),
    st.booleans(),
)
def test_fields_are_slices_of_their_records(
    lines: list[str],
    layout: tuple[FixedField, ...],
    block_bytes: int,
    encoding: str,
    missing: bool,
    nul: bool,
) -> None:
    if encoding in ("latin-1", "cp037"):
        lines = [line.replace("€", "x").replace("😀", "y") for line in lines]
    dialect = replace(PLAIN, encoding=encoding, allow_missing_fields=missing, allow_nul=nul)
    data = ("\n".join(lines) + "\n").encode("utf-8" if dialect.decoding == "stream" else encoding)
    records = [line for line in lines if line]
    wanted = [field.name for field in layout]
    rows, rejects = {}, {}
    for block in read_blocks(io.BytesIO(data), dialect, block_bytes=block_bytes, start=START):
        found = read_fixed(block, dialect, layout, wanted)
        base = block.position.ordinal
        for row, record in enumerate(found.records.tolist()):
            rows[base + record] = [column[row].as_py() for column in found.columns]
        rejects |= {base + reject.record: reject.column for reject in found.rejects}
    assert sorted([*rows, *rejects]) == list(range(len(records)))
    end = max(field.last for field in layout)
    for number, record in enumerate(records):
        values = [field_of(record, field) for field in layout]
        nuls = [field.name for field, value in zip(layout, values, strict=True) if value
                and b"\0" in value]  # fmt: skip
        if len(record) < end and not missing:
            cut = min((f for f in layout if f.last > len(record)), key=lambda f: f.first)
            assert rejects[number] == cut.name
        elif nuls and not nul:
            assert rejects[number] in nuls
        else:
            assert rows[number] == values


@given(st.lists(TEXTS, max_size=12), st.integers(1, 60), layouts())
def test_units_hold_the_records_of_the_whole(
    lines: list[str], unit_bytes: int, layout: tuple[FixedField, ...]
) -> None:
    data = "\n".join(lines).encode()
    dialect = replace(PLAIN, allow_missing_fields=True, allow_nul=True)

    def read(part: bytes) -> list[list[bytes | None]]:
        names = [field.name for field in layout]
        return [
            list(row)
            for block in read_blocks(io.BytesIO(part), dialect, block_bytes=9999, start=START)
            for row in zip(
                *(c.to_pylist() for c in read_fixed(block, dialect, layout, names).columns),
                strict=True,
            )
        ]

    units = list(split_units(io.BytesIO(data), dialect, unit_bytes=unit_bytes, start=START))
    parts = [data[unit.offset_bytes :][: unit.length_bytes] for unit in units]
    assert [row for part in parts for row in read(part)] == read(data)
    assert b"".join(parts) == data


@given(st.binary(max_size=60).filter(lambda data: b"\n" not in data and b"\r" not in data))
def test_bytes_that_are_no_text_stay_in_their_record(record: bytes) -> None:
    """A field of all characters has all bytes, so that its conversion can refuse them."""
    dialect = replace(PLAIN, allow_missing_fields=True, allow_nul=True)
    data = b"ok\n" + record + b"\nok\n"
    (block,) = read_blocks(io.BytesIO(data), dialect, block_bytes=999, start=START)
    (column,) = read_fixed(block, dialect, [FixedField("a", 1, 99, "none")], ["a"]).columns
    assert column.to_pylist() == [b"ok", *([record] if record else []), b"ok"]

"""Layouts of fixed-width records, as options and files give them."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.fixed_layout import FixedField, parse_columns_at, parse_layout
from tests.cases import each


def test_columns_at() -> None:
    assert parse_columns_at("id:1-8, name : 9-40:right,flag:41") == (
        FixedField("id", 1, 8, "both"),
        FixedField("name", 9, 40, "right"),
        FixedField("flag", 41, 41, "both"),
    )


def test_a_layout_file() -> None:
    data = b"""\xef\xbb\xbf# places
Name, First, Last, trim

id,1,8
"a,b", 20 , 30 , none
name,9,19
"""
    assert parse_layout(data) == (
        FixedField("id", 1, 8, "both"),
        FixedField("a,b", 20, 30, "none"),
        FixedField("name", 9, 19, "both"),
    )


@each(
    ("text", "message"),
    [
        ("id", "'id': give NAME:FIRST-LAST or NAME:FIRST-LAST:TRIM, as in id:1-8"),
        ("id:1-8-9", "'id:1-8-9': give NAME:FIRST-LAST"),
        ("id:1-8:both:x", "'id:1-8:both:x': give NAME:FIRST-LAST"),
        ("id:1-8,", "'': give NAME:FIRST-LAST"),
        (":1-8", "the field at 1-8 has no name"),
        ("id:0-8", "'id' is at 0-8: positions are numbers from 1 to 134,217,728"),
        ("id:1-999999999", "'id' is at 1-999999999: positions are numbers from 1"),
        ("id:8-1", "'id' is at 8-1, which ends before it begins: give the first position"),
        ("id:1-8:up", "'id': 'up' is not one of both, left, right, none"),
        ("id:1-8,id:9-9", "'id' is there twice, at 1-8 and 9"),
        ("b:8-20,a:1-8", "'a' at 1-8 and 'b' at 8-20 overlap"),
        ("a:1-30,b:2-3", "'a' at 1-30 and 'b' at 2-3 overlap"),
    ],
)
def test_refused_columns_at(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_columns_at(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "names no field: give name,first,last for each"),
        (b"# nothing\n", "names no field"),
        (b"id,1\n", "line 1: has 2 parts; give name,first,last"),
        (b"id,1,8,both,5\n", "line 1: has 5 parts"),
        (b"id,1,8\nb,9\xff,10\n", "is not UTF-8 text (byte 10)"),
        (b"id,1,8\nb,nine,10\n", "line 2: 'b' is at nine-10: positions are numbers"),
        (b'id,1,8\n"b,9,10\n', "line 2: unexpected end of data"),
        (b"id,1,8\nb,8,10\n", "'id' at 1-8 and 'b' at 8-10 overlap"),
    ],
)
def test_refused_layouts(data: bytes, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_layout(data)
    assert str(caught.value).startswith(message)


def test_more_fields_than_a_layout_may_have() -> None:
    lines = "".join(f"f{n},{n},{n}\n" for n in range(1, 100_002))
    with pytest.raises(UsageError, match="has 100,001 fields, and at most 100,000 are read"):
        parse_layout(lines.encode())

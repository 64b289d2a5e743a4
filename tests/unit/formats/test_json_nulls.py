"""Texts of --null in JSON: strings and numbers that are null."""

from __future__ import annotations

import io
from typing import Any

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.json_text import parse_spelt
from ringhaul.formats.jsonl_read import line_dialect, read_objects
from ringhaul.formats.split import START, read_blocks
from tests.cases import each

RECORDS = (
    b'{"a": "N/A", "b": ["N/A"]}\n{"a": -999, "b": {"N/A": "N/A"}}\n{"a": "", "b": "n/a"}\n'
    b'{"a": true, "b": "N/A "}\n{"b": "-999"}\n'
)
PLAIN: list[list[Any]] = [
    ["N/A", "-999", "", True, None],
    [["N/A"], {"N/A": "N/A"}, "n/a", "N/A ", "-999"],
]


@each(
    ("options", "a", "b"),
    [
        ({}, PLAIN[0], PLAIN[1]),
        ({"null_strings": ("N/A",)}, [None, "-999", "", True, None], PLAIN[1]),
        (
            {"null_strings": ("N/A", "-999", "")},
            [None, None, None, True, None],
            [["N/A"], {"N/A": "N/A"}, "n/a", "N/A ", None],
        ),
        # The empty field, which is null in CSV without the option, too
        ({"null_strings": ("",)}, PLAIN[0], PLAIN[1]),
        ({"null_strings": ("",), "null_quoted": True}, ["N/A", "-999", None, True, None], PLAIN[1]),
    ],
)
@each("spelt", [False, True])
def test_a_member_that_is_one_of_the_texts_is_null(
    options: dict[str, Any], a: list[Any], b: list[Any], spelt: bool
) -> None:
    dialect = line_dialect(CsvDialect(**options))
    (block,) = read_blocks(io.BytesIO(RECORDS), dialect, block_bytes=2**16, start=START)
    given = {"parse": parse_spelt} if spelt else {}
    found = read_objects(block, dialect, ["a", "b"], (), **given)
    assert found.columns == [a, b] and not found.rejects

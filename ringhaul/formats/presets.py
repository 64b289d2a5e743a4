"""Dialects, by the name of the program that writes them.

| name         | files                                                                     |
|--------------|---------------------------------------------------------------------------|
| `mysql`      | SELECT ... INTO OUTFILE and mysqldump with tabs; read by LOAD DATA            |
| `postgresql` | COPY in its text format, also psql's \\copy                               |
| `hive`       | a table STORED AS TEXTFILE, ROW FORMAT DELIMITED without ESCAPED BY       |
| `excel`      | CSV UTF-8: RFC 4180 with a header; written with a byte order mark and CRLF |

Options that are given explicitly override the preset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The dialect that one program writes."""

    delimiter: str
    #: Empty: quotes are ordinary characters.
    quote: str = ""
    escape: str = ""
    #: Applies even if another escape character is given.
    escape_style: str = "plain"
    null: str = "\\N"
    header: bool = False
    #: Which characters end a record on reading.
    line_end: str = "any"
    #: What ends a record on writing, and whether a byte order mark precedes the header.
    written_line_end: str = "lf"
    written_bom: bool = False


PRESETS: Mapping[str, Preset] = {
    # INTO OUTFILE writes a CR inside a text without escaping it.
    "mysql": Preset(delimiter="\t", escape="\\", escape_style="mysql", line_end="lf"),
    "postgresql": Preset(delimiter="\t", escape="\\", escape_style="postgresql"),
    "hive": Preset(delimiter="\x01", escape_style="hive"),
    "excel": Preset(
        delimiter=",",
        quote='"',
        null="",
        header=True,
        written_line_end="crlf",
        written_bom=True,
    ),
}


def _characters(preset: Preset) -> dict[str, Any]:
    """Return the options that reading and writing share."""
    return {
        "delimiter": preset.delimiter,
        "quote": preset.quote,
        "escape": preset.escape,
        "escape_style": preset.escape_style,
        "header": preset.header,
    }


def input_options(
    name: str, given: Collection[str], *, quote: str, escape: str
) -> dict[str, str | bool | tuple[str, ...]]:
    """Return the options of `load` that the preset `name` sets, without the options `given`.

    `quote`, `escape`: the values of these options, which count if they are among `given`.
    """
    preset = PRESETS[name]
    found = {**_characters(preset), "line_end": preset.line_end}
    found = {option: value for option, value in found.items() if option not in given}
    if "null_strings" not in given:
        found["null_strings"] = null_texts(
            name, found.get("quote", quote), found.get("escape", escape)
        )
    return found


def output_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an output that the preset `name` sets.

    Options that were not given are None in `options`, or missing.
    """
    preset = PRESETS[name]
    found = {
        **_characters(preset),
        "line_end": preset.written_line_end,
        "bom": preset.written_bom,
    }
    found |= {option: options[option] for option in found if options.get(option) is not None}
    nulls = null_texts(name, found["quote"], found["escape"])
    found["null"] = nulls[0] if options.get("null") is None else options["null"]
    return found


def null_texts(name: str, quote: str, escape: str) -> tuple[str, ...]:
    """Return the texts that mean null.

    MySQL writes the word NULL where it has no escape character, and reads it as null if there are
    quotes: a text NULL is quoted then.
    """
    preset = PRESETS[name]
    if name != "mysql":
        return (preset.null,)
    escaped = (f"{escape}N",) if escape else ()
    return escaped + (("NULL",) if quote or not escape else ())

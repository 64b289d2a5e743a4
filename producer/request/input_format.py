"""Read the format of input text from the options of `load`, and from the `--values-` options of
`lookup` and `exec`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from producer.options.spelling import Spelling
from producer.options.values import ValueSpelling
from producer.request.input_draft import InputDraft
from producer.request.values import comma_list, refuse_blank
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.value_words import ACCEPTED
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.fixed_layout import (
    LAYOUT_BYTES_MAX,
    FixedField,
    parse_columns_at,
    parse_layout,
)
from ringhaul.mapping.language import MappingText, parse_mapping
from ringhaul.storage.file_version import read_small
from tasks.command_line import option_name, spelled_with

#: Options that are fields of a `CsvDialect`, and of a `TextFormat`.
_OF_DIALECT = CsvDialect.__dataclass_fields__.keys() & Spelling.__dataclass_fields__.keys()
_OF_VALUES = tuple(field.name for field in fields(ValueSpelling))


def input_of(options: Spelling, prefix: str = "") -> dict[str, Any]:
    """Return field of an `InputDraft` -> its value. `prefix`: see `dialect_of`.

    Raises `UsageError`, which names the option as the user wrote it.
    """
    layout = layout_of(options, prefix)
    return values_of(InputDraft, options) | {
        "header": options.header and not layout,
        "header_at": header_at_of(options, prefix),
        "columns": fields_of(options, layout, prefix),
        "layout": layout,
        "mapping": mapping_of(options, prefix),
        "empty": empty_of(options, prefix),
        "skip_columns": comma_list(options.skip_columns),
        "dialect": dialect_of(options, prefix),
        "text": text_of(options, prefix),
        "bounds_per_source": rows_per_file(options, prefix),
    }


def values_of(draft: type[InputDraft], given: Any) -> dict[str, Any]:
    """Return field of a draft -> the value of the option or the setting with its name, as far as
    `given`, a record of options or a section of settings, has one."""
    return {one.name: getattr(given, one.name) for one in fields(draft) if hasattr(given, one.name)}


def dialect_of(options: Spelling, prefix: str = "") -> CsvDialect:
    """Return the dialect of the input. `prefix`: start of the options' names, for messages.

    Raises `UsageError`, which names the option as the user wrote it.
    """
    try:
        with spelled_with(prefix):
            return CsvDialect(**_of_dialect(options))
    except UsageError as error:
        field, colon, rest = str(error).partition(":")
        option = "null" if field == "null_strings" else field.replace("_", "-")
        raise UsageError(f"{option_name(option, prefix)}{colon}{rest}") from error


def _of_dialect(options: Spelling) -> dict[str, Any]:
    """Return the options that are fields of a `CsvDialect`, as it has them."""
    found: dict[str, Any] = {name: getattr(options, name) for name in _OF_DIALECT}
    for character in ("quote", "escape", "comment"):
        found[character] = found[character] or None
    return {**found, "null_strings": options.null_strings or ("",)}


def text_of(options: Spelling, prefix: str = "") -> TextFormat:
    """Return how values are spelled in the input, as far as the command has options for it.

    `prefix`: start of the options' names, for messages. Raises `UsageError` for unusable values.
    """
    accepted = comma_list(options.accept)
    with spelled_with(prefix):
        return replace(
            written_text_of(options, prefix),
            accept=tuple(ACCEPTED) if "all" in accepted else tuple(accepted),
            overflow=options.overflow,
            rounding=options.rounding,
        )


def written_text_of(options: ValueSpelling, prefix: str = "") -> TextFormat:
    """Return how values are spelled in text that is read or written. Raises `UsageError`."""
    usual = TextFormat()
    spelled: dict[str, Any] = {name: getattr(options, name) for name in _OF_VALUES}
    for name in ("true_words", "false_words"):
        spelled[name] = _words(spelled[name], getattr(usual, name))
    with spelled_with(prefix):
        return TextFormat(**spelled)


def _words(given: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if given is None else tuple(comma_list(given))


def header_at_of(options: Spelling, prefix: str = "") -> int | str | None:
    """Return the line of the header, "auto", or None. Raises `UsageError` for anything else."""
    text = options.header_at
    if text is None:
        return None
    option = option_name("header-at", prefix)
    if not options.header:
        raise UsageError(
            f"{option} names the header's line, and {option_name('no-header', prefix)} says that "
            "there is none: leave one of them out"
        )
    if text == "auto":
        return text
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= 1000:
        raise UsageError(f"{option} {text!r}: give the number of a line, 1 to 1000, or auto")
    return int(text)


def mapping_of(options: Spelling, prefix: str = "") -> MappingText:
    """Return the parsed --mapping. Raises `UsageError` for an invalid text."""
    option = option_name("mapping", prefix)
    refuse_blank(option, options.mapping, "FIELD=COLUMN")
    return parse_mapping(options.mapping, option)


def rows_per_file(options: Spelling, prefix: str = "") -> bool:
    """Return whether rows are skipped and limited in each file instead of in the whole input.

    Raises `UsageError` if none are.
    """
    if options.rows_per == "file" and not options.skip_rows and options.max_rows is None:
        names = (option_name(name, prefix) for name in ("skip-rows", "max-rows", "rows-per"))
        skip, most, per = names
        raise UsageError(f"{per} says what {skip} and {most} count: add one of them")
    return options.rows_per == "file"


def layout_of(options: Spelling, prefix: str = "") -> tuple[FixedField, ...]:
    """Return where the fields of fixed-width records are; empty for the other formats.

    Raises `UsageError` for a layout that cannot be used, is missing, or has no such records.
    """
    text, path = options.columns_at, options.layout
    at, file, kind = (option_name(name, prefix) for name in ("columns-at", "layout", "format"))
    refuse_blank(at, text, "NAME:FIRST-LAST,...")
    if options.file_format != "fixed":
        for option, given in ((at, text), (file, path)):
            if given is not None:
                raise UsageError(f"{option} applies to fixed-width records: add {kind} fixed")
        return ()
    if text is not None and path is not None:
        raise UsageError(f"{at} and {file} both say where the fields are: give one of them")
    if text is not None:
        try:
            return parse_columns_at(text)
        except UsageError as error:
            raise UsageError(f"{at} {error}") from error
    if path is None:
        raise UsageError(
            f"{kind} fixed needs the positions of the fields: {at} id:1-8,name:9-40 or {file} FILE"
        )
    try:
        return parse_layout(_layout_bytes(path))
    except UsageError as error:
        raise UsageError(f"{file} {path}: {error}") from error


def _layout_bytes(path: Path) -> bytes:
    try:
        data = read_small(path, LAYOUT_BYTES_MAX)
    except OSError as error:
        raise UsageError(error.strerror or str(error)) from error
    if len(data) > LAYOUT_BYTES_MAX:
        raise UsageError(
            f"has more than {LAYOUT_BYTES_MAX >> 20} MiB: expected name,first,last on each line"
        )
    return data


def fields_of(options: Spelling, layout: Sequence[FixedField], prefix: str = "") -> list[str]:
    """Return the names of fields that the options give, in --columns or in the layout.

    Raises `UsageError` if both name fields.
    """
    if layout and options.columns is not None:
        columns, mapping = (option_name(name, prefix) for name in ("columns", "mapping"))
        raise UsageError(
            f"{columns} has no effect: the layout names the fields; {mapping} FIELD=COLUMN loads a "
            "field into another column"
        )
    return [field.name for field in layout] or list(comma_list(options.columns))


#: Values of --empty, and whether an empty field of a text column is then a text.
_EMPTY = {"text": True, "null": False}


def empty_of(options: Spelling, prefix: str = "") -> dict[str | None, bool]:
    """Return the parsed --empty: column -> whether an empty field is a text; None: all others.

    Raises `UsageError` for a part that is neither text, null, nor COLUMN=text or COLUMN=null.
    """
    option = option_name("empty", prefix)
    if options.empty is not None and options.fill_empty is not None:
        fill = option_name("fill-empty", prefix)
        raise UsageError(f"{option} and {fill} both say what an empty field is: give one of them")
    refuse_blank(option, options.empty, "text, null, or COLUMN=text")
    found: dict[str | None, bool] = {}
    for part in comma_list(options.empty):
        column, equals, kind = part.rpartition("=")
        if kind.strip() not in _EMPTY:
            raise UsageError(f"{option} {part!r}: give text, null, COLUMN=text or COLUMN=null")
        found[column.strip() if equals else None] = _EMPTY[kind.strip()]
    return found

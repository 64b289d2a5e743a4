"""How the text of input is written, from the options of a command: those of `load`, and those with
`--values-` of `lookup` and `exec`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from producer.request.values import comma_list
from ringhaul.cql.text import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.option_names import VALUES_PREFIX, option_name

_SPELLING = (
    *("timestamp_formats", "epoch_unit", "timezone"),
    *("blob", "decimal_sep", "thousands_sep"),
)
_WORDS = ("true_words", "false_words")


def values_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options about the values of `lookup` and `exec`, by the names that `load` has."""
    start = VALUES_PREFIX.replace("-", "_")
    return {
        name.removeprefix(start): value for name, value in options.items() if name.startswith(start)
    }


def dialect_of(options: Mapping[str, Any], prefix: str = "") -> CsvDialect:
    """That of the input. `prefix`: of the options, for messages.

    Raises `UsageError` that names the option as it is given.
    """
    try:
        return CsvDialect(
            delimiter=options["delimiter"],
            quote=options["quote"] or None,
            escape=options["escape"] or None,
            escape_style=options.get("escape_style", "plain"),
            line_end=options.get("line_end", "any"),
            comment=options["comment"] or None,
            encoding=options["encoding"],
            null_strings=options["null_strings"] or ("",),
            allow_extra_fields=options.get("allow_extra_fields", False),
            allow_missing_fields=options.get("allow_missing_fields", False),
            allow_nul=options["allow_nul"],
            option_prefix=prefix,
        )
    except UsageError as error:
        field, colon, told = str(error).partition(":")
        option = "null" if field == "null_strings" else field.replace("_", "-")
        raise UsageError(f"{option_name(option, prefix)}{colon}{told}") from error


def text_of(options: Mapping[str, Any], prefix: str = "") -> TextFormat:
    """How values are spelt in the input, as far as the command has options for it.

    `prefix`: as of `dialect_of`. Raises `UsageError` for what cannot be used.
    """
    known: dict[str, Any] = {name: options[name] for name in _SPELLING if name in options}
    words = {name: options[name] for name in _WORDS if options.get(name) is not None}
    known |= {name: tuple(comma_list(text)) for name, text in words.items()}
    return TextFormat(option_prefix=prefix, **known)

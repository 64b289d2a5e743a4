"""Read the format of input text from options: those of `load`, and those of `lookup` and `exec`
that start with `--values-`."""

from __future__ import annotations

from dataclasses import replace

from producer.request.options import Spelling, ValueSpelling
from producer.request.values import comma_list
from ringhaul.cql.lenient import ACCEPTED
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.option_names import option_name


def dialect_of(options: Spelling, prefix: str = "") -> CsvDialect:
    """Return the dialect of the input. `prefix`: of the options, for messages.

    Raises `UsageError`, which names the option as the user wrote it.
    """
    try:
        return CsvDialect(
            delimiter=options.delimiter,
            quote=options.quote or None,
            escape=options.escape or None,
            escape_style=options.escape_style,
            line_end=options.line_end,
            json_layout=options.json_layout,
            comment=options.comment or None,
            encoding=options.encoding,
            null_strings=options.null_strings or ("",),
            allow_extra_fields=options.allow_extra_fields,
            allow_missing_fields=options.allow_missing_fields,
            allow_nul=options.allow_nul,
            option_prefix=prefix,
        )
    except UsageError as error:
        field, colon, rest = str(error).partition(":")
        option = "null" if field == "null_strings" else field.replace("_", "-")
        raise UsageError(f"{option_name(option, prefix)}{colon}{rest}") from error


def text_of(options: Spelling, prefix: str = "") -> TextFormat:
    """Return how values are spelled in the input, as far as the command has options for it.

    `prefix`: as for `dialect_of`. Raises `UsageError` for unusable values.
    """
    accepted = comma_list(options.accept)
    return replace(
        written_text_of(options, prefix),
        accept=tuple(ACCEPTED) if "all" in accepted else tuple(accepted),
        overflow=options.overflow,
        rounding=options.rounding,
    )


def written_text_of(options: ValueSpelling, prefix: str = "") -> TextFormat:
    """Return how values are spelled in text that is read or written. Raises `UsageError`."""
    usual = TextFormat()
    return TextFormat(
        timestamp_formats=options.timestamp_formats,
        date_formats=options.date_formats,
        time_formats=options.time_formats,
        epoch_unit=options.epoch_unit,
        epoch=options.epoch,
        timezone=options.timezone,
        locale=options.locale,
        true_words=_words(options.true_words, usual.true_words),
        false_words=_words(options.false_words, usual.false_words),
        blob=options.blob,
        decimal_sep=options.decimal_sep,
        thousands_sep=options.thousands_sep,
        option_prefix=prefix,
    )


def _words(given: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if given is None else tuple(comma_list(given))

"""How Bulk Loader's settings of values (`codec.*`) become options of ringhaul."""

from __future__ import annotations

import re

from producer.translate.hocon import as_list, as_text
from producer.translate.translation import Draft, NotTranslatable

#: Unit -> its name in ringhaul.
UNITS = {
    "NANOSECONDS": "ns",
    "MICROSECONDS": "us",
    "MILLISECONDS": "ms",
    "SECONDS": "s",
    "MINUTES": "min",
    "HOURS": "h",
    "DAYS": "d",
}
#: The default of codec.booleanStrings.
_TRUE_WORDS, _FALSE_WORDS = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
#: Language -> countries where 1.234,5 is a number; empty: none is given.
_COMMA_AND_POINT = {"de": ("", "DE"), "es": ("", "ES"), "it": ("", "IT"), "nl": ("", "NL")}
_COMMA_AND_POINT |= {"da": ("", "DK"), "pt": ("", "BR")}
_LANGUAGES = ("en", "fr", "de", "es", "it", "pt", "nl", "sv", "da", "pl")


def null_strings(value: str, draft: Draft) -> None:
    """Texts that mean null, even in quotes. An empty field always means null; `""` is an empty text
    unless "" is one of the texts: what is read in place of `""` is never null."""
    texts = as_list(value)
    for text in texts:
        draft.repeat("--null", text)
    if not texts:
        return
    if draft.is_json:
        if "" in texts:
            draft.add("--null-quoted")
        return
    draft.add("--null-quoted")
    if "" not in texts:
        draft.repeat("--null", "")
        if not draft.has("--fill-quoted"):
            draft.add("--fill-quoted", "")
    drop_null_fills(draft)


def output_null(value: str, draft: Draft) -> None:
    texts = as_list(value)
    if draft.is_json:
        draft.note("a null is written as null of JSON; --no-json-nulls leaves it out")
    elif texts:
        draft.add("--null", texts[0])


def drop_null_fills(draft: Draft) -> None:
    """Leave out texts in the place of empty fields that mean null: so do empty fields."""
    texts = {*draft.values("--null")} - {""}
    for name in ("--fill-empty", "--fill-quoted"):
        if set(draft.values(name)) & texts:
            draft.drop(name)


def timezone(value: str, draft: Draft) -> None:
    zone = as_text(value)
    offset = re.fullmatch(r"(?:GMT|UTC|UT)?([+-])0?(\d{1,2})(?::?00)?", zone)
    if offset and int(offset[2]) <= 12:  # signs of these names are turned round
        zone = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{int(offset[2])}"
    draft.add("--timezone", "UTC" if zone == "Z" else zone)
    if draft.command == "load" and "/" in zone and not zone.startswith("Etc/"):
        draft.add("--clock-changes", "forward")  # as Java's classes read such times


def epoch(value: str, draft: Draft) -> None:
    """Dates count by the clock of the epoch's zone, so its offset stays."""
    draft.add("--epoch", as_text(value).partition("[")[0].strip())


def words(value: str, draft: Draft) -> None:
    for pair in as_list(value):
        true, colon, false = pair.partition(":")
        if not colon:
            raise NotTranslatable(f"codec.booleanStrings: {pair!r} is not TRUE:FALSE")
        draft.true_words.append(true)
        draft.false_words.append(false)


def numbers(value: str, draft: Draft) -> None:
    pair = as_list(value)
    if len(pair) != 2:
        raise NotTranslatable(f"codec.booleanNumbers: {value!r} is not two numbers")
    if draft.command == "unload":
        draft.note("booleans are written as the words of codec.booleanStrings")
        return
    draft.true_words = [*(draft.true_words or _TRUE_WORDS), pair[0]]
    draft.false_words = [*(draft.false_words or _FALSE_WORDS), pair[1]]
    if [number.strip() for number in pair] != ["1", "0"]:
        draft.lose("words for true and false are 1 and 0 in columns of numbers")


def locale(value: str, draft: Draft) -> None:
    language = as_text(value)[:2].lower()
    if language in _LANGUAGES:
        draft.add("--locale", language)
    else:
        draft.lose(f"names of months and days are known in {', '.join(_LANGUAGES)}")
    if language == "en" or draft.command == "unload":
        return  # numbers are written without separators
    country = as_text(value)[3:5].upper()
    if country in _COMMA_AND_POINT.get(language, ()):
        draft.add("--decimal-sep", ",")
        draft.add("--thousands-sep", ".")
    else:
        draft.lose("numbers do not follow it: give --decimal-sep and --thousands-sep")


def unit(value: str, draft: Draft) -> None:
    unit = UNITS.get(as_text(value).upper())
    if unit is None:
        raise NotTranslatable(f"codec.unit: {value!r} is not a unit of time")
    draft.add("--epoch-unit", unit)


def binary(value: str, draft: Draft) -> None:
    if draft.command == "unload":
        draft.add("--blob", as_text(value).lower())


def overflow(value: str, draft: Draft) -> None:
    if as_text(value).upper() == "TRUNCATE":
        draft.add("--overflow", "clamp")


def rounding(value: str, draft: Draft) -> None:
    mode = as_text(value).lower().replace("_", "-")
    if mode != "unnecessary":
        draft.add("--rounding", mode)

"""Apply `--dialect NAME`: fill in the options that it sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar

from producer.options.spelling import Spelling
from ringhaul.formats.presets import input_options

AnySpelling = TypeVar("AnySpelling", bound=Spelling)


def with_preset(spelling: AnySpelling, given: Collection[str]) -> tuple[AnySpelling, set[str]]:
    """Return the options completed by their preset, and the names of all options that are then set,
    by the user (`given`) or by the preset."""
    if spelling.dialect is None:
        return spelling, set(given)
    found: dict[str, Any] = dict(
        input_options(spelling.dialect, given, quote=spelling.quote, escape=spelling.escape)
    )
    return replace(spelling, **found), {*given, *found}

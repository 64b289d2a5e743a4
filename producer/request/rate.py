"""The value of `--rate`: rows a second, or bytes a second."""

from __future__ import annotations

import re

import rich_click as click

from ringhaul.ledger.pace import Limits

#: As in `ringhaul throttle`: a megabyte has 1,000,000 bytes.
_UNITS = {"kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
_BYTES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmg]b)/s", re.IGNORECASE)
_ROWS = re.compile(r"[0-9]{1,15}")


def parse_rate(text: str) -> Limits:
    """Parse rows such as `20000`, or bytes such as `50MB/s`, a second.

    Raises `ValueError` for anything else, and for less than one.
    """
    if _ROWS.fullmatch(text) and int(text):
        return Limits(rows_per_s=int(text))
    found = _BYTES.fullmatch(text)
    bytes_per_s = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if not bytes_per_s:
        raise ValueError(
            f"{text!r} is not a rate: give rows a second, such as 20000, or bytes, such as 50MB/s "
            "(kB/s, MB/s or GB/s)"
        )
    return Limits(bytes_per_s=bytes_per_s)


class Rate(click.ParamType[Limits]):
    """A rate on the command line."""

    name = "rate"

    def convert(
        self, value: str | int | Limits, param: click.Parameter | None, ctx: click.Context | None
    ) -> Limits:
        if isinstance(value, Limits):
            return value
        try:
            return parse_rate(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)

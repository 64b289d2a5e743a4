"""Options for how values are spelled in text: the same for what is read and for what is written."""

from __future__ import annotations

from collections.abc import Callable

import rich_click as click

from producer.commands.options import Command
from ringhaul.cql.lenient import ACCEPTED, CLOCK_CHANGES, ROUNDINGS


def spelling_options() -> Callable[[Command], Command]:
    """Add the options for what is written."""

    def decorate(command: Command) -> Command:
        for option in reversed(_spelling("", "")):
            command = option(command)
        return command

    return decorate


def value_options(prefix: str, about: str) -> list[Callable[[Command], Command]]:
    """Return the options for what is read: those of writing, and what is accepted beyond.

    `prefix`: of their names. `about`: precedes help texts.
    """
    return [*_spelling(prefix, about), *_leniency(prefix, about)]


def _spelling(prefix: str, about: str) -> list[Callable[[Command], Command]]:
    name = prefix.replace("-", "_")
    formats = [
        click.option(
            f"--{prefix}{kind}-format",
            f"{name}{kind}_formats",
            multiple=True,
            metavar="PATTERN",
            help=f"{about}Pattern of {what}, strftime or Java, or a unit; tried before ISO 8601.",
        )
        for kind, what in (("timestamp", "timestamps"), ("date", "dates"), ("time", "times of day"))
    ]
    return [
        *formats,
        click.option(
            f"--{prefix}epoch-unit",
            default="",
            metavar="UNIT",
            help=f"{about}Unit of whole-number timestamps: ns us ms s min h d "
            "[ms, except what reads as a date].",
        ),
        click.option(
            f"--{prefix}epoch",
            default="1970-01-01",
            show_default=True,
            metavar="TIME",
            help=f"{about}Moment from which such numbers count.",
        ),
        click.option(
            f"--{prefix}timezone",
            default="UTC",
            show_default=True,
            metavar="NAME",
            help=f"{about}Zone of timestamps that name none.",
        ),
        click.option(
            f"--{prefix}clock-changes",
            default="",
            metavar="|".join(CLOCK_CHANGES),
            help=f"{about}Local times that clocks repeat [first] or skip [reject].",
        ),
        click.option(
            f"--{prefix}locale",
            default="en",
            show_default=True,
            metavar="NAME",
            help=f"{about}Language of months and days: en fr de es it pt nl sv da pl.",
        ),
        click.option(
            f"--{prefix}true-words",
            metavar="A,B,...",
            help=f"{about}Words for true; the first is written [true,t,yes,y,1].",
        ),
        click.option(
            f"--{prefix}false-words",
            metavar="A,B,...",
            help=f"{about}Words for false; the first is written [false,f,no,n,0].",
        ),
        click.option(
            f"--{prefix}blob",
            default="hex",
            show_default=True,
            metavar="hex|base64|any",
            help=f"{about}How blobs are spelt: 0x and pairs of digits, base64, or either.",
        ),
        click.option(
            f"--{prefix}decimal-sep",
            default=".",
            show_default=True,
            metavar="CHAR",
            help=f"{about}Decimal point of numbers.",
        ),
        click.option(
            f"--{prefix}thousands-sep",
            default="",
            metavar="CHAR",
            help=f"{about}Between groups of digits; empty: none.",
        ),
    ]


def _leniency(prefix: str, about: str) -> list[Callable[[Command], Command]]:
    return [
        click.option(
            f"--{prefix}accept",
            default="",
            metavar="A,B,...",
            help=f"{about}Read these spellings, too: {' '.join(ACCEPTED)}, or all.",
        ),
        click.option(
            f"--{prefix}overflow",
            default="reject",
            show_default=True,
            metavar="reject|clamp",
            help=f"{about}Numbers out of range; clamp: the nearest number of the type.",
        ),
        click.option(
            f"--{prefix}rounding",
            default="none",
            show_default=True,
            metavar="MODE",
            help=f"{about}Fractions in whole-number columns: {' '.join(ROUNDINGS)}.",
        ),
    ]

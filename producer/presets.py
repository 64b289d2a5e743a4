"""`--dialect NAME` of a command: the options that it stands for, in their places."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import rich_click as click

from producer.options import Command
from ringhaul.formats.escapes import STYLES
from ringhaul.formats.presets import PRESETS, input_options
from ringhaul.option_names import VALUES_PREFIX


def dialect_options(prefix: str = "", about: str = "") -> Callable[[Command], Command]:
    """`--dialect`, `--escape-style` and `--line-end` of input. `about`: in front of help texts."""

    def decorate(command: Command) -> Command:
        for option in reversed(
            [
                click.option(
                    f"--{prefix}dialect",
                    type=click.Choice(list(PRESETS)),
                    help=f"{about}As this program writes it; other options win.",
                ),
                click.option(
                    f"--{prefix}escape-style",
                    type=click.Choice(list(STYLES)),
                    default="plain",
                    show_default=True,
                    help=f"{about}What stands behind the escape character.",
                ),
                click.option(
                    f"--{prefix}line-end",
                    type=click.Choice(["any", "lf"]),
                    default="any",
                    show_default=True,
                    help=f"{about}What ends a record; lf: a CR is data.",
                ),
            ]
        ):
            command = option(command)
        return command

    return decorate


def with_preset(
    options: Mapping[str, Any], given: Collection[str], prefix: str = ""
) -> tuple[dict[str, Any], set[str]]:
    """The options with those that `--dialect` stands for, and the names of all that are settled:
    `given` ones, and these. `prefix`: of the options, such as `values-`."""
    start = prefix.replace("-", "_")
    name = options.get(f"{start}dialect")
    if name is None:
        return dict(options), set(given)
    plain = {key.removeprefix(start): options[key] for key in options if key.startswith(start)}
    own = {key.removeprefix(start) for key in given if key.startswith(start)}
    found = {f"{start}{key}": value for key, value in input_options(name, plain, own).items()}
    return {**options, **found}, {*given, *found}


def with_values_preset(options: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The same for the values of `lookup` and `exec`."""
    return with_preset(options, given, VALUES_PREFIX)[0]

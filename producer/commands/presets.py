"""`--dialect NAME` of a command: the options that it stands for, in their places."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ringhaul.formats.presets import input_options
from ringhaul.option_names import VALUES_PREFIX


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

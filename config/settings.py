"""Read all settings, and remember where each value came from.

Flags win over the environment, that over `ringhaul.toml`, that over the running local stack,
that over the defaults. Reading opens no connection and reads no secret.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from config.errors import ConfigError
from config.layers import (
    Layer,
    find_file,
    read_environment,
    read_file,
    read_flags,
    read_local_stack,
)
from config.secrets import mask
from config.sections import Settings, setting_keys, state_dir_default

__all__ = ["ConfigError", "Described", "Loaded", "Settings", "load_settings"]

#: Plainer words than pydantic's, by the type of its error.
_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "path_type": "a path",
    "tuple_type": "a list of texts",
    "too_short": "at least one",
}


class Described(NamedTuple):
    """One setting as it may be shown: no secret in it."""

    key: str
    #: Ready for JSON: text, number, true or false, a list of texts, or None.
    value: Any
    origin: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The settings, and for every dotted key where its value came from."""

    settings: Settings
    #: `flag`, `env RINGHAUL_X`, `file PATH`, `local stack` or `default`.
    origins: dict[str, str]
    #: The `ringhaul.toml` that was read, if there was one.
    config_file: Path | None

    def describe(self) -> list[Described]:
        """Every setting in the order of the sections, with passwords shown as `***`."""
        tables = self.settings.model_dump(mode="json")
        return [
            Described(key, _shown(_value_at(tables, key)), self.origins[key])
            for key in setting_keys()
        ]


def load_settings(
    flags: Mapping[str, Any] | None = None, config_file: Path | None = None
) -> Loaded:
    """Put the layers over each other and check the result.

    `flags`: values by dotted key, such as `{"cluster.port": 9043}`; a `None` is a flag not given.
    `config_file`: read instead of the file that would be found.
    Raises `ConfigError` for a name that is no setting and for a value that cannot be used.
    """
    path = find_file(config_file, os.environ)
    upper = [
        read_flags(flags or {}),
        read_environment(os.environ),
        read_file(path) if path is not None else Layer(),
    ]
    settled = _merged(upper).values
    state_dir = settled.get("state_dir")
    # A state_dir that is no path at all is found and told by the check below.
    folder = state_dir if isinstance(state_dir, Path) else state_dir_default()
    merged = _merged([*upper, read_local_stack(folder, settled)])
    return Loaded(
        settings=_checked(merged),
        origins={key: merged.origins.get(key, "default") for key in setting_keys()},
        config_file=path,
    )


def _merged(layers: list[Layer]) -> Layer:
    """One layer of all, where the first that has a key wins."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    lines: dict[str, int] = {}
    for layer in reversed(layers):
        values |= layer.values
        origins |= layer.origins
        lines |= layer.lines
    return Layer(values=values, origins=origins, lines=lines)


def _checked(layer: Layer) -> Settings:
    tables: dict[str, Any] = {}
    for key, value in layer.values.items():
        section, _, name = key.rpartition(".")
        if section:
            tables.setdefault(section, {})[name] = value
        else:
            tables[key] = value
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(_told(error, layer)) from None  # its own text would show the values


def _told(error: ValidationError, layer: Layer) -> str:
    """Every problem on a line of its own: which setting, its value, where that was written."""
    problems = []
    for problem in error.errors(include_url=False, include_context=False):
        reason = _EXPECTED.get(problem["type"]) or problem["msg"]
        reason = reason.removeprefix("Value error, ").removeprefix("Input should be ")
        parts = [str(part) for part in problem["loc"]]
        key = next(
            (k for k in (".".join(parts[:2]), parts[0] if parts else "") if k in layer.values), ""
        )
        if not key:  # two settings that do not agree: the reason names them
            problems.append(f"settings: {reason}")
            continue
        origin = layer.origins[key]
        if origin.startswith("file ") and key in layer.lines:
            origin += f", line {layer.lines[key]}"
        expected = reason if reason.startswith("expected") else f"expected {reason}"
        problems.append(f"{key} = {_quoted(layer.values[key])} ({origin}): {expected}")
    return "\n".join(problems)


def _quoted(value: Any) -> str:
    text = mask(str(value))
    return f'"{text}"' if isinstance(value, str | Path) else text


def _shown(value: Any) -> Any:
    return mask(value) if isinstance(value, str) else value


def _value_at(tables: Mapping[str, Any], key: str) -> Any:
    section, _, name = key.rpartition(".")
    return tables[section][name] if section else tables[name]

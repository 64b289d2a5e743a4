"""Read all settings, and remember where each value came from.

Flags win over the environment, that over `ringhaul.toml`, that over the running local stack,
that over the defaults. Reading opens no connection and reads no secret.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from config.errors import ConfigError
from config.known_secrets import hide, remember
from config.layers import Layer, all_layers, find_file
from config.names import flat, nearest, nested, sections
from config.secrets import mask_value
from config.sections import Settings, setting_keys

__all__ = ["ConfigError", "Described", "Loaded", "Settings", "load_settings"]

#: Read by clients of object stores, whose errors may quote what they were given.
_SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
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
        values = flat(self.settings.model_dump(mode="json"))
        return [Described(key, _shown(values[key]), self.origins[key]) for key in setting_keys()]


def load_settings(
    flags: Mapping[str, Any] | None = None,
    config_file: Path | None = None,
    options: Mapping[str, str] | None = None,
) -> Loaded:
    """Put the layers over each other and check the result.

    `flags`: values by dotted key, such as `{"cluster.port": 9043}`; a `None` is a flag not given.
    `config_file`: read instead of the file that would be found.
    `options`: how flags are written, such as `{"cluster.port": "--port"}`, for messages.
    Raises `ConfigError` for a name that is no setting and for a value that cannot be used.
    """
    for name in _SECRET_VARIABLES:
        remember(os.environ.get(name, ""))
    path = find_file(config_file)
    layers = all_layers(Settings, flags or {}, path, options or {})
    try:
        settings = Settings(layers=layers)
    except ValidationError as error:
        raise ConfigError(*_told(error, layers)) from None  # its own text would show the values
    origins = {
        key: next((layer.origin(key) for layer in layers if key in layer.values), "default")
        for key in setting_keys()
    }
    return Loaded(settings=settings, origins=origins, config_file=path)


def _told(error: ValidationError, layers: Sequence[Layer]) -> list[str]:
    """Every problem: which setting, its value, where that was written."""
    return [
        _told_one(problem["type"], problem["msg"], ".".join(map(str, problem["loc"][:2])), layers)
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _told_one(kind: str, reason: str, key: str, layers: Sequence[Layer]) -> str:
    if kind == "extra_forbidden":
        # An unknown section is told by its own name, and not by those of what is in it.
        layer = next(layer for layer in layers if key in {*layer.values, *nested(layer.values)})
        names = [] if "." in key else sections(Settings)
        return layer.unknown(key, nearest(key, [*names, *setting_keys()]))
    reason = _EXPECTED.get(kind) or reason
    reason = reason.removeprefix("Value error, ").removeprefix("Input should be ")
    writer = next((layer for layer in layers if key in layer.values), None)
    if writer is None:  # two settings that do not agree: the reason names them
        return f"settings: {reason}"
    expected = reason if reason.startswith("expected") else f"expected {reason}"
    return f"{key} = {_quoted(writer.values[key])} ({writer.place(key)}): {expected}"


#: Characters of a value in a message.
_SHOWN_MAX = 200


def _quoted(value: Any) -> str:
    text = hide(mask_value(str(value)))
    if len(text) > _SHOWN_MAX:
        text = f"{text[:_SHOWN_MAX]}..."
    return f'"{text}"' if isinstance(value, str | Path) else text


def _shown(value: Any) -> Any:
    return mask_value(value) if isinstance(value, str) else value

"""Read all settings, and remember where each value came from.

Flags override the environment, which overrides `ringhaul.toml`, which overrides the running local
stack, which overrides the defaults. Reading opens no connection and reads no secret.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from config.errors import ConfigError
from config.known_secrets import hide, remember
from config.layers import FORMAT_SECTION, WAYS, File, Layer, all_layers, find_file
from config.names import ENV_CONFIG, ENV_EMPTY, env_name, flat, nearest, nested, sections
from config.secrets import mask_value
from config.sections import Settings, setting_keys

__all__ = [
    "ConfigError",
    "Described",
    "Formats",
    "Loaded",
    "Settings",
    "load_formats",
    "load_settings",
]

#: Secrets in the environment that clients of object stores read, and may quote in errors.
_SECRET_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
#: Plainer phrases than pydantic's, by its error type.
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
    """One setting in a form safe to show, without secrets."""

    key: str
    #: Ready for JSON: text, number, true or false, a list of texts, or None.
    value: Any
    origin: str


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The settings, with the origin of the value of each dotted key."""

    settings: Settings
    #: `flag`, `env RINGHAUL_X`, `file PATH`, `local stack` or `default`.
    origins: dict[str, str]
    #: The `ringhaul.toml` that was read, if any.
    config_file: Path | None
    #: Values of the given flags by dotted key; an empty text: the setting's empty value.
    flags: Mapping[str, Any] = field(default_factory=dict)
    file_is_flag: bool = False  #: whether a flag named `config_file`

    @property
    def is_embedded(self) -> bool:
        """Whether commands start a broker and workers of their own: flags, environment and
        file configure no broker, or say `none`."""
        configured = self.origins["broker.url"] not in ("default", "local stack")
        return not (configured and self.settings.broker.url)

    def with_flags(self, flags: Mapping[str, Any]) -> "Loaded":
        """Return the settings with further flags. Their values have the types of the settings, and
        are not checked."""
        settings = self.settings
        for name, values in nested(flags).items():
            section = getattr(settings, name).model_copy(update=values)
            settings = settings.model_copy(update={name: section})
        origins = self.origins | dict.fromkeys(flags, "flag")
        return replace(self, settings=settings, origins=origins, flags={**self.flags, **flags})

    def environment(self) -> dict[str, str]:
        """Return the environment from which a child process reads these settings: this process's
        environment, with the flags."""
        found = dict(os.environ)
        # A variable of the other way to the cluster would contradict the flag's way.
        for way, other in (WAYS, WAYS[::-1]):
            if self.flags.get(way):
                found.pop(env_name(other), None)
        empty = {key.strip() for key in found.pop(ENV_EMPTY, "").split(",")} - {""}
        for key, value in self.flags.items():
            text = ",".join(value) if isinstance(value, (list, tuple)) else str(value)
            found[env_name(key)] = text
            empty = empty - {key} if text else empty | {key}
        if empty:
            found[ENV_EMPTY] = ",".join(sorted(empty))
        if self.file_is_flag:
            found[ENV_CONFIG] = str(self.config_file)
        return found

    def describe(self) -> list[Described]:
        """Return all settings in the order of the sections, with passwords shown as `***`."""
        values = flat(self.settings.model_dump(mode="json"))
        return [Described(key, _shown(values[key]), self.origins[key]) for key in setting_keys()]


def load_settings(
    flags: Mapping[str, Any] | None = None,
    config_file: Path | None = None,
    options: Mapping[str, str] | None = None,
    *,
    leave_out: Callable[[str], None] | None = None,
) -> Loaded:
    """Combine the layers and validate the result.

    `flags`: values by dotted key, such as `{"cluster.port": 9043}`; `None`: the flag was not given.
    `config_file`: read this file instead of searching for one.
    `options`: names of flags for messages, such as `{"cluster.port": "--port"}`.
    `leave_out`: takes a warning about each setting that only a later version may know, which is
    then left out; without it, such a setting is an error.
    Raises `ConfigError` for an unknown setting and for an unusable value.
    """
    for name in _SECRET_VARIABLES:
        remember(os.environ.get(name, ""))
    path = find_file(config_file)
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    layers = all_layers(Settings, given, path, options or {}, leave_out)
    try:
        settings = Settings(layers=layers)
    except ValidationError as error:
        raise ConfigError(*_problems(error, layers)) from None  # its own text shows the values
    origins = {
        key: next((layer.origin(key) for layer in layers if key in layer.values), "default")
        for key in setting_keys()
    }
    return Loaded(
        settings=settings,
        origins=origins,
        config_file=path,
        flags=given,
        file_is_flag=config_file is not None,
    )


@dataclass(frozen=True)
class Formats:
    """The dialects in a settings file, `[format.NAME]`."""

    path: Path | None  #: None: there is no settings file
    sections: Mapping[str, Mapping[str, Any]]
    lines: Mapping[str, int]  #: 1-based, by dotted key, of what is plainly written

    def place(self, name: str, key: str) -> str:
        """Return the file, and the line of an option of a dialect if it is known."""
        spelled = (f"{FORMAT_SECTION}.{name}.{one}" for one in (key, key.replace("-", "_")))
        line = next((self.lines[one] for one in spelled if one in self.lines), None)
        return f"{self.path}, line {line}" if line else str(self.path)


def load_formats(config_file: Path | None = None) -> Formats:
    """Return the dialects of the settings file that `load_settings` would read.

    Raises `ConfigError` for a file that cannot be read.
    """
    path = find_file(config_file)
    file = File(Settings, path)
    file()
    return Formats(path, file.formats, file.lines)


def _problems(error: ValidationError, layers: Sequence[Layer]) -> list[str]:
    """Return a message for each problem, with the setting, its value and its origin."""
    return [
        _problem(problem["type"], problem["msg"], ".".join(map(str, problem["loc"][:2])), layers)
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _problem(kind: str, reason: str, key: str, layers: Sequence[Layer]) -> str:
    if kind == "extra_forbidden":
        # Report an unknown section under its own name, and not each setting in it.
        layer = next(layer for layer in layers if key in {*layer.values, *nested(layer.values)})
        names = [] if "." in key else [FORMAT_SECTION, *sections(Settings)]
        return layer.unknown(key, nearest(key, [*names, *setting_keys()]))
    reason = _EXPECTED.get(kind) or reason
    reason = reason.removeprefix("Value error, ").removeprefix("Input should be ")
    writer = next((layer for layer in layers if key in layer.values), None)
    if writer is None:  # two settings contradict each other: the reason names them
        return f"settings: {reason}"
    expected = reason if reason.startswith("expected") else f"expected {reason}"
    return f"{key} = {_quoted(writer.values[key])} ({writer.place(key)}): {expected}"


#: How many characters of a value a message shows.
_SHOWN_MAX = 200


def _quoted(value: Any) -> str:
    text = hide(mask_value(str(value)))
    if len(text) > _SHOWN_MAX:
        text = f"{text[:_SHOWN_MAX]}..."
    return f'"{text}"' if isinstance(value, str | Path) else text


def _shown(value: Any) -> Any:
    return mask_value(value) if isinstance(value, str) else value

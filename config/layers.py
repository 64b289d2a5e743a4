"""The layers of settings: flags, environment, a TOML file, the running local stack.

Each layer is a source of pydantic-settings, which lets earlier layers override later ones and the
defaults, and validates the result. The layers here add what the library lacks: the origin of each
value, paths that keep their meaning when the current folder changes, and errors for unknown names.
"""

import json
import os
import re
import tomllib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    TomlConfigSettingsSource,
)

from config.errors import ConfigError
from config.known_secrets import remember_url
from config.names import (
    ENV_CONFIG,
    ENV_EMPTY,
    ENV_PREFIX,
    env_name,
    flat,
    nearest,
    nested,
    sections,
    setting_fields,
)
from config.trust import is_taken, warn_of_writable

FILE_NAME = "ringhaul.toml"
#: `[format.NAME]`: options about records, for `--format-profile NAME`.
FORMAT_SECTION = "format"
LOCAL_STACK_FILE = "local.json"

#: Keys of `local.json` that are settings, with the setting each stands for.
_LOCAL_STACK_KEYS = {
    "contact_points": "cluster.contact_points",
    "port": "cluster.port",
    "local_dc": "cluster.local_dc",
    "host_ids": "cluster.host_ids",
    "user": "cluster.user",
    "password_file": "cluster.password_file",
    "broker_url": "broker.url",
}
#: The end of a warning about a setting that only a later version may know.
LEFT_OUT = "; it is ignored: a later version may know it"
#: Two ways to the cluster, of which the higher layer's is taken.
WAYS = ("cluster.contact_points", "cluster.secure_connect_bundle")


def all_layers(
    settings_cls: type[BaseSettings],
    flags: Mapping[str, Any],
    file: Path | None,
    options: Mapping[str, str],
    leave_out: Callable[[str], None] | None = None,
) -> "tuple[Layer, ...]":
    """Return all layers of settings, by descending precedence. `leave_out`: see `Layer`."""
    layers = (
        Flags(settings_cls, flags, options),
        Environment(settings_cls),
        File(settings_cls, file),
        LocalStack(settings_cls),
    )
    for layer in layers:
        layer.leave_out = leave_out
    return layers


class Layer(PydanticBaseSettingsSource):
    """A source of settings that knows the origin of each of its values."""

    #: The raw values by dotted key, set by the call.
    values: dict[str, Any]
    #: Takes a warning about a setting that is not known and resembles none, and is left out. None:
    #: every unknown setting is an error.
    leave_out: Callable[[str], None] | None = None

    @abstractmethod
    def origin(self, key: str) -> str:
        """Return `flag`, `env RINGHAUL_X`, `file PATH` or `local stack`."""

    def place(self, key: str) -> str:
        """Return the origin, with the line if there is one."""
        return self.origin(key)

    def unknown(self, key: str, guess: str) -> str:
        """Return the error for an unknown setting; `guess` is the suggestion from `nearest`."""
        return f"there is no setting {key}{guess}"

    def keep(self, tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the tables with paths made absolute from `folder`, and store them in `values`."""
        self.values = flat(tables)
        if self.leave_out is not None:
            for key in [key for key in self.values if self._may_be_newer(key)]:
                del self.values[key]
                self.leave_out(f"{self.unknown(key, '')}{LEFT_OUT}")
        self._choose_way()
        # Do this before any check can fail, and in each layer: messages may show all their values.
        for key, value in self.values.items():
            if isinstance(value, str) and ("://" in value or key == "broker.url"):
                remember_url(value)
        for key, field in setting_fields(self.settings_cls).items():
            value = self.values.get(key)
            if not _is_path(field) or not isinstance(value, str | Path):
                continue
            if str(value):
                self.values[key] = folder / Path(value).expanduser()
            elif field.annotation is Path:  # empty: the default, which depends on the user
                del self.values[key]
        return nested(self.values)

    def _may_be_newer(self, key: str) -> bool:
        """Whether a setting may be one of a later version: it is not known here, and no slip in
        writing a known one."""
        known, section = setting_fields(self.settings_cls), key.partition(".")[0]
        if key in known or key in sections(self.settings_cls):
            return False
        if "." in key and section not in sections(self.settings_cls):
            return not nearest(section, [*sections(self.settings_cls), *known])
        return not nearest(key, known)

    def _choose_way(self) -> None:
        """Drop contact points if a higher layer names a bundle, and the other way round."""
        settled = flat(self.current_state)
        for one, other in (WAYS, WAYS[::-1]):
            if settled.get(one):
                self.values.pop(other, None)
        if all(self.values.get(way) for way in WAYS):
            places = dict.fromkeys(map(self.place, WAYS))
            raise ConfigError(f"{' and '.join(WAYS)} ({', '.join(places)}): give one of them")


class Flags(InitSettingsSource, Layer):
    """Values from the command line by dotted key; `None`: the flag was not given.

    `options`: the flag's name by dotted key, such as `--consistency`.
    """

    def __init__(
        self,
        settings_cls: type[BaseSettings],
        flags: Mapping[str, Any],
        options: Mapping[str, str],
    ) -> None:
        self.options = options
        given = {key: value for key, value in flags.items() if value is not None}
        super().__init__(settings_cls, nested(given))

    def __call__(self) -> dict[str, Any]:
        return self.keep(super().__call__(), Path.cwd())

    def origin(self, key: str) -> str:
        return "flag"

    def place(self, key: str) -> str:
        return self.options.get(key, self.origin(key))


class Environment(EnvSettingsSource, Layer):
    """Values from `RINGHAUL_*` variables. An empty variable counts as not set, unless it comes from
    an empty flag of this process or of its parent: see `ENV_EMPTY`."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        # Field names are in lower case, variables in upper case.
        super().__init__(settings_cls, case_sensitive=False)

    def __call__(self) -> dict[str, Any]:
        known = {env_name(key) for key in setting_fields(self.settings_cls)}
        for name in os.environ:
            # The library accepts names in any case, so this check does too.
            ours = name.upper().startswith(ENV_PREFIX) and name != ENV_CONFIG
            if ours and name.upper() not in known:
                names = [name.removeprefix(ENV_PREFIX) for name in (*sorted(known), ENV_CONFIG)]
                guess = nearest(name.upper().removeprefix(ENV_PREFIX), names)
                said = f"the environment variable {name} is not a setting of ringhaul"
                if self.leave_out is not None and not guess:
                    self.leave_out(f"{said}{LEFT_OUT}")
                    continue
                raise ConfigError(said + guess.replace("mean ", f"mean {ENV_PREFIX}"))
        empty = filter(None, os.environ.get(ENV_EMPTY, "").split(","))
        values = dict.fromkeys(empty, "") | flat(super().__call__())
        return self.keep(nested(values), Path.cwd())

    def origin(self, key: str) -> str:
        return f"env {env_name(key)}"


class File(TomlConfigSettingsSource, Layer):
    """Values from a `ringhaul.toml`. Relative paths in it start from the folder of the file."""

    def __init__(self, settings_cls: type[BaseSettings], path: Path | None) -> None:
        self.path = path
        #: The sections [format.NAME], whose values are options and not settings.
        self.formats: dict[str, dict[str, Any]] = {}
        #: 1-based line by dotted key.
        self.lines: dict[str, int] = {}
        super().__init__(settings_cls, toml_file=path)

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        try:
            # Editors on Windows write a byte order mark, which is not valid TOML.
            text = file_path.read_text(encoding="utf-8").removeprefix("\ufeff")
            tables = tomllib.loads(text)
        except OSError as error:
            raise ConfigError(f"cannot read {file_path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file_path} is not UTF-8 text (byte {error.start})") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{file_path} is not valid TOML: {error}") from error
        except ValueError as error:  # int() limits the number of digits
            digits = _MANY_DIGITS.search(text)
            line = "" if digits is None else f", line {text.count(chr(10), 0, digits.start()) + 1}"
            raise ConfigError(f"{file_path}{line}: a number has thousands of digits") from error
        except RecursionError as error:
            raise ConfigError(
                f"{file_path}: brackets or braces are nested hundreds deep"
            ) from error
        if _has_large_number(tables):
            raise ConfigError(f"{file_path}: a number has thousands of digits")
        self.lines = _key_lines(text)
        return tables

    def __call__(self) -> dict[str, Any]:
        tables = super().__call__()
        self.formats = self._formats(tables.pop(FORMAT_SECTION, {}))
        for section in sections(self.settings_cls):
            # Check it here: if a higher layer sets the section, the library never sees this value.
            if not isinstance(tables.get(section, {}), dict):
                raise ConfigError(
                    f"{self.path}: {section} is a section, expected [{section}] and its settings"
                )
        return self.keep(tables, self.path.parent if self.path else Path.cwd())

    def _formats(self, found: Any) -> dict[str, dict[str, Any]]:
        """Return the dialects by name; their options are checked by the command that uses one."""
        if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()):
            return found
        raise ConfigError(
            f"{self.path}: {FORMAT_SECTION} holds dialects by name, expected "
            f"[{FORMAT_SECTION}.NAME] and options about records"
        )

    def origin(self, key: str) -> str:
        return f"file {self.path}"

    def place(self, key: str) -> str:
        return f"file {self._place(key)}"

    def unknown(self, key: str, guess: str) -> str:
        return f"{self._place(key)}: {super().unknown(key, guess)}"

    def _place(self, key: str) -> str:
        return f"{self.path}, line {self.lines[key]}" if key in self.lines else str(self.path)


class LocalStack(Layer):
    """Addresses written by `ringhaul local up`, unless a higher layer sets others.

    The stack's port and data centre belong to its contact points: if those are set elsewhere, none
    of the cluster's values here apply.
    """

    def __call__(self) -> dict[str, Any]:
        settled = flat(self.current_state)
        state_dir = settled.get("state_dir")
        if not isinstance(state_dir, Path):  # missing, or not a path, which is reported later
            field = self.settings_cls.model_fields["state_dir"]
            state_dir = field.get_default(call_default_factory=True, validated_data={})
        stack = _read_local_stack(state_dir / LOCAL_STACK_FILE)
        values = {
            key: stack[name]
            for name, key in _LOCAL_STACK_KEYS.items()
            if stack.get(name) is not None
        }
        for address in ("cluster.contact_points", "cluster.secure_connect_bundle", "broker.url"):
            if address in settled and settled[address] is not None:
                section = address.partition(".")[0]
                values = {k: v for k, v in values.items() if not k.startswith(section + ".")}
        return self.keep(nested(values), state_dir)

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return one field. The library requires this method, but uses the call instead."""
        return nested(self.values).get(field_name), field_name, False

    def origin(self, key: str) -> str:
        return "local stack"


def find_file(given: Path | None) -> Path | None:
    """Return the settings file to read: `given`, else `RINGHAUL_CONFIG`, `./ringhaul.toml`, or the
    user's own.

    A file given by name must exist; the other two need not. The file in the current folder is
    skipped if another user may control it: see `config.trust`. Raises `ConfigError`.
    """
    named = given if given is not None else os.environ.get(ENV_CONFIG) or None
    if named is not None:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            how = "--config" if given is not None else ENV_CONFIG
            raise ConfigError(f"no such settings file: {path} (named by {how})")
        warn_of_writable(path)
        return path
    here = Path.cwd() / FILE_NAME
    if is_taken(here, f"--config {FILE_NAME} or {ENV_CONFIG}"):
        return here
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path("~/.config").expanduser()
    users = folder / "ringhaul" / FILE_NAME
    return users if users.is_file() else None


def _is_path(field: FieldInfo) -> bool:
    return field.annotation is Path or field.annotation == Path | None


def _read_local_stack(path: Path) -> dict[str, Any]:
    try:
        stack = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read the local stack's addresses in {path}: {error};"
            " `ringhaul local up` writes it again"
        ) from error
    if not isinstance(stack, dict):
        raise ConfigError(f"{path} does not hold the local stack's addresses; delete it")
    return stack


#: More digits than Python's `int` accepts; as in `ringhaul/schedule/parse.py`.
_MANY_DIGITS = re.compile(r"[0-9][0-9_]{4300,}")
_TABLE_LINE = re.compile(r"\s*\[\s*([\w.-]+)\s*\]")
_KEY_LINE = re.compile(r"\s*([\w.-]+)\s*=")


def _has_large_number(tables: Mapping[str, Any]) -> bool:
    """Return whether any number has over a thousand bits. Hexadecimal numbers have no limit, but
    such large numbers cannot be printed."""
    values: list[Any] = [tables]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif isinstance(value, int) and value.bit_length() > 1000:
            return True
    return False


def _key_lines(text: str) -> dict[str, int]:
    """Return the line of each plainly written key; tomllib does not report positions."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if table := _TABLE_LINE.match(line):
            section = table[1] + "."
            lines.setdefault(table[1], number)
        elif key := _KEY_LINE.match(line):
            lines.setdefault(section + key[1], number)
    return lines

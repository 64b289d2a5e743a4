"""Where settings come from: flags, environment, a TOML file, the running local stack.

Each reader gives a `Layer`: raw values by dotted key, and for each the words that say where it
was written. Nothing is checked here beyond the names; `config.settings` puts the layers over
each other and checks the values.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.errors import ConfigError
from config.sections import is_path, setting_keys

ENV_PREFIX = "RINGHAUL_"
ENV_CONFIG = "RINGHAUL_CONFIG"
FILE_NAME = "ringhaul.toml"
LOCAL_STACK_FILE = "local.json"

#: What `local.json` holds of interest here, and the setting it stands for.
_LOCAL_STACK_KEYS = {
    "contact_points": "cluster.contact_points",
    "port": "cluster.port",
    "local_dc": "cluster.local_dc",
    "user": "cluster.user",
    "password_file": "cluster.password_file",
    "broker_url": "broker.url",
}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Settings of one source."""

    #: Raw values by dotted key.
    values: dict[str, Any] = field(default_factory=dict)
    #: `flag`, `env RINGHAUL_X`, `file PATH`, `local stack`; by dotted key.
    origins: dict[str, str] = field(default_factory=dict)
    #: 1-based line of the file, by dotted key, where it was found.
    lines: dict[str, int] = field(default_factory=dict)


def env_name(key: str) -> str:
    """`RINGHAUL_BROKER_URL` of `broker.url`."""
    return ENV_PREFIX + key.replace(".", "_").upper()


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing when no known name is near.

    Of `section.name` the names are compared, those of the same section first.
    """
    section, _, last = name.rpartition(".")
    by_last: dict[str, str] = {}
    for known in sorted(names, key=lambda known: known.rpartition(".")[0] == section):
        by_last[known.rpartition(".")[2]] = known  # the same section comes last, and stays
    close = difflib.get_close_matches(last, by_last, n=1)
    return f"; did you mean {by_last[close[0]]}?" if close else ""


def read_flags(flags: Mapping[str, Any]) -> Layer:
    """The command line's values by dotted key; `None` means that the flag was not given."""
    values = {key: value for key, value in flags.items() if value is not None}
    for key in values:
        if key not in setting_keys():
            raise ConfigError(f"there is no setting {key}{nearest(key, setting_keys())}")
    return Layer(values=_absolute(values, Path.cwd()), origins=dict.fromkeys(values, "flag"))


def read_environment(environ: Mapping[str, str]) -> Layer:
    """Every `RINGHAUL_*` variable. One that is set but empty counts as not set."""
    keys_by_name = {env_name(key): key for key in setting_keys()}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, value in environ.items():
        if not name.startswith(ENV_PREFIX) or name == ENV_CONFIG:
            continue
        if name not in keys_by_name:
            known = [known.removeprefix(ENV_PREFIX) for known in (*keys_by_name, ENV_CONFIG)]
            guess = nearest(name.removeprefix(ENV_PREFIX), known)
            raise ConfigError(
                f"the environment variable {name} is no setting of ringhaul"
                + guess.replace("mean ", f"mean {ENV_PREFIX}")
            )
        if value:
            values[keys_by_name[name]] = value
            origins[keys_by_name[name]] = f"env {name}"
    return Layer(values=_absolute(values, Path.cwd()), origins=origins)


def find_file(given: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file to read: the one given, `RINGHAUL_CONFIG`'s, `./ringhaul.toml`, the user's own.

    A file asked for by name has to be there; the other two need not.
    """
    named = given if given is not None else environ.get(ENV_CONFIG) or None
    if named is not None:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            how = "--config" if given is not None else ENV_CONFIG
            raise ConfigError(f"no such settings file: {path} (asked for by {how})")
        return path
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path("~/.config").expanduser()
    for path in (Path.cwd() / FILE_NAME, folder / "ringhaul" / FILE_NAME):
        if path.is_file():
            return path
    return None


def read_file(path: Path) -> Layer:
    """A `ringhaul.toml`. A relative path in it is relative to the folder that the file is in."""
    try:
        text = path.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    lines = _key_lines(text)
    values: dict[str, Any] = {}
    for key, value in _flatten(tables, path, lines):
        if value == "" and key in ("state_dir", "cache_dir"):
            continue  # empty stands for the default, which depends on the user
        values[key] = value
    return Layer(
        values=_absolute(values, path.parent),
        origins=dict.fromkeys(values, f"file {path}"),
        lines=lines,
    )


def read_local_stack(state_dir: Path, settled: Mapping[str, Any]) -> Layer:
    """The addresses that `ringhaul local up` wrote down, unless others are `settled` above.

    The stack's port and data centre belong to its contact points: where those are set elsewhere
    none of the cluster's values here apply.
    """
    path = state_dir / LOCAL_STACK_FILE
    try:
        stack = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Layer()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read the local stack's addresses in {path}: {error};"
            " `ringhaul local up` writes it anew"
        ) from error
    if not isinstance(stack, dict):
        raise ConfigError(f"{path} does not hold the local stack's addresses; delete it")
    values = {
        key: stack[name] for name, key in _LOCAL_STACK_KEYS.items() if stack.get(name) is not None
    }
    for address in ("cluster.contact_points", "broker.url"):
        if address in settled:
            section = address.partition(".")[0]
            values = {k: v for k, v in values.items() if not k.startswith(section + ".")}
    return Layer(values=values, origins=dict.fromkeys(values, "local stack"))


def _flatten(
    tables: Mapping[str, Any], path: Path, lines: Mapping[str, int]
) -> Iterable[tuple[str, Any]]:
    known = setting_keys()
    sections = {key.partition(".")[0] for key in known if "." in key}
    for name, value in tables.items():
        if name in sections and isinstance(value, dict):
            for key, inner in value.items():
                dotted = f"{name}.{key}"
                if dotted not in known:
                    raise ConfigError(_unknown(path, dotted, lines, known))
                yield dotted, inner
        elif name in sections:
            raise ConfigError(f"{path}: {name} is a section, expected [{name}] and its settings")
        elif name in known:
            yield name, value
        else:
            raise ConfigError(_unknown(path, name, lines, [*sections, *known]))


def _unknown(path: Path, key: str, lines: Mapping[str, int], names: Iterable[str]) -> str:
    where = f"{path}, line {lines[key]}" if key in lines else str(path)
    return f"{where}: there is no setting {key}{nearest(key, names)}"


_TABLE_LINE = re.compile(r"\s*\[\s*([\w-]+)\s*\]")
_KEY_LINE = re.compile(r"\s*([\w.-]+)\s*=")


def _key_lines(text: str) -> dict[str, int]:
    """The line of each key written the plain way; tomllib tells no positions of what it parsed."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if table := _TABLE_LINE.match(line):
            section = table[1] + "."
            lines.setdefault(table[1], number)
        elif key := _KEY_LINE.match(line):
            lines.setdefault(section + key[1], number)
    return lines


def _absolute(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values with every path made absolute, so that no later `chdir` changes its meaning."""
    return {
        key: folder / Path(value).expanduser()
        if is_path(key) and isinstance(value, str | Path) and str(value)
        else value
        for key, value in values.items()
    }

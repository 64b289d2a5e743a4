"""Read the settings of a command line of Bulk Loader, and of the file that it names. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from producer.translate.config_file import read_config
from producer.translate.hocon import as_text
from producer.translate.setting_names import ALIASES, MAPS, SHORTCUTS
from producer.translate.translation import NotTranslatable, suggest

#: Returns the text of a file with this name. Raises `NotTranslatable`.
OpenFile = Callable[[str], str]
#: Python's `shlex` takes quadratic time in the length of a word: 50 ms for this one. The longest
#: command line of Windows.
LINE_CHARACTERS_MAX = 32_767

#: Settings that are on without a value.
_SWITCHES = frozenset(
    ("schema.preserveTimestamp", "schema.preserveTtl", "engine.dryRun", "connector.csv.header")
)
#: A long option with its value; HOCON allows a colon in place of the equals sign.
_WITH_VALUE = re.compile(r"(--[\w.-]+)\s*([=:])(.*)", re.DOTALL)
_OF_THE_SHELL = ("|", "||", "&&", "&", ";")
#: Where the settings of Bulk Loader and of its driver are in a file.
_ROOTS = ("dsbulk.", "datastax-java-driver.")


def no_file(name: str) -> str:
    """Refuse to open a file. Raises `NotTranslatable`."""
    raise NotTranslatable(f"dsbulk: -f {name}: no file is read here")


def split_line(text: str) -> list[str]:
    """Return the words of a command line. Raises `NotTranslatable`."""
    if len(text) > LINE_CHARACTERS_MAX:
        raise NotTranslatable(
            f"a command of {len(text):,} characters: at most {LINE_CHARACTERS_MAX:,} are read. "
            "Put long lists and statements in files"
        )
    try:
        return shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise NotTranslatable(f"the shell could not read this: {error}") from None


def read_settings(words: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return setting -> (as it was written, value). Raises `NotTranslatable`."""
    found: dict[str, tuple[str, str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _OF_THE_SHELL or re.match(r"\d?[<>]", word):
            raise NotTranslatable(
                f"{word} belongs to the shell: give the command of dsbulk alone, and write the "
                "rest around the translated command"
            )
        if not word.startswith("-"):
            raise NotTranslatable(f"dsbulk: {word!r} is not an option")
        long = _WITH_VALUE.match(word)
        written, equals, value = long.groups() if long else word.partition("=")
        name = _full_name(written)
        if not equals:
            follows = words[at] if at < len(words) else "-"
            if name in _SWITCHES and follows.lower() not in ("true", "false"):
                value = "true"
            elif at < len(words):
                value, at = follows, at + 1
            else:
                raise NotTranslatable(f"dsbulk: {written} has no value")
        found[name] = (written, value)
    return found


def _full_name(written: str) -> str:
    if written.startswith("--"):
        name = written[2:].removeprefix("dsbulk.")
        if name.startswith(("driver.basic.", "driver.advanced.", "driver.profiles.")):
            name = f"datastax-java-{name}"  # a short form since version 1.4
        return ALIASES.get(name, name)
    name = SHORTCUTS.get(written[1:], "")
    if not name:
        near = suggest(written, [f"-{shortcut}" for shortcut in SHORTCUTS])
        raise NotTranslatable(f"dsbulk: it has no option {written}{near}")
    return name


def with_file(given: dict[str, tuple[str, str]], open_file: OpenFile) -> dict[str, tuple[str, str]]:
    """Return the settings of a command line, and of the file that it names: the command line wins.
    Raises `NotTranslatable`."""
    if "config" not in given:
        return given
    name = as_text(given["config"][1])
    found: dict[str, tuple[str, str]] = {}
    maps: dict[str, list[str]] = {}
    for path, value in read_config(open_file(name), name).items():
        if not path.startswith(_ROOTS):
            raise NotTranslatable(
                f"dsbulk: -f {name}: {path} is not within dsbulk {{ }} or datastax-java-driver "
                "{ }, where Bulk Loader has its settings"
            )
        setting = _full_name(f"--{path}")
        of_map, _, member = setting.rpartition(".")
        if of_map.rpartition(".")[2] in MAPS:
            maps.setdefault(of_map, []).append(f"{member}:{value}")
            setting, value = of_map, f"{{{','.join(maps[of_map])}}}"
        found[setting] = (path, value)
    return found | {setting: one for setting, one in given.items() if setting != "config"}

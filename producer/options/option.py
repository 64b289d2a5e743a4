"""An option: a typed field of a frozen record, which declares everything about it.

    @dataclass(frozen=True, kw_only=True)
    class Sharing:
        priority: str = option("--priority", Choice(WORDS), NORMAL, group=JOB, help="Share ...")

The field's name also names click's parameter, and its default is the option's. From the records
follow the parameters of a command, the record that it gets, its help pages, the fingerprint of a
job, the settings that options override, what a schedule's step may have, and the client's calls.
A field without an option is for the program only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from inspect import get_annotations
from typing import Any, NamedTuple

from producer.options.groups import Group
from producer.options.kinds import FLAG, TEXT, Kind
from producer.options.leaving import Leaving
from tasks.command_line import option_name

#: Keys in the metadata of a field.
_OPTION, _INNER = "option", "inner"


@dataclass(frozen=True, kw_only=True)
class Option:
    """All about an option or an argument."""

    #: Its names: `-k`, `--keyspace`; the last is the long one. None: an argument.
    flags: tuple[str, ...]
    kind: Kind
    help: str
    group: Group
    metavar: str | None = None
    #: May be given several times; the values are a tuple.
    repeated: bool = False
    #: On the first page of help, for most people.
    common: bool = False
    #: Its help on that page, if `help` needs more than a line.
    brief: str = ""
    #: Commands that have the option; empty: all with its record.
    commands: tuple[str, ...] = ()
    #: It says how the work is done, not which: the fingerprint of a job lacks it.
    how: bool = False
    #: Its value is known before other options are checked.
    eager: bool = False
    #: The setting that it overrides, such as `cluster.port`.
    setting: str = ""
    #: Why a step of a schedule may not have it; empty: it may.
    no_step: str = ""
    #: Input formats that use it; empty: all, or it does no harm in any.
    formats: tuple[str, ...] = ()
    #: It is to go: since when, and what replaces it. It is on no help page.
    leaving: Leaving | None = None
    #: How a message about an unload's manifest puts its value, such as `quote {!r}`.
    said: str = ""
    #: The field of the record, and the parameter of the command: `values_quote`.
    name: str = ""
    default: Any = None
    required: bool = False

    @property
    def flag(self) -> str:
        """The long name, without the name of a switch's opposite: `--header`."""
        return self.flags[-1].split("/")[0] if self.flags else ""

    @property
    def key(self) -> str:
        """The long name without its dashes, as in a profile: `null-quoted`."""
        return self.flag.removeprefix("--")

    @property
    def is_switch(self) -> bool:
        """Whether the option has an opposite, such as `--no-header`."""
        return bool(self.flags) and "/" in self.flags[-1]


class _Inner(NamedTuple):
    """A record in a field of another, whose options have a prefix."""

    record: type
    prefix: str
    group: Group
    about: str


def option(
    names: str, kind: Kind = TEXT, default: Any = None, *, repeated: bool = False, **about: Any
) -> Any:
    """Declare the option of a field. `names`: words such as `-k --keyspace`. `about`: fields of
    `Option`. `default`: MISSING for a required option; a flag is off unless it has another default.
    """
    if repeated:
        default = ()
    elif kind is FLAG and default is None and "/" not in names:
        default = False
    return _field(
        Option(flags=tuple(names.split()), kind=kind, repeated=repeated, **about), default
    )


def argument(metavar: str, kind: Kind = TEXT, **about: Any) -> Any:
    """Declare the argument of a field, which has to be given. `about`: fields of `Option`."""
    return _field(Option(flags=(), kind=kind, metavar=metavar, **about), MISSING)


def again(record: type, name: str, **changes: Any) -> Any:
    """Declare the option of a record's field once more in a record that is derived from it, with
    changes. `changes`: fields of `Option`, and `default`."""
    found = next(one for one in fields(record) if one.name == name)
    default = changes.pop("default", found.default)
    if "help" in changes:
        changes.setdefault("brief", "")
    return _field(replace(found.metadata[_OPTION], **changes), default)


def inner(record: type, prefix: str, *, group: Group, about: str) -> Any:
    """Declare a field that holds a record, whose options have a prefix.

    `about`: text before their help texts. They have no short names, and are on no first page.
    """
    return field(metadata={_INNER: _Inner(record, prefix, group, about)})


def _field(declared: Option, default: Any) -> Any:
    return field(default=default, metadata={_OPTION: declared})


@cache
def options_of(record: type, command: str = "") -> tuple[Option, ...]:
    """Return the options that a record declares, in the order of their groups: its own options
    before inherited options.

    `command`: leave out options that this command lacks; empty: keep all.
    """
    found = [one for one in _declared(record) if _belongs(one, command)]
    return tuple(sorted(found, key=lambda one: one.group.rank))


def _belongs(declared: Option, command: str) -> bool:
    return not command or not declared.commands or command in declared.commands


def _declared(record: type) -> Iterator[Option]:
    by_name = {one.name: one for one in fields(record)}
    for base in record.__mro__:
        for name in get_annotations(base):
            found = by_name.pop(name, None)
            if found is None:
                continue
            if _OPTION in found.metadata:
                required = found.default is MISSING
                yield replace(
                    found.metadata[_OPTION],
                    name=name,
                    default=None if required else found.default,
                    required=required,
                )
            elif _INNER in found.metadata:
                of = found.metadata[_INNER]
                yield from (_prefixed(one, of) for one in options_of(of.record))


def _prefixed(declared: Option, of: _Inner) -> Option:
    text = declared.help
    first = text[0] if text[:2].isupper() else text[0].lower()  # not of JSON
    names = (option_name(part[2:], of.prefix) for part in declared.flags[-1].split("/"))
    return replace(
        declared,
        flags=("/".join(names),),
        name=f"{of.prefix}{declared.name}".replace("-", "_"),
        help=f"{of.about}{first}{text[1:]}",
        group=of.group,
        common=False,
        brief="",
    )


def record_of(record: type, params: Mapping[str, Any], **others: Any) -> Any:
    """Return a record made of a command's parameters, and of `others`, fields without an option."""
    values = {**params, **others}
    for one in fields(record):
        of: _Inner | None = one.metadata.get(_INNER)
        if of is not None:
            start = of.prefix.replace("-", "_")
            names = [name for name in values if name.startswith(start)]
            own = {name.removeprefix(start): values.pop(name) for name in names}
            values[one.name] = of.record(**own)
    return record(**values)


def settings_of(record: type) -> dict[str, str]:
    """Return field -> the setting that it overrides, for the options of a record that do."""
    return {one.name: one.setting for one in options_of(record) if one.setting}


def flags_of(declared: Sequence[Option]) -> set[str]:
    """Return the long names of options, and of the opposites of switches."""
    return {name for one in declared if one.flags for name in one.flags[-1].split("/")}


def declared_by(parameter: object) -> Option | None:
    """Return the option that declares a parameter of click; None for one outside the records."""
    return getattr(parameter, "declared", None)

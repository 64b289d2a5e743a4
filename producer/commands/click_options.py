"""Parameters of click from the options that a record declares."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import singledispatch
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click
from click.core import ParameterSource

from producer.options import kinds
from producer.options.option import Option, options_of
from producer.request.password import PROMPT, note_password_flag
from producer.request.rate import Rate
from ringhaul import __version__
from ringhaul.errors import UsageError
from ringhaul.schedule.times import parse_duration_s

Command = TypeVar("Command", bound=Callable[..., Any])

#: Object of a context in which a schedule's step is only parsed: it will run in
#: another folder, at another time.
AS_STEP = object()
#: In a context's meta data: the table that the argument names.
_NAMED = "ringhaul.table"


class DeclaredOption(click.RichOption):
    """An option of click that knows its declaration."""

    def __init__(self, declared: Option, **given: Any) -> None:
        super().__init__([*declared.flags, declared.name], **given)
        self.declared = declared
        self.hidden = declared.leaving is not None

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the option's value. An option that is to go warns, and fails later on."""
        leaving = self.declared.leaving
        source = ctx.get_parameter_source(self.declared.name)
        if leaving is not None and source is ParameterSource.COMMANDLINE:
            words = leaving.words(self.declared.flag, __version__)
            if leaving.is_gone(__version__):
                raise UsageError(words)
            print(f"warning: {words}", file=sys.stderr)
        return super().process_value(ctx, value)


class DeclaredArgument(click.RichArgument):
    """An argument of click that knows its declaration."""

    def __init__(self, declared: Option, **given: Any) -> None:
        super().__init__([declared.name], **given)
        self.declared = declared


def record_options(
    record: type, command: str = "", *, only: str = ""
) -> Callable[[Command], Command]:
    """Add the options of a record to a command. `only`: the field of a single option to add."""

    def decorate(function: Command) -> Command:
        found = [one for one in options_of(record, command) if not only or one.name == only]
        parameters = [parameter for one in found for parameter in _parameters(one)]
        parameters.sort(key=lambda one: isinstance(one, click.Option))  # arguments first
        # As click.option does: the last one comes first.
        function.__dict__.setdefault("__click_params__", []).extend(reversed(parameters))
        return function

    return decorate


def _parameters(declared: Option) -> list[click.Parameter]:
    if not declared.flags:
        about = _of_kind(declared.kind, declared)
        return [DeclaredArgument(declared, metavar=declared.metavar, **about)]
    given: dict[str, Any] = {
        "help": declared.help,
        "metavar": declared.metavar,
        "multiple": declared.repeated,
        "is_eager": declared.eager,
        "required": declared.required,
    }
    if declared.default not in (None, ()) and not isinstance(declared.default, bool):
        given["default"] = declared.default
        given["show_default"] = bool(declared.default)  # others say nothing
    elif declared.is_switch:
        given["default"] = declared.default
    given |= _of_kind(declared.kind, declared)
    option = DeclaredOption(declared, **given)
    return [_table_argument(), option] if isinstance(declared.kind, kinds.Table) else [option]


@singledispatch
def _of_kind(kind: kinds.Kind, declared: Option) -> dict[str, Any]:
    """Return the arguments of a parameter of click that a kind of value needs."""
    raise TypeError(f"click has no parameter for {type(kind).__name__}")


@_of_kind.register
def _text(kind: kinds.Text, declared: Option) -> dict[str, Any]:
    return {}


@_of_kind.register
def _flag(kind: kinds.Flag, declared: Option) -> dict[str, Any]:
    return {} if declared.is_switch else {"is_flag": True}


@_of_kind.register
def _choice(kind: kinds.Choice, declared: Option) -> dict[str, Any]:
    return {"type": click.Choice(kind.words)}


@_of_kind.register
def _whole(kind: kinds.Whole, declared: Option) -> dict[str, Any]:
    bounded = (kind.least, kind.most) != (None, None)
    return {"type": click.IntRange(kind.least, kind.most) if bounded else click.INT}


@_of_kind.register
def _positive(kind: kinds.Positive, declared: Option) -> dict[str, Any]:
    return {"type": click.FloatRange(0, min_open=True)}


@_of_kind.register
def _rate(kind: kinds.Rate, declared: Option) -> dict[str, Any]:
    return {"type": Rate()}


@_of_kind.register
def _duration(kind: kinds.Duration, declared: Option) -> dict[str, Any]:
    def parse(context: click.Context, option: click.Parameter, text: str) -> int:
        try:
            seconds = parse_duration_s(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        if seconds < kind.least_s:
            raise click.BadParameter(f"give at least {kind.least_s}s")
        return seconds

    return {"callback": parse, "default": f"{declared.default // 60}m"}


@_of_kind.register
def _path(kind: kinds.PathOf, declared: Option) -> dict[str, Any]:
    return {
        "type": click.Path(
            file_okay=kind.file, dir_okay=kind.folder, writable=kind.writable, path_type=Path
        )
    }


@_of_kind.register
def _new_file(kind: kinds.NewFile, declared: Option) -> dict[str, Any]:
    return {**_path(kind, declared), "callback": _in_a_folder}


@_of_kind.register
def _report_place(kind: kinds.ReportPlace, declared: Option) -> dict[str, Any]:
    return {"type": click.Path(writable=True), "callback": _place_of_report}


@_of_kind.register
def _password(kind: kinds.Password, declared: Option) -> dict[str, Any]:
    return {
        "is_flag": False,
        "flag_value": PROMPT,
        "expose_value": False,
        "callback": note_password_flag,
    }


@_of_kind.register
def _table(kind: kinds.Table, declared: Option) -> dict[str, Any]:
    def table_of(
        context: click.Context, parameter: click.Parameter, value: str | None
    ) -> str | None:
        named: str | None = context.meta.get(_NAMED)
        if value is not None and named is not None:
            raise click.UsageError("TABLE and -t both name the table: give one of them")
        if named is not None and parameter.name is not None:
            # It counts as given, and is part of the command line that a job keeps.
            context.set_parameter_source(parameter.name, ParameterSource.COMMANDLINE)
        if value is None and named is None and kind.required and not context.resilient_parsing:
            raise click.UsageError("no table: give KEYSPACE.TABLE, or -t and -k", context)
        return value if named is None else named

    return {"callback": table_of}


def _table_argument() -> click.Argument:
    """Return the argument that also names the table. It and the option are one parameter."""

    def keep(context: click.Context, _: click.Parameter, value: str | None) -> None:
        context.meta[_NAMED] = value

    return click.RichArgument(
        ["named_table"],
        metavar="[TABLE]",
        required=False,
        is_eager=True,
        expose_value=False,
        callback=keep,
    )


@_of_kind.register
def _sources(kind: kinds.Sources, declared: Option) -> dict[str, Any]:
    return {"nargs": -1, "callback": _need_a_source}


def _need_a_source(
    context: click.Context, parameter: click.Parameter, sources: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse a command without a source. `--urlfile` is eager, so its value is known here."""
    if not sources and context.params["urlfile"] is None:
        words = "Give one, or --urlfile FILE"
        raise click.MissingParameter(words, ctx=context, param=parameter)
    return sources


def _place_of_report(
    context: click.Context, option: click.Parameter, text: str | None
) -> Path | None:
    if text is None:
        return None
    if text == "-":
        raise click.BadParameter(
            "standard output is for data; `ringhaul report JOB -o -` prints a report"
        )
    if context.obj is not AS_STEP:
        refuse_missing_folder(text)
    path = Path(text)
    return path if path.is_dir() else _in_a_folder(context, option, path)


def refuse_missing_folder(text: str) -> None:
    """Raise `BadParameter` for a path that ends like a folder's, but is not a folder: each job
    would overwrite a file of that name."""
    if text.endswith(os.sep) and not os.path.isdir(text):
        raise click.BadParameter(f"there is no folder {text}")


def _in_a_folder(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be created, before there is a job. Click checks existing ones."""
    if context.obj is AS_STEP:
        return path
    if path is not None and not path.exists():
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise click.BadParameter(f"folder {path.parent} is not writable")
    return path

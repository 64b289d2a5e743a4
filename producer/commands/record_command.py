"""Commands whose options a record declares, and their help in two levels.

`--help` of a command with many options shows what most people need; `--help-all` shows all options.
rich_click draws both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from itertools import groupby
from typing import Any

import rich_click as click

from producer.commands.click_options import record_options
from producer.options.groups import Group
from producer.options.option import declared_by
from producer.request.command_line import keep_words

#: More options than these are shown in two levels.
OPTIONS_MAX = 20
#: In a context's meta data: whether the help page shows every option.
_ALL = "ringhaul.help_all"


class OptionPanel(click.RichOptionPanel):
    """Options under a heading."""

    def __init__(self, heading: str, parameters: list[click.Parameter]) -> None:
        super().__init__(heading)
        self._parameters = parameters

    def get_objects(self, command: click.Command, ctx: click.Context) -> Iterator[click.Parameter]:  # type: ignore[override]
        yield from self._parameters


class RecordCommand(click.RichCommand):
    """A command with the options of a record."""

    def __init__(self, *args: Any, record: type, **given: Any) -> None:
        super().__init__(*args, **given)
        self.record = record
        self._help_all = click.RichOption(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help=f"Show all {len(self._options)} options and exit.",
        )

    @property
    def _options(self) -> list[click.Option]:
        return [one for one in self.params if isinstance(one, click.Option)]

    @property
    def has_levels(self) -> bool:
        """Whether `--help` leaves options to `--help-all`."""
        return len(self._options) > OPTIONS_MAX

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters, including the options that show help pages."""
        found = super().get_params(ctx)
        return [*found, self._help_all] if self.has_levels else found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, which the job's record keeps as they are."""
        keep_words(ctx, args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Draw the options of a help page by their groups, in the groups' order."""
        shown = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        if self.has_levels and not ctx.meta.get(_ALL):
            shown = [_briefly(one) for one in shown if _is_common(one)]
        for group, parameters in groupby(shown, key=_group_of):
            panel = OptionPanel(group.value, list(parameters))
            formatter.write(panel.render(self, ctx, formatter))  # type: ignore[arg-type]


def _is_common(option: click.Option) -> bool:
    declared = declared_by(option)
    return declared is None or declared.common


def _briefly(option: click.Option) -> click.Option:
    """Return an option as the first page shows it: in a line, without its default."""
    declared = declared_by(option)
    if declared is None:
        return option
    found = copy(option)
    found.help, found.show_default = declared.brief or declared.help, False
    return found


def _group_of(parameter: click.Parameter) -> Group:
    declared = declared_by(parameter)
    return Group.OTHER if declared is None else declared.group


def _show_all(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        print(ctx.get_help())
        ctx.exit()


def record_command(name: str, record: type) -> Callable[[Callable[..., int]], RecordCommand]:
    """Make a function a command that has the options of a record."""

    def decorate(function: Callable[..., int]) -> RecordCommand:
        with_options = record_options(record, name)(function)
        return click.command(name, cls=RecordCommand, record=record)(with_options)

    return decorate

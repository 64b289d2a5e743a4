"""Apply `--format-profile NAME`: options about records, from the settings file.

A section `[format.NAME]` holds the dialect of a feed. Its keys are options of `load`, or of
`unload` if a load does not have them. It sets all options that were not given, so the job, its
fingerprint and a schedule's step see the resolved values. A load ignores keys that only an unload
has. An unload ignores keys that only a load has, or that choose a load's records and columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import rich_click as click
from click.core import ParameterSource

from config.names import nearest
from config.settings import Formats, load_formats
from producer.options.groups import Group
from producer.options.option import options_of
from producer.options.output import RowsOutput
from producer.options.spelling import Spelling
from producer.request.values import given_options
from ringhaul.errors import UsageError
from ringhaul.formats.presets import input_options, output_options
from tasks.command_line import VALUES_PREFIX, option_name

#: The option itself, by its name in `load`.
OPTION = "format-profile"
#: Options that choose a load's fields: not for an unload, although it has options of these names.
_OF_A_LOAD = ("columns", "mapping")
#: Values that are only for reading files.
_ONLY_READ = {"format": ("auto",), "line-end": ("any",), "json-layout": ("documents", "commented")}


def apply_profile(context: click.Context) -> str | None:
    """Put the values of the profile that a parsed command names into its parameters.

    Returns a line that says what was set and where it comes from; None if no profile is named.
    Raises `UsageError` for a profile or an option that does not exist, and for unusable values.
    """
    prefix = VALUES_PREFIX if f"--{VALUES_PREFIX}{OPTION}" in _flags(context) else ""
    name = context.params.get(f"{prefix}{OPTION}".replace("-", "_"))
    if name is None:
        return None
    formats = load_formats(context.params.get("config_file"))
    section = _section(formats, name)
    own = {_key(option): option for option in context.command.params}
    writes = option_name("null-quoted", prefix) not in own
    for key in section:
        if key not in (*_known(), *_only_written()):
            raise UsageError(
                f"{formats.place(name, key)}: [format.{name}] has {key}, which is not an option "
                f"for records{nearest(key, _known())}"
            )
    hidden = _of_a_dialect(context) if writes else _of_the_preset(context, prefix)
    shown, passed = [], []
    for key, raw in section.items():
        flag = option_name(key, prefix)
        if (not writes and key in _only_written()) or (writes and _is_read_only(own, key, raw)):
            passed.append(key)
            continue
        parameter = own[flag]
        if parameter.name in given_options(context) or key in hidden:
            continue  # the command line wins
        if writes and isinstance(raw, list) and raw and not parameter.multiple:
            raw = raw[0]  # the first is written
        _set(context, parameter, raw, f"{formats.place(name, key)}: [format.{name}] {key}")
        shown.append(_shown(flag, parameter, raw))
    said = f"[format.{name}] of {formats.path}: {' '.join(shown) or 'nothing that was not given'}"
    if passed:
        said += f" (not for {context.command.name}: {', '.join(passed)})"
    return said


def _is_read_only(own: Mapping[str, click.Parameter], key: str, raw: Any) -> bool:
    """Whether a key, or its value, does not apply to an unload."""
    return f"--{key}" not in own or key in _OF_A_LOAD or raw in _ONLY_READ.get(key, ())


def _section(formats: Formats, name: str) -> Mapping[str, Any]:
    if name not in formats.sections:
        where = formats.path or "ringhaul.toml, which was not found"
        known = ", ".join(sorted(formats.sections)) or "none"
        raise UsageError(
            f"--{OPTION} {name}: there is no [format.{name}] in {where}; it has: {known}"
            f"{nearest(name, formats.sections)}"
        )
    return {key.replace("_", "-"): value for key, value in formats.sections[name].items()}


@cache
def _known() -> dict[str, str]:
    """Return the options of a load that a profile may have: name -> the name of their parameter."""
    return {one.key: one.name for one in options_of(Spelling) if one.key != OPTION}


@cache
def _only_written() -> frozenset[str]:
    """Return the options of an unload that a load does not have."""
    written = (one.key for one in options_of(RowsOutput) if one.group is Group.FORMAT)
    return frozenset(written) - frozenset(_known())


def _flags(context: click.Context) -> set[str]:
    return {_key(option) for option in context.command.params}


def _key(option: click.Parameter) -> str:
    return max(option.opts, key=len)


def _of_a_dialect(context: click.Context) -> set[str]:
    """Return the options of an unload that a `--dialect` on the command line sets."""
    if "dialect" not in given_options(context):
        return set()
    found = output_options(context.params["dialect"], {})
    return {one.key for one in options_of(RowsOutput) if one.name in found}


def _of_the_preset(context: click.Context, prefix: str) -> set[str]:
    """Return the options of a load that a `--dialect` on the command line sets."""
    start = prefix.replace("-", "_")
    given = {name.removeprefix(start) for name in given_options(context) if name.startswith(start)}
    if "dialect" not in given:
        return set()
    params = context.params
    quote, escape = params[f"{start}quote"], params[f"{start}escape"]
    found = input_options(params[f"{start}dialect"], given, quote=quote, escape=escape)
    return {key for key, name in _known().items() if name in found}


def _set(context: click.Context, parameter: click.Parameter, raw: Any, what: str) -> None:
    """Set a parameter that was not given. `what`: names it in messages."""
    value = raw
    if parameter.multiple:
        value = raw if isinstance(raw, list) else [raw]
    is_flag = getattr(parameter, "is_flag", False)
    texts = value if parameter.multiple else [value]
    wanted = bool if is_flag else (str, int)
    if not all(isinstance(one, wanted) and (is_flag or type(one) is not bool) for one in texts):
        kind = "true or false" if is_flag else "a text or a number"
        raise UsageError(f"{what} = {raw!r}: expected {kind}{' or a list' * parameter.multiple}")
    if not is_flag:
        value = [str(one) for one in value] if parameter.multiple else str(value)
    assert parameter.name is not None
    try:
        context.params[parameter.name] = parameter.process_value(context, value)
    except click.BadParameter as error:
        raise UsageError(f"{what} = {raw!r}: {error.message}") from None
    context.set_parameter_source(parameter.name, ParameterSource.DEFAULT_MAP)


def _shown(flag: str, parameter: click.Parameter, raw: Any) -> str:
    """Return an option as it would be given."""
    if isinstance(raw, bool):
        return flag if raw else parameter.secondary_opts[0] if parameter.secondary_opts else ""
    values = raw if isinstance(raw, list) else [raw]
    return " ".join(f"{flag} {str(one)!r}" for one in values)

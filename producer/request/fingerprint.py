"""The fingerprint of a command: which work it requests, and where its files go. The job stores it,
so that a later command with the same job id can check whether it requests the same.

Options about how the work is done (speed, consistency level, display) are left out: they may
differ from try to try. An option counts unless it is listed in `_HOW`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import rich_click as click

from producer.request.settings import CONNECTION_FLAGS
from producer.startup import STEP_VARIABLE
from ringhaul.storage.access import is_url, mask_url
from ringhaul.storage.streams import is_stream

#: Label of a job that holds its fingerprint. Jobs of earlier versions have none.
FINGERPRINT_LABEL = "asked"

#: Options about how the work is done, followed and shown.
_HOW = frozenset(
    (
        *CONNECTION_FLAGS,
        *("config_file", "cqlshrc", "ask_password", "job_id", "dry_run", "detach"),
        *("workers", "on_interrupt", "progress", "as_json", "quiet", "summary", "report"),
        *("rate", "priority", "consistency", "strategy", "unit_size", "max_errors"),
        "sstable_size",
        "result_format",
        *("format_profile", "values_format_profile"),  # its options count
        # How the table came about. Its key counts: rows of one key overwrite each other.
        *("create_table", "yes"),
    )
)
#: Options that name files or folders.
_PLACES = frozenset(("sources", "urlfile", "keys", "params", "output"))
#: Longer texts are cut, because every look at the job reads them.
_CHARS_MAX = 400
_CHARS_SHOWN = 200
_PLAIN = re.compile(r"[^\s'\"]+")


def fingerprint_of(context: click.Context | None = None) -> str:
    """Return the fingerprint of a parsed command, or of the running one: JSON, option -> its value.

    Options at their default are left out, and so are the secrets in URLs.
    """
    context = context or click.get_current_context()
    assert context is not None
    values = dict(context.params)
    if values.get("table") is not None and values.get("keyspace") is not None:
        if "." not in values["table"]:
            values["table"] = f"{values['keyspace']}.{values['table']}"
        values["keyspace"] = None
    left_out = _HOW
    if "result_format" in values:  # each command decides where its result goes
        left_out |= {"output"}
    found = {
        _name(parameter): _text(parameter.name or "", values[parameter.name or ""])
        for parameter in context.command.params
        if parameter.name not in left_out
        and parameter.name in values  # the argument TABLE is the option's value
        and _is_asked(parameter, values[parameter.name or ""], context)
    }
    return json.dumps(found)


def differences(was: str, now: str) -> list[str]:
    """Describe the differences between two fingerprints."""
    before, here = json.loads(was), json.loads(now)
    return [
        f"{name} {_value_text(before, name)}, here {_value_text(here, name)}"
        for name in dict.fromkeys((*before, *here))
        if before.get(name) != here.get(name)
    ]


def _value_text(request: Mapping[str, str], name: str) -> str:
    return repr(request[name]) if name in request else "not given"


def _is_asked(parameter: click.Parameter, value: Any, context: click.Context) -> bool:
    if value is None or value == () or value == parameter.get_default(context):
        return False
    # A switch that is off, unless its opposite is an option, too (--no-header).
    return value is not False or bool(parameter.secondary_opts)


def _name(parameter: click.Parameter) -> str:
    """Return the parameter as messages call it: `--where`, `SOURCE`, `-o`."""
    if isinstance(parameter, click.Argument):
        return (parameter.metavar or parameter.opts[0]).rstrip(".")
    return "-o" if parameter.name == "output" else max(parameter.opts, key=len)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    spell = _list if name == "urlfile" else _place if name in _PLACES else str
    text = _joined(map(spell, value)) if isinstance(value, tuple) else spell(value)
    if len(text) <= _CHARS_MAX:
        return text
    return f"{text[:_CHARS_SHOWN]}... ({len(text):,} characters, {_digest(text)})"


def _joined(texts: Iterable[str]) -> str:
    """Join the texts, quoting those that could not be separated again."""
    return " ".join(text if _PLAIN.fullmatch(text) else repr(text) for text in texts)


def _place(text: str) -> str:
    if is_url(text):
        # Two URLs of a web server may differ only in their queries.
        return text if mask_url(text) == text else f"{mask_url(text)}({_digest(text)})"
    if is_stream(text) or os.environ.get(STEP_VARIABLE):
        return text
    return os.path.abspath(text)


def _list(text: str) -> str:
    """Describe a list of files by its place, and by the content that says which files these are."""
    try:
        # What can be read only once is left for the command.
        content = "" if is_stream(text) else Path(text).read_text("utf-8", "surrogateescape")
    except OSError:
        return _place(text)  # reading it will report the error
    return f"{_place(text)}({_digest(content)})" if content else _place(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

"""The fingerprint of a command: which work it requests, and where its files go. The job stores it,
so that a later command with the same job id can check whether it requests the same work.

Options about how the work is done (speed, consistency level, display) are left out: they may
differ from try to try. An option counts unless its declaration says `how`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import rich_click as click

from producer.options.kinds import Kind, Place, PlaceList
from producer.options.option import Option, declared_by
from producer.startup import STEP_VARIABLE
from ringhaul.storage.access import is_url, mask_url
from ringhaul.storage.streams import is_stream

#: Label of a job that holds its fingerprint. Jobs of earlier versions have none.
FINGERPRINT_LABEL = "asked"

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
    found = {
        _name(declared): _text(declared.kind, values[declared.name])
        for parameter in context.command.params
        if (declared := declared_by(parameter)) is not None  # the argument TABLE is the option's
        and not declared.how
        and _is_asked(declared, values[declared.name])
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


def _is_asked(declared: Option, value: Any) -> bool:
    if value is None or value == () or value == declared.default:
        return False
    # A switch that is off does not count, unless its opposite is also an option (--no-header).
    return value is not False or declared.is_switch


def _name(declared: Option) -> str:
    """Return an option as messages call it: `--where`, `SOURCE`, `-o`."""
    if not declared.flags:
        return (declared.metavar or declared.name).rstrip(".")
    return "-o" if declared.name == "output" else declared.flag


def _text(kind: Kind, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    spell: Callable[[Any], str] = str
    if isinstance(kind, Place):
        spell = _list if isinstance(kind, PlaceList) else _place
    text = _joined(map(spell, value)) if isinstance(value, tuple) else spell(value)
    if len(text) <= _CHARS_MAX:
        return text
    return f"{text[:_CHARS_SHOWN]}... ({len(text):,} characters, {_digest(text)})"


def _joined(texts: Iterable[str]) -> str:
    """Join the texts, quoting each that could not be separated again."""
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

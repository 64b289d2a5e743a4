"""A text with commands of other tools, as commands of ringhaul."""

from __future__ import annotations

import re
from collections.abc import Iterator

from producer.translate.bulk_loader import translate_bulk_loader
from producer.translate.bulk_loader_line import OpenFile, no_file
from producer.translate.cqlsh_line import translate_cqlsh, translate_statements
from producer.translate.translation import NotTranslatable, Translation

_BULK_LOADER = frozenset({"dsbulk", "dsbulk.sh", "dsbulk.cmd"})
_CQLSH = frozenset({"cqlsh", "cqlsh.py"})
_PROGRAMS = _BULK_LOADER | _CQLSH
#: Variables and programs of the shell in front of one of these.
_BEFORE_PROGRAM = re.compile(
    r"""\s*(?>(?:\w+=(?>"[^"]*"|'[^']*'|\S*)|sudo|time|nohup|nice|exec)\s+)++"""
    r"(?=\S*(?:dsbulk|cqlsh))"
)


def translate(text: str, open_file: OpenFile = no_file) -> list[Translation]:
    """Return a command of ringhaul for each command in a text. Raises `NotTranslatable`.

    `open_file`: see `translate_bulk_loader`.
    """
    found: list[Translation] = []
    statements: list[str] = []
    for line in _commands(text.replace("\\\n", " ")):
        program = _program(line)
        if program in _BULK_LOADER:
            translated = [translate_bulk_loader(line, open_file)]
        elif program in _CQLSH:
            translated = translate_cqlsh(line)
        elif program.startswith("#"):
            continue
        else:
            statements.append(line)
            continue
        found += [*translate_statements("\n".join(statements)), *translated]
        statements.clear()
    found += translate_statements("\n".join(statements))
    if not found:
        raise NotTranslatable("there is no COPY statement, and no command of dsbulk or cqlsh")
    return found


def _commands(text: str) -> Iterator[str]:
    """Yield the lines of a text. The call of a program ends where its quotes are closed."""
    kept: list[str] = []
    quote = ""
    for line in text.splitlines():
        if not kept and (before := _BEFORE_PROGRAM.match(line)):
            line = line[before.end() :]
        if kept or _program(line) in _PROGRAMS:
            kept.append(line)
            quote = _quote_at_end(line, quote)
            if not quote:
                yield "\n".join(kept)
                kept = []
        else:
            yield line
    if kept:
        yield "\n".join(kept)


def _program(line: str) -> str:
    words = line.split(maxsplit=1)
    return words[0].rpartition("/")[2] if words else ""


def _quote_at_end(line: str, quote: str) -> str:
    """Return the quote that is open at the end of a line of a shell; `quote`: at its start."""
    escaped = False
    for char in line:
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
    return quote

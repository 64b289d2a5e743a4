"""`ringhaul translate`: text in, commands out."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Iterator

import rich_click as click

from producer.outputs.stdout import json_text
from producer.translate.bulk_loader import translate_bulk_loader
from producer.translate.cqlsh_line import translate_cqlsh, translate_statements
from producer.translate.translation import NotTranslatable, Translation
from ringhaul.errors import EXIT_COMPLETE, EXIT_REJECTS, UsageError

#: A longer text is not a script of commands.
CHARACTERS_MAX = 1_000_000
NOTE_WIDTH = 80
_BULK_LOADER = frozenset({"dsbulk", "dsbulk.sh", "dsbulk.cmd"})
_CQLSH = frozenset({"cqlsh", "cqlsh.py"})
_PROGRAMS = _BULK_LOADER | _CQLSH
#: Variables and programs of the shell in front of one of these.
_BEFORE_PROGRAM = re.compile(
    r"""\s*(?>(?:\w+=(?>"[^"]*"|'[^']*'|\S*)|sudo|time|nohup|nice|exec)\s+)++"""
    r"(?=\S*(?:dsbulk|cqlsh))"
)


# -h and all unknown options belong to the command that is translated.
@click.command(
    "translate",
    context_settings={"help_option_names": ["--help"], "ignore_unknown_options": True},
)
@click.argument("words", metavar="COMMAND", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="JSON Lines on stdout: command and notes.")
def translate_command(words: tuple[str, ...], as_json: bool) -> int:
    """Translate a command of cqlsh COPY or Bulk Loader.

    COMMAND is a command of dsbulk or cqlsh, a COPY statement in quotes, or - for a script on
    standard input. What has no counterpart is listed, and makes the exit code 1 if rows may differ
    without it.
    """
    text = sys.stdin.read(CHARACTERS_MAX + 1) if words == ("-",) else _text(words)
    if len(text) > CHARACTERS_MAX:
        raise UsageError(f"translate: more than {CHARACTERS_MAX:,} characters are not a command")
    try:
        found = translate(text)
    except NotTranslatable as error:
        raise UsageError(f"translate: {error}") from None
    for translation in found:
        if as_json:
            print(json_text(_document(translation)))
            continue
        print(translation.line)
        for note in translation.notes:
            mark = "no counterpart" if note.lost else "note"
            text = f" {mark}: {note.option}: {note.text}"
            # Options stay in one piece: they are copied from here.
            for line in textwrap.wrap(
                text, NOTE_WIDTH, subsequent_indent="    ", break_on_hyphens=False
            ):
                print(line, file=sys.stderr)
    return EXIT_COMPLETE if all(one.complete for one in found) else EXIT_REJECTS


def _text(words: tuple[str, ...]) -> str:
    """Return a command as it stands in a script. Raises `UsageError` for a COPY without quotes."""
    if len(words) == 1:
        return words[0]
    if words[0].lower() == "copy":
        raise UsageError(
            "translate: give the COPY statement in double quotes, as in \"COPY t FROM 'a.csv'\": "
            "without them the shell removes the quotes within it"
        )
    return shlex.join(words)


def translate(text: str) -> list[Translation]:
    """Return a command of ringhaul for each command in a text. Raises `NotTranslatable`."""
    found: list[Translation] = []
    statements: list[str] = []
    for line in _commands(text.replace("\\\n", " ")):
        program = _program(line)
        if program in _BULK_LOADER:
            translated = [translate_bulk_loader(line)]
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
    """Yield the lines of a text; one that calls a program, up to where its quotes are closed."""
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


def _document(translation: Translation) -> dict[str, object]:
    return {
        "message_type": "translation",
        "command": ["ringhaul", *translation.words],
        "complete": translation.complete,
        "notes": [
            {"option": note.option, "text": note.text, "lost": note.lost}
            for note in translation.notes
        ],
    }

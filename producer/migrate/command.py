"""The command line of `ringhaul translate`."""

from __future__ import annotations

import shlex
import sys
import textwrap
from pathlib import Path

import rich_click as click

from producer.outputs.stdout import json_text
from producer.translate.command import translate
from producer.translate.translation import NotTranslatable, Translation
from ringhaul.errors import EXIT_COMPLETE, EXIT_REJECTS, UsageError

#: A longer text is not a script of commands.
CHARACTERS_MAX = 1_000_000
#: A larger file is not one with settings.
FILE_BYTES_MAX = 1 << 18
NOTE_WIDTH = 80


# -h and all unknown options belong to the command that is translated.
@click.command(
    "translate",
    context_settings={"help_option_names": ["--help"], "ignore_unknown_options": True},
)
@click.argument("words", metavar="COMMAND", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="JSON Lines on stdout: command and notes.")
@click.option("--check", is_flag=True, help="Read the table's schema, and use what it says.")
def translate_command(words: tuple[str, ...], as_json: bool, check: bool) -> int:
    """Translate a command of cqlsh COPY or Bulk Loader.

    COMMAND is a command of dsbulk or cqlsh, a COPY statement in quotes, or - for a script on
    standard input. Notes list what has no counterpart. The exit code is 1 if rows may differ, or if
    ringhaul would refuse the command.
    """
    from producer.migrate.guard import checked

    text = sys.stdin.read(CHARACTERS_MAX + 1) if words == ("-",) else _text(words)
    if len(text) > CHARACTERS_MAX:
        raise UsageError(f"translate: more than {CHARACTERS_MAX:,} characters are not a command")
    try:
        found = translate(text, _read)
    except NotTranslatable as error:
        raise UsageError(f"translate: {error}") from None
    if check:
        from producer.migrate.schema import with_schema

        found = [with_schema(one) for one in found]
    found = [checked(one) for one in found]
    for translation in found:
        if as_json:
            print(json_text(_document(translation)))
        else:
            _show(translation)
    return EXIT_COMPLETE if all(one.exact for one in found) else EXIT_REJECTS


def _show(translation: Translation) -> None:
    print(translation.line)
    for note in translation.notes:
        text = f" {note.kind}: {note.option}: {note.text}"
        # Options stay in one piece: they are copied from here.
        for line in textwrap.wrap(
            text, NOTE_WIDTH, subsequent_indent="    ", break_on_hyphens=False
        ):
            print(line, file=sys.stderr)


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


def _read(name: str) -> str:
    """Return the text of a file with settings. Raises `NotTranslatable`."""
    try:
        with Path(name).expanduser().open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise NotTranslatable(f"dsbulk: -f {name}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise NotTranslatable(f"dsbulk: -f {name}: it has more than {FILE_BYTES_MAX:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTranslatable(f"dsbulk: -f {name}: not UTF-8 at byte {error.start:,}") from None


def _document(translation: Translation) -> dict[str, object]:
    return {
        "message_type": "translation",
        "command": ["ringhaul", *translation.words],
        "complete": translation.complete,
        "exact": translation.exact,
        "notes": [
            {
                "option": note.option,
                "text": note.text,
                "kind": note.kind.name.lower(),
                "lost": note.lost,
            }
            for note in translation.notes
        ],
    }

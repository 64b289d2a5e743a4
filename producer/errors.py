"""From exceptions to one line on stderr and an exit code (table in docs/cli.md)."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable

import rich_click as click
from click.exceptions import Exit

from config.errors import ConfigError
from config.secrets import mask
from producer.outputs.plain_streams import Drawn
from producer.outputs.stdout import let_go_of_stdout
from producer.startup import STEP_VARIABLE
from ringhaul.errors import (
    EXIT_COMPLETE,
    EXIT_CRASH,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    NO_ROOM,
    RinghaulError,
    SetupUnusable,
)
from ringhaul.plain_text import Lines, as_line, as_lines, as_message, lines_of

#: Of standard output: its disk is full, or it was closed before we began (`startup`).
_UNWRITABLE = (*NO_ROOM, errno.EBADF)


def run_command(command: Callable[[], object]) -> int:
    """Run a command; its exit code, after telling what went wrong in words.

    A command returns its exit code, or None for 0. A closed pipe ends quietly: the reader of our
    output has had enough.
    """
    try:
        code = command()
    except Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        if isinstance(error.message, Drawn):  # a help page: the command was given without words
            print(error.message, file=sys.stderr)
            return EXIT_USAGE
        # It quotes what was typed, such as the name of a file. Click calls it final.
        object.__setattr__(error, "message", as_line(error.message))
        shown = io.StringIO()
        error.show(shown)
        print(Lines(mask(shown.getvalue())), file=sys.stderr, end="")
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        let_go_of_stdout()
        return EXIT_COMPLETE
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):  # click's way to end on a closed pipe
            raise
        let_go_of_stdout()
        return EXIT_COMPLETE
    except (RinghaulError, ConfigError) as error:
        print_error(lines_of(error.lines) if isinstance(error, ConfigError) else str(error))
        return _exit_code(error)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            return _crashed()
        let_go_of_stdout()  # most likely the one whose disk is full
        print_error(f"output cannot be written: {error}")
        return EXIT_FATAL
    except Exception:
        return _crashed()
    return code if isinstance(code, int) else EXIT_COMPLETE


def _exit_code(error: RinghaulError | ConfigError) -> int:
    """In a step of a schedule a setting or a host is nothing that its files are to blame for: the
    step may be tried again when that is mended."""
    if isinstance(error, ConfigError | SetupUnusable) and os.environ.get(STEP_VARIABLE):
        return EXIT_FATAL
    return error.exit_code


def _crashed() -> int:
    print(Lines(mask(as_lines(traceback.format_exc()))), file=sys.stderr, end="")
    print_error("this is a defect in ringhaul; please report it with the lines above")
    return EXIT_CRASH


def print_error(text: str) -> None:
    """One error on stderr, without secrets; on one line, unless its text is of `Lines`."""
    print(Lines(f"error: {mask(as_message(text))}"), file=sys.stderr)

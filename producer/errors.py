"""Turn exceptions into one line on stderr and an exit code (docs/reference/exit-codes.md)."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import rich_click as click
from click.exceptions import Exit

from config.errors import ConfigError
from config.secrets import mask
from producer.outputs.plain_streams import Drawn
from producer.outputs.stdout import let_go_of_stdout
from producer.startup import ERROR_FILE_VARIABLE, STEP_ERROR_VARIABLE, STEP_VARIABLE
from ringhaul.errors import (
    EXIT_COMPLETE,
    EXIT_CRASH,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    NO_ROOM,
    OutputUnusable,
    RinghaulError,
    SetupUnusable,
    UsageError,
)
from ringhaul.plain_text import Lines, as_line, as_lines, as_message, lines_of

#: Errors of standard output: its disk is full, or it was closed before we started (`startup`).
_UNWRITABLE = (*NO_ROOM, errno.EBADF)


def run_command(command: Callable[[], object]) -> int:
    """Run a command; return its exit code, after printing what went wrong.

    A command returns its exit code, or None for 0. A closed pipe ends it quietly: the reader of our
    output needs no more.
    """
    try:
        code = command()
    except Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        if isinstance(error.message, Drawn):  # a help page: the command was given without arguments
            print(error.message, file=sys.stderr)
            return EXIT_USAGE
        # It quotes what the user typed, such as a file name. Click declares it final.
        object.__setattr__(error, "message", as_line(error.message))
        shown = io.StringIO()
        error.show(shown)
        print(Lines(mask(shown.getvalue())), file=sys.stderr, end="")
        _leave_to_caller(mask(error.message), UsageError)
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        let_go_of_stdout()
        return EXIT_COMPLETE
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):  # how click ends on a closed pipe
            raise
        let_go_of_stdout()
        return EXIT_COMPLETE
    except (RinghaulError, ConfigError) as error:
        text = lines_of(error.lines) if isinstance(error, ConfigError) else str(error)
        print_error(text, type(error))
        return _exit_code(error)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            return _crashed()
        let_go_of_stdout()  # most likely on the disk that is full
        print_error(f"output cannot be written: {error}", OutputUnusable)
        return EXIT_FATAL
    except Exception:
        return _crashed()
    return code if isinstance(code, int) else EXIT_COMPLETE


def _exit_code(error: RinghaulError | ConfigError) -> int:
    """Return the exit code of an error. In a step of a schedule, an error of settings or of the
    host is not the fault of its files: the step may be retried once it is mended."""
    if isinstance(error, ConfigError | SetupUnusable) and os.environ.get(STEP_VARIABLE):
        return EXIT_FATAL
    return error.exit_code


def _crashed() -> int:
    print(Lines(mask(as_lines(traceback.format_exc()))), file=sys.stderr, end="")
    print_error(
        "this is a defect in ringhaul; please report it with the lines above", RinghaulError
    )
    return EXIT_CRASH


def print_error(text: str, kind: type[Exception]) -> None:
    """Print one error to stderr, without secrets; on one line, unless its text is of `Lines`.
    `kind`: its class, for programs."""
    shown = mask(as_message(text))
    print(Lines(f"error: {shown}"), file=sys.stderr)
    _leave_to_caller(shown, kind)


def _leave_to_caller(text: str, kind: type[Exception]) -> None:
    """Write an error for the schedule whose step this command is, or the client that runs it. The
    client knows some of its classes by name; the most general comes last."""
    line = " ".join(text.split())
    names = [base.__name__ for base in kind.__mro__ if base not in (Exception, *Exception.__mro__)]
    report = json.dumps({"errors": names, "message": line})
    for variable, content in ((STEP_ERROR_VARIABLE, line), (ERROR_FILE_VARIABLE, report)):
        path = os.environ.get(variable)
        if path:
            with suppress(OSError):  # it is on stderr
                Path(path).write_text(content, "utf-8", "backslashreplace")

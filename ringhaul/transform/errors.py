"""Describe errors of users' code in one line, and let interrupts of the process through."""

from __future__ import annotations

import signal

from ringhaul.errors import EXIT_FATAL, Terminal
from ringhaul.plain_text import as_line

#: Length limit of a reason: an exception may contain a complete record.
REASON_CHARACTERS_MAX = 300

#: Packages whose signal handlers raise into the running code: time limits, requests to stop.
_PACKAGES = ("billiard", "celery", "kombu", "producer", "tasks")
#: billiard's replacement for `sys.exit` in the processes of a worker.
_SYS_EXIT = ("billiard.pool", "exit")


class TransformError(Terminal):
    """A transform cannot be used: not allowed, not found, or its result is invalid."""

    exit_code = EXIT_FATAL


def reason_of(error: BaseException) -> str:
    """Return the exception's type and text on one line, cut to REASON_CHARACTERS_MAX."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its text is unavailable)"
    if len(text) > REASON_CHARACTERS_MAX:
        text = text[:REASON_CHARACTERS_MAX] + "..."
    printable = as_line(text)
    name = type(error).__name__
    return f"{name}: {printable}" if printable else name


def rethrow_interrupt(error: BaseException) -> None:
    """Raise `error` again if it comes from the surrounding process, not from the user's code.

    That is Ctrl-C, a time limit, or the stop of a worker. Otherwise SystemExit and the like are
    ordinary errors: a user's function cannot end a worker.
    """
    # Where Ctrl-C is ignored, as in the processes of workers, it can only come from the function.
    if isinstance(error, KeyboardInterrupt) and (
        signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    ):
        raise error
    place = error.__traceback__
    while place is not None:
        frame = place.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        called = (module, frame.f_code.co_name)
        if module.partition(".")[0] in _PACKAGES and called != _SYS_EXIT:
            raise error
        place = place.tb_next

"""What users' code raises, told in a line; and what only came up while it ran."""

from __future__ import annotations

import signal

from ringhaul.errors import EXIT_FATAL, Terminal
from ringhaul.plain_text import as_line

#: Of a reason: an exception may hold a whole record.
REASON_CHARACTERS_MAX = 300

#: Packages that raise into whatever runs, from handlers of signals: time limits, the word to stop.
_WORKER_PACKAGES = ("billiard", "celery", "kombu", "tasks")
#: What billiard puts in the place of `sys.exit` in the processes of a worker.
_SYS_EXIT = ("billiard.pool", "exit")


class TransformError(Terminal):
    """A transform cannot be used: not allowed, not found, or it gives what is no result."""

    exit_code = EXIT_FATAL


def reason_of(error: BaseException) -> str:
    """The exception's type and text, on one line and not longer than a line should be."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its text cannot be had)"
    if len(text) > REASON_CHARACTERS_MAX:
        text = text[:REASON_CHARACTERS_MAX] + "..."
    printable = as_line(text)
    name = type(error).__name__
    return f"{name}: {printable}" if printable else name


def rethrow_interrupt(error: BaseException) -> None:
    """Raise `error` again if it is not of the code that ran but of the process around it.

    That is Ctrl-C, a time limit, or a worker that is being stopped. SystemExit and the like are
    otherwise an error as any: no function of a user's ends a worker.
    """
    if isinstance(error, KeyboardInterrupt):
        # In the processes of workers, where it is ignored, it can only come from the function.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            raise error
        return
    place = error.__traceback__
    while place is not None:
        frame = place.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        called = (module, frame.f_code.co_name)
        if module.partition(".")[0] in _WORKER_PACKAGES and called != _SYS_EXIT:
            raise error
        place = place.tb_next

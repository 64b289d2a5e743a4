"""Logging: messages with fields, as text lines on a terminal and as JSON for machines.

Code logs through the standard library, `log.info("Unit committed.", extra={"action": ...})`, so
that records of Celery and of the driver get the same treatment. Passwords are masked in everything
that is logged, tracebacks included. Logs go to stderr; stdout is for data.

Each line that a process logs while it works on a unit has the fields `job` and `unit`, whether our
code, Celery, the driver or a thread of the driver logs it.
"""

import logging
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from config.secrets import mask
from config.sections import LoggingSettings

#: Loggers that are noisy below WARNING, about connections and not about the job.
_QUIET = ("amqp", "cassandra", "kombu", "urllib3")
#: The unit of a task, in the text that Celery logs of its arguments (tasks/publish.py).
_UNIT = re.compile(r"\{'job': '([A-Za-z0-9_.-]{1,64})', 'unit': ([0-9]{1,15})[,}]")

#: Fields of each line of this process. Not a context variable: threads of the driver log as well.
_facts: dict[str, Any] = {}


def set_log_facts(**facts: Any) -> None:
    """Add these fields to each line that this process logs. They replace all earlier facts."""
    global _facts
    _facts = facts


def set_up_logging(
    settings: LoggingSettings,
    stream: TextIO | None = None,
    *,
    plain: Callable[[str], str] = str,
) -> None:
    """Send everything that this process logs to `stream` (stderr by default), in one format.

    `plain` makes a text safe to show on one line of a terminal; it is not used for JSON.
    A second call replaces the first: a worker's child calls this again after the fork.
    """
    out = stream if stream is not None else sys.stderr
    handler = logging.StreamHandler(out)
    handler.setFormatter(_formatter(settings, out, plain))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level)
    logging.captureWarnings(True)  # Python's `warnings` become lines like all others
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def is_json(settings: LoggingSettings, stream: TextIO | None = None) -> bool:
    """Return whether each line of a log to `stream` (stderr by default) is JSON."""
    out = stream if stream is not None else sys.stderr
    return settings.format == "json" or (settings.format == "auto" and not out.isatty())


def _formatter(
    settings: LoggingSettings, out: TextIO, plain: Callable[[str], str]
) -> logging.Formatter:
    terminal = out.isatty()
    # Format tracebacks first, so that they are masked too. Plainly, since rich's tracebacks show
    # local variables, which hold rows.
    form: list[Processor] = [structlog.processors.format_exc_info, _mask_all]
    if not is_json(settings, out):
        form.append(lambda _logger, _method, event: _plain_all(event, plain))
        form.append(
            structlog.dev.ConsoleRenderer(
                colors=terminal, exception_formatter=structlog.dev.plain_traceback
            )
        )
    else:
        form.append(structlog.processors.EventRenamer("message"))
        # Escape to ASCII, so that no character controls the terminal or reorders the text.
        form.append(structlog.processors.JSONRenderer(ensure_ascii=True))
        form.append(lambda _logger, _method, line: str(line).replace("\x7f", "\\u007f"))
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            lambda _logger, _method, event: {**event, **_facts},
            structlog.stdlib.ExtraAdder(),
            _add_unit_of_task,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *form],
    )


def _add_unit_of_task(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Return the event of a task, as of Celery, with the fields of its unit."""
    task = event.get("data")
    found = _UNIT.match(str(task.get("kwargs"))) if isinstance(task, dict) else None
    if found is not None:
        event.setdefault("job", found[1])
        event.setdefault("unit", int(found[2]))
    return event


def _mask_all(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: _masked(value) for key, value in event.items()}


def _plain_all(event: EventDict, plain: Callable[[str], str]) -> EventDict:
    """Return the event with `plain` applied to its texts; only a traceback keeps its lines."""
    return {
        key: "\n".join(map(plain, value.split("\n") if key == "exception" else [value]))
        if isinstance(value, str)
        else value
        for key, value in event.items()
    }


def _masked(value: Any) -> Any:
    """Return the value with secrets masked in texts at any depth; other objects become a repr."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {_masked(key): _masked(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return mask(repr(value))

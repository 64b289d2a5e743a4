"""Decide which errors are worth another try, and after how long. It looks at exceptions only."""

from __future__ import annotations

import random
import re
from enum import Enum

from cassandra import (
    AuthenticationFailed,
    CoordinationFailure,
    FunctionFailure,
    InvalidRequest,
    Unauthorized,
    WriteFailure,
)
from cassandra.protocol import ConfigurationException, SyntaxException

from ringhaul.backoff import pause_s, spread
from ringhaul.cql.failures import server_message, with_reasons
from ringhaul.cql.frames import ErrorCode


class Verdict(Enum):
    """Meaning of an error for the request."""

    RETRY = "retry"  #: the cluster could not do it now
    ROW = "row"  #: the cluster will never take this row
    FATAL = "fatal"  #: the cluster will take no row of this job


#: First pause before a request is tried again; doubles each time, see `backoff_s`.
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 5.0
#: The driver's own time-out comes first; a request unanswered this long after it counts as lost.
LATE_S = 3.0

#: Errors that concern the job as a whole, not one row.
_FATAL_CODES = (
    ErrorCode.BAD_CREDENTIALS,
    ErrorCode.UNAUTHORIZED,
    ErrorCode.SYNTAX_ERROR,
    ErrorCode.CONFIG_ERROR,
)

#: Errors that mean the server is overloaded: the window shrinks.
OVERLOAD_CODES = (
    ErrorCode.OVERLOADED,
    ErrorCode.WRITE_TIMEOUT,
    ErrorCode.READ_TIMEOUT,
    ErrorCode.UNAVAILABLE,
)


#: Server messages that say the table has changed since the job was made. They come when the server
#: re-prepares the statement, with the same error code as a refused row. The pattern matches whole
#: sentences: a value that the server quotes may contain the same words.
_SCHEMA_CHANGED = re.compile(
    r"(?:(?:table|keyspace|unconfigured table|unconfigured columnfamily) [^\s:]+"
    r"(?: does not exist)?|unknown keyspace/cf pair .*|undefined column name [^\s:]+"
    r"(?: in table [^\s:]+)?|unknown identifier [^\s:]+)\.?",
    re.IGNORECASE,
)


def classify(error: BaseException) -> Verdict:
    """Classify an error that the driver raised for a write.

    Unknown errors are retried: the budget is small, and a row is rejected only for what the server
    says about that row.
    """
    if isinstance(error, FunctionFailure):
        return Verdict.ROW
    if isinstance(error, InvalidRequest):
        return Verdict.FATAL if _is_schema_change(str(error)) else Verdict.ROW
    if isinstance(
        error, (Unauthorized, AuthenticationFailed, SyntaxException, ConfigurationException)
    ):
        return Verdict.FATAL
    return Verdict.RETRY


def classify_code(code: int, text: str) -> Verdict:
    """Classify an ERROR response of the native protocol by the same rules as `classify`."""
    if code == ErrorCode.FUNCTION_FAILURE:  # a function in the statement fails on these values
        return Verdict.ROW
    if code == ErrorCode.INVALID:
        return Verdict.FATAL if _is_schema_change(text) else Verdict.ROW
    if code in _FATAL_CODES:
        return Verdict.FATAL
    return Verdict.RETRY


def _is_schema_change(text: str) -> bool:
    return bool(_SCHEMA_CHANGED.fullmatch(server_message(text).strip()))


def backoff_s(tries: int, jitter: random.Random) -> float:
    """Return the seconds to wait before try number `tries` + 1: exponential, with +-50 % jitter.

    The jitter spreads out requests that one overloaded node refused at the same time.
    """
    return spread(pause_s(tries, first_s=BACKOFF_FIRST_S, max_s=BACKOFF_MAX_S), jitter)


def message(error: BaseException) -> str:
    """Return the server's message on one line, without the driver's wrapping."""
    text = str(getattr(error, "message", None) or str(error) or type(error).__name__)
    if isinstance(error, CoordinationFailure):
        words = server_message(text)
        if words != text:
            code = "write_failure" if isinstance(error, WriteFailure) else "read_failure"
            text = f"{code}: {words}"
        text = with_reasons(text, error.error_code_map)
    return " ".join(text.split())

"""Which errors are retried, which reject the row, and the backoff between attempts."""

import random

import pytest
from cassandra import (
    AuthenticationFailed,
    CoordinationFailure,
    FunctionFailure,
    InvalidRequest,
    OperationTimedOut,
    Unauthorized,
    Unavailable,
    WriteFailure,
    WriteTimeout,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import (
    ConfigurationException,
    OverloadedErrorMessage,
    ServerError,
    SyntaxException,
)

from ringhaul.cql.frames import ErrorCode
from ringhaul.dataplane.retry import (
    BACKOFF_MAX_S,
    Verdict,
    backoff_s,
    classify,
    classify_code,
    message,
)
from tests.cases import each


@each(
    "error",
    [
        OperationTimedOut(),
        WriteTimeout("timed out", write_type=1),
        Unavailable("unavailable", consistency=1),
        WriteFailure("failed", write_type=1),
        CoordinationFailure("failed"),
        NoHostAvailable("no host", {}),
        ConnectionException("closed"),
        OverloadedErrorMessage(0x1001, "overloaded", None),
        ServerError(0, "oops", None),
        OSError("reset"),
    ],
)
def test_transient_errors_are_retried(error: Exception) -> None:
    assert classify(error) is Verdict.RETRY


@pytest.mark.parametrize(
    "words",
    [
        "Key length of 70000 is longer than 65535",
        # A mutation over max_mutation_size, although the text has fewer bytes.
        "Encountered an oversized mutation (17825934/16777216) for keyspace: shop. "
        "Top keys are: orders.7",
        # A frame over native_transport_max_frame_size, refused before it is parsed.
        "Request is too big: length 41943122 exceeds maximum allowed length 16777216.",
    ],
)
def test_a_row_that_the_server_calls_invalid_is_never_retried(words: str) -> None:
    assert classify(InvalidRequest(words)) is Verdict.ROW
    assert classify_code(ErrorCode.INVALID, words) is Verdict.ROW


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest('code=2200 message="unconfigured table orders"'),
        InvalidRequest('code=2200 [Invalid query] message="table orders does not exist"'),
        InvalidRequest('code=2200 [Invalid query] message="keyspace shop does not exist"'),
        InvalidRequest("Undefined column name total in table shop.orders"),
        Unauthorized("no MODIFY permission"),
        AuthenticationFailed("bad credentials"),
        SyntaxException(0x2000, "no viable alternative", None),
        ConfigurationException(0x2300, "odd", None),
    ],
)
def test_errors_that_concern_every_row_end_the_job(error: Exception) -> None:
    assert classify(error) is Verdict.FATAL


def test_a_function_that_fails_on_the_values_of_a_row_costs_that_row() -> None:
    words = "execution of 'shop.picky[int]' failed: java.lang.RuntimeException: no 5"
    assert classify(FunctionFailure(words, "shop", "picky", ["int"])) is Verdict.ROW
    assert classify_code(ErrorCode.FUNCTION_FAILURE, words) is Verdict.ROW


def test_row_text_quoted_by_the_server_does_not_end_the_job() -> None:
    quoted = "Could not decode JSON string (String was: table orders does not exist)"
    for words in (quoted, "Undefined column name x: unconfigured table t and more"):
        assert classify_code(ErrorCode.INVALID, words) is Verdict.ROW
        wrapped = f'Error from server: code=2200 [Invalid query] message="{words}"'
        assert classify(InvalidRequest(wrapped)) is Verdict.ROW
    for words in ("unconfigured table orders", "Undefined column name total in table shop.orders"):
        assert classify_code(ErrorCode.INVALID, words) is Verdict.FATAL


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (None, "Operation failed"),
        ({"10.0.0.1": 0}, "10.0.0.1: reason unknown"),
        ({"10.0.0.1": 1}, "10.0.0.1: too many tombstones (0x0001)"),
        ({"10.0.0.1": 2}, "an index is not available (0x0002)"),
        (
            {"10.0.0.1": 3, "10.0.0.2": 99},
            "CDC is full (0x0003); 10.0.0.2: an unknown reason (0x0063)",
        ),
    ],
)
def test_reason_codes_are_spelled_out(codes: dict[str, int] | None, words: str) -> None:
    wrapped = 'Error from server: code=1500 [Replica(s) failed] message="Operation failed"'
    error = WriteFailure(wrapped, write_type=0, failures=1, error_code_map=codes)
    text = message(error)
    assert text.startswith("write_failure: Operation failed") and words in text
    assert "info=" not in text


def test_reasons_in_the_message_take_precedence_over_codes() -> None:
    wrapped = 'Error from server: code=1500 [x] message="1 failures: TIMEOUT from /10.0.0.1:7000"'
    text = message(WriteFailure(wrapped, error_code_map={"10.0.0.1": 2}))
    assert text.endswith("(10.0.0.1:7000: the replica timed out)")


def test_pauses_double_up_to_a_bound_with_jitter_of_half() -> None:
    jitter = random.Random(1)
    for tries, middle_s in [(1, 0.1), (2, 0.2), (3, 0.4), (6, 3.2), (7, 5.0), (500, 5.0)]:
        pauses = [backoff_s(tries, jitter) for _ in range(500)]
        assert all(0.5 * middle_s <= pause <= 1.5 * middle_s for pause in pauses)
        # Requests that were refused together are not retried together
        assert max(pauses) - min(pauses) > 0.8 * middle_s
    assert BACKOFF_MAX_S == 5.0


def test_a_message_is_one_line() -> None:
    assert message(ServerError(0, "  first\n  second ", None)) == "first second"
    assert message(OSError(104, "reset")) == "[Errno 104] reset"
    assert message(ValueError()) == "ValueError"

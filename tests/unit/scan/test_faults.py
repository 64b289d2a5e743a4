"""Errors of a read: which ones the data causes, and their reasons."""

from __future__ import annotations

import pytest
from cassandra import InvalidRequest, OperationTimedOut, ReadFailure, ReadTimeout
from cassandra.protocol import OverloadedErrorMessage, ServerError

from ringhaul.output.missing_ranges import MissingRange, join_missing
from ringhaul.scan.faults import data_fault
from ringhaul.scan.narrowing import UNKNOWN_TRIES, Narrowing
from ringhaul.scan.result import ReadResult

V4 = (
    "Error from server: code=1300 [Replica(s) failed to execute read] "
    'message="Operation failed - received 0 responses and 1 failures: {} from /10.0.0.7:7000" '
    "info={{'failures': 1}}"
)


def failure(text: str = "failed", codes: dict[str, int] | None = None) -> ReadFailure:
    return ReadFailure(text, consistency=6, failures=1, error_code_map=codes)


@pytest.mark.parametrize("name", ["READ_TOO_MANY_TOMBSTONES", "READ_SIZE"])
def test_reasons_before_protocol_v5(name: str) -> None:
    fault = data_fault(failure(V4.format(name)), "10.0.0.1")
    assert fault is not None and fault.certain and fault.by_amount
    assert (fault.name, fault.nodes) == (name, "10.0.0.7")


def test_reasons_of_protocol_v5() -> None:
    fault = data_fault(failure(codes={"10.0.0.8": 1, "10.0.0.9": 2}), "10.0.0.1")
    assert fault is not None
    assert (fault.name, fault.nodes) == ("READ_TOO_MANY_TOMBSTONES", "10.0.0.8")


def test_without_a_reason_a_failure_must_repeat() -> None:
    for error in (failure(), failure(V4.format("UNKNOWN")), failure(codes={"10.0.0.7": 0})):
        fault = data_fault(error, "10.0.0.7")
        assert fault is not None and not fault.certain
        assert fault.nodes == "10.0.0.7"
    assert data_fault(ServerError(0, "broken", {}), "10.0.0.7") is not None


@pytest.mark.parametrize(
    "text",
    [
        "Attempted to read a range containing 2 denylisted keys in h/d. Range read: (1, 2]",
        "Unable to read denylisted partition [0xDecoratedKey(7, 00000007)] in h/d",
    ],
)
def test_partitions_on_the_denylist(text: str) -> None:
    fault = data_fault(InvalidRequest(text), "10.0.0.1")
    assert fault is not None and fault.certain and not fault.by_amount
    assert (fault.name, fault.nodes) == ("DENYLISTED", "10.0.0.1")
    assert data_fault(InvalidRequest("unconfigured table denylisted"), "10.0.0.1") is None


def test_transient_errors_are_not_the_datas_fault() -> None:
    for error in (
        failure(V4.format("TIMEOUT")),
        failure(codes={"10.0.0.7": 5}),
        ReadTimeout("late", consistency=6),
        OperationTimedOut(),
        OverloadedErrorMessage(0x1001, "busy", {}),
    ):
        assert data_fault(error, "10.0.0.1") is None


def test_how_often_an_indivisible_range_is_tried() -> None:
    unknown = data_fault(failure(), "10.0.0.1")
    assert unknown is not None
    narrowing = Narrowing(skip=True)
    first = [narrowing.is_unreadable(unknown, tries, 3) for tries in range(1, UNKNOWN_TRIES + 1)]
    assert first == [False] * (UNKNOWN_TRIES - 1) + [True]
    later = [narrowing.is_unreadable(unknown, tries, 3) for tries in range(1, 4)]
    assert later == [False, False, True], "each replica is tried once"


def test_a_result_keeps_the_missing_ranges() -> None:
    one = MissingRange(4, 5, '{"p": "a,b"}', True, "10.0.0.7", "UNKNOWN: words, with commas")
    result = ReadResult(*range(15), "host:1", (one,))  # type: ignore[call-arg]
    assert ReadResult.unpack(result.pack()) == result
    assert ReadResult.unpack(result._replace(missing=()).pack()) == result._replace(missing=())


def test_neighbours_without_a_name_are_joined() -> None:
    plain = MissingRange(5, 9, "", False, "n", "r")
    named = MissingRange(13, 14, "{}", False, "n", "r")
    joined = join_missing([plain._replace(token_after=9, token_to=13), named, plain])
    assert joined == [plain._replace(token_to=13), named]

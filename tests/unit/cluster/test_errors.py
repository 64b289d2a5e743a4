"""Errors of the driver become messages that say what is wrong and whether it may pass."""

from __future__ import annotations

import pytest
from cassandra import FunctionFailure, OperationTimedOut, ReadFailure, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.cluster import Session as DriverSession
from cassandra.protocol import IsBootstrappingErrorMessage

from ringhaul.cluster import connect
from ringhaul.cluster.connect import ClusterConfig, open_session
from ringhaul.cluster.errors import NodesTroubled, translate_error
from ringhaul.errors import ClusterError, ClusterUnavailable

FAILED = ReadFailure("Error from server: code=1300 [Replica(s) failed to execute read]")


@pytest.mark.parametrize(
    "error",
    [
        FAILED,
        NoHostAvailable("Unable to connect to any servers", {"127.0.0.1:9042": FAILED}),
        Unavailable("Error from server: code=1000 [Unavailable exception]"),
        NoHostAvailable("", {"n": IsBootstrappingErrorMessage(0x1002, "bootstrapping", None)}),
    ],
)
def test_an_error_that_may_pass_is_not_taken_for_a_wrong_address(error: Exception) -> None:
    found = translate_error(error, where="127.0.0.1:9042")
    assert isinstance(found, NodesTroubled)
    assert str(found).startswith("127.0.0.1:9042 answered with an error that may pass: ")
    assert "Try again later" in str(found) and "right address" not in str(found)


def test_silence_and_other_answers_are_told_apart_from_it() -> None:
    silent = translate_error(OperationTimedOut(), where="h:1")
    assert type(silent) is ClusterUnavailable and "Is it the right address" in str(silent)
    failed = translate_error(FunctionFailure("", "ks", "f", ["int"]), where="h:1")
    assert type(failed) is ClusterError


def test_a_node_in_trouble_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    session = DriverSession.__new__(DriverSession)
    answers = [NodesTroubled("one"), NodesTroubled("two"), session]

    def answer(_: ClusterConfig) -> DriverSession:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(connect, "_open_newest", answer)
    monkeypatch.setattr(connect, "_PAUSE_FIRST_S", 0.001)
    config = ClusterConfig.__new__(ClusterConfig)
    assert open_session(config) is session
    assert answers == []
    # Until the time is over
    monkeypatch.setattr(connect, "EXHAUSTED_WAIT_S", 0.0)
    answers.append(NodesTroubled("three"))
    with pytest.raises(NodesTroubled, match="three"):
        open_session(config)

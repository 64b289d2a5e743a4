"""A peer is left out if its single request times out; any other failure counts."""

import pytest

from bench.count_small import _if_it_answers
from bench.harness import CQLSH, Run, System

RUN = Run(rows=1, bytes_count=1, work_s=1, whole_s=1, cpu_s=1, rss_bytes_max=1)


def system(error: str | None) -> System:
    def run() -> Run:
        if error is not None:
            raise RuntimeError(error)
        return RUN

    return System("cqlsh", CQLSH, lambda: None, run)


def test_a_peer_that_answers_takes_part() -> None:
    assert [one.name for one in _if_it_answers(system(None))] == ["cqlsh"]


def test_a_peer_that_times_out_is_left_out_with_a_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _if_it_answers(system("ended 2: ReadTimeout: Error from server")) == []
    assert "left out: cqlsh" in capsys.readouterr().out


def test_a_wrong_count_is_not_forgiven() -> None:
    with pytest.raises(RuntimeError, match="5 rows were counted"):
        _if_it_answers(system("5 rows were counted, 6 are there"))

"""The bench of pools does the same work in each way."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bench.data import SMALL, data_file
from bench.pools import encode, encoding_rates, time_way

ROWS = 3000
NO_GEVENT = importlib.util.find_spec("gevent") is None


@pytest.mark.parametrize("way", ["alone", "threads", "greenlets"])
def test_a_way_encodes_the_file_as_often_as_it_says(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "greenlets" and NO_GEVENT:
        pytest.skip("gevent comes with `make test`")
    encoded = []
    monkeypatch.setattr("bench.pools.encode", encoded.append)
    time_way(way, 1 if way == "alone" else 3, tmp_path)
    assert len(encoded) == 1 + (1 if way == "alone" else 3)  # the first one warms up


def test_processes_encode_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.pools.WAYS", (("processes", 2),))
    path = data_file(tmp_path, SMALL, rows=ROWS)
    rates = encoding_rates(path, ROWS, rounds=1)
    assert rates["processes", 2] > 0


def test_a_record_that_cannot_be_converted_is_an_error(tmp_path: Path) -> None:
    path = data_file(tmp_path, SMALL, rows=2)
    path.write_text(path.read_text() + "k,no number,1,1,s,2026-01-01\n")
    with pytest.raises(RuntimeError, match="cannot be converted"):
        encode(path)

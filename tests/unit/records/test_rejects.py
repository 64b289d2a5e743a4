"""Rejects are packed into one blob and unpacked unchanged, with any bytes in them."""

import random
import zlib
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.records import rejects as module
from ringhaul.records.rejects import Reject, RejectLog, unpack_rejects

REJECTS = st.builds(
    Reject,
    file=st.text(),
    offset=st.integers(0, 2**50),
    length=st.integers(0, 2**30),
    line=st.integers(1, 2**40),
    stage=st.sampled_from(["split", "parse", "cast", "key", "write"]),
    column=st.none() | st.text(),
    reason=st.text(),
    data=st.none() | st.binary(),
)


def packed(rejects: Iterable[Reject]) -> bytes:
    log = RejectLog()
    log.add(rejects)
    return log.blob()


@given(st.lists(REJECTS, min_size=1, max_size=20))
def test_rejects_survive_the_ledger(rejects: list[Reject]) -> None:
    assert list(unpack_rejects(packed(rejects))) == rejects


def test_the_place_of_a_reject_is_file_and_line() -> None:
    reject = Reject(
        file="/data/a.csv.gz",
        offset=17,
        length=3,
        line=88_231,
        stage="cast",
        column="total",
        reason="no number",
        data=b"\xff\x00,",
    )
    assert reject.where == "/data/a.csv.gz:88231"
    assert reject.to_json() == {
        "file": "/data/a.csv.gz",
        "offset": 17,
        "length": 3,
        "line": 88_231,
        "stage": "cast",
        "column": "total",
        "reason": "no number",
        "data": "/wAs",
    }


def test_many_similar_rejects_take_little_memory_in_the_ledger() -> None:
    # Given a thousand rejects with the same fault
    rejects = [
        Reject(
            file="/data/orders.csv",
            offset=40 * number,
            length=39,
            line=number + 2,
            stage="cast",
            column="total",
            reason='cast int: "12,50" is not a whole number',
            data=b"%039d" % number,
        )
        for number in range(1000)
    ]
    blob = packed(rejects)
    # Then the blob takes about 20 bytes for each, and holds JSON Lines
    assert len(blob) < 25_000
    assert zlib.decompress(blob).count(b"\n") == 1000


def test_beyond_a_bound_only_the_places_of_rejects_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given 3,000 rejects of 1 KiB that do not compress, and room for 1 MiB of them
    monkeypatch.setattr(module, "KEPT_UNIT_BYTES_MAX", 2**20)
    noise = random.Random(1)
    rejects = [
        Reject(
            file="/data/a.csv.gz",
            offset=1025 * number,
            length=1024,
            line=number + 1,
            stage="parse",
            column=None,
            reason="1 field, not 7",
            data=noise.randbytes(1024),
        )
        for number in range(3000)
    ]
    blob = packed(rejects)
    # Then the blob stays near that bound and has every reject, the first ones with their records
    assert len(blob) < 1.2 * 2**20
    found = list(unpack_rejects(blob))
    whole = sum(reject.data is not None for reject in found)
    assert 800 < whole < 1200
    assert found == [
        reject if place < whole else replace(reject, data=None)
        for place, reject in enumerate(rejects)
    ]

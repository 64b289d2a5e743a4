"""Rejects travel as one blob and come back as they were, any bytes among them."""

import zlib
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from ringhaul.load.rejects import Reject, RejectLog, unpack_rejects

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


def test_where_is_file_and_line() -> None:
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


def test_many_alike_cost_little_memory_in_the_ledger() -> None:
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
    # Then the blob holds about 20 bytes for each, and plain JSON Lines inside
    assert len(blob) < 25_000
    assert zlib.decompress(blob).count(b"\n") == 1000

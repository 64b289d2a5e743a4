"""The place where a process was, in memory that outlives it, and as text."""

from __future__ import annotations

import pytest

from ringhaul.breadcrumb import CRUMB_BYTES, Loss, Trail, mark_killed, read_crumb


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (
            Loss("convert", "in.csv", "n", 2, 0, 64, 0),
            "its process was killed while converting lines 2 to about 65 of in.csv, column n",
        ),
        (
            Loss("transform", "in.csv", "", 1002, 1000, 1001, 40),
            "no progress for 40 s while transforming line 1,002 of in.csv",
        ),
        (
            Loss("read", "in.csv", "", 1002, 1000, 1000, 0),
            "its process was killed while at stage read of line 1,002 and later of in.csv",
        ),
        (
            Loss("decode", "a page of the token range 1..2", "", 0, 0, 0, 40),
            "no progress for 40 s while decoding a page of the token range 1..2",
        ),
    ],
)
def test_a_loss_as_text(loss: Loss, words: str) -> None:
    assert loss.words == words
    assert Loss.unpack(loss.pack()) == loss


def test_a_crumb_has_the_place_of_the_process_until_its_unit_ends() -> None:
    memory, trail = bytearray(CRUMB_BYTES), Trail()
    trail.at("read", "in.csv", 1)  # not kept: there is no memory yet
    trail.keep_in(memory)
    trail.at("convert", "x" * 5000, 2, 0, 64)
    trail.column("n")
    crumb = read_crumb(memory)
    assert (crumb.computing, crumb.killed) == (True, False)
    where = {"stage": "convert", "file": "x" * 300, "line": 2, "first": 0, "end": 64, "column": "n"}
    assert crumb.where == where
    mark_killed(memory)
    assert read_crumb(memory).killed
    trail.stage("write")
    crumb = read_crumb(memory)
    assert (crumb.computing, crumb.where) == (False, where | {"stage": "write", "column": ""})
    trail.end()
    assert read_crumb(memory).where == {}

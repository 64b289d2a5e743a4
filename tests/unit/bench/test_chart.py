"""The chart of the README shows the saved figures, and so does the README's table."""

from __future__ import annotations

import dataclasses

import pytest

from bench.chart import PICTURE, draw
from bench.page import ROOT
from bench.record import read_record

LOAD, UNLOAD = read_record("load_small"), read_record("unload_small")
assert LOAD is not None and UNLOAD is not None


def test_each_saved_figure_is_in_the_picture_and_in_the_readme() -> None:
    assert LOAD is not None and UNLOAD is not None
    svg, readme = draw(LOAD, UNLOAD), (ROOT / "README.md").read_text()
    assert PICTURE.read_text() == svg, "run `python -m bench.page`"
    for start in ("ringhaul embedded", "Bulk Loader", "cqlsh COPY"):
        figure = f"{LOAD.named(start).rate:,.0f}"
        assert f">{figure}</text>" in svg
        assert figure in readme
    for start in ("ringhaul unload, csv", "Bulk Loader", "cqlsh COPY"):
        assert f">{UNLOAD.named(start).rate:,.0f}</text>" in svg


def test_a_missing_system_is_an_error() -> None:
    assert LOAD is not None and UNLOAD is not None
    without = dataclasses.replace(
        LOAD, lines=tuple(line for line in LOAD.lines if "Bulk" not in line.name)
    )
    with pytest.raises(KeyError, match="Bulk Loader"):
        draw(without, UNLOAD)

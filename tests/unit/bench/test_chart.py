"""The chart of the README shows the recorded figures."""

from __future__ import annotations

import pytest

from bench.chart import PAGE, PICTURE, draw

PAGE_TEXT = PAGE.read_text()


def test_the_picture_is_drawn_from_the_page() -> None:
    assert PICTURE.read_text() == draw(PAGE_TEXT), "run `python -m bench.chart`"


def test_each_recorded_figure_is_in_the_picture() -> None:
    for figure in ("95,023", "35,981", "32,473", "238,947", "88,512", "50,022"):
        assert figure in PAGE_TEXT and f">{figure}</text>" in draw(PAGE_TEXT)


def test_a_missing_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="Bulk Loader"):
        draw(PAGE_TEXT.replace("DataStax Bulk Loader 1.10, by replica set", "another"))

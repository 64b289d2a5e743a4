"""Tables and figures fit the screen, and no number is broken or shortened."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from producer.figures.load_summary import summary_closing
from producer.tables import Column, shorten, table_lines, wrap_figures
from ringhaul.ledger.states import JobState
from tests.unit.producer.figures.test_load_summary import summary

COLUMNS = (
    Column("JOB", short=10, ends=True),
    Column("VERB", goes=1),
    Column("ROWS", right=True),
    Column("STARTED", goes=2, right=True),
)
ROWS = [
    ("nightly-20261125T0200Z-1", "load", "1,234,567,890", "0:05 ago"),
    ("nightly-20261125T0200Z-2", "verify", "7", "1:22:05 ago"),
]


@pytest.mark.parametrize("width", [26, 40, 60, 80, 120])
def test_a_table_fits_and_keeps_its_numbers(width: int) -> None:
    lines = table_lines(COLUMNS, ROWS, width=width)
    assert max(map(cell_len, lines)) <= width
    assert "1,234,567,890" in lines[1]
    assert len({line.split()[0] for line in lines[1:]}) == 2
    assert ("STARTED" in lines[0]) == (width >= 60)


def test_a_pipe_gets_everything() -> None:
    lines = table_lines(COLUMNS, ROWS, width=None)
    assert lines[1] == " nightly-20261125T0200Z-1  load    1,234,567,890     0:05 ago"
    # A control character of a name stays on its line
    assert len(table_lines(COLUMNS, [("a\nb", "", "", "")], width=None)) == 2


def test_a_shortened_text_keeps_its_beginning_or_both_ends() -> None:
    assert shorten("shop.orders", 11) == "shop.orders"
    assert shorten("shop.orders", 8) == "shop.or\N{HORIZONTAL ELLIPSIS}"
    assert shorten("nightly-1", 8, ends=True) == "nigh\N{HORIZONTAL ELLIPSIS}y-1"
    assert cell_len(shorten("\N{CJK UNIFIED IDEOGRAPH-6F22}" * 9, 8, ends=True)) <= 8


def test_figures_are_wrapped_between_two_of_them() -> None:
    line = " 400,000 rows read   12 files, 1.5 MiB   0:01   2,865 rows/s"
    assert wrap_figures(line, None) == [line]
    assert wrap_figures(line, 40) == [
        " 400,000 rows read   12 files, 1.5 MiB",
        " 0:01   2,865 rows/s",
    ]
    assert "   ".join(part.strip() for part in wrap_figures(line, 12)) == line.strip()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_closing_table_of_a_load_fits(width: int) -> None:
    found = summary(JobState.PARTIAL, sources=3)
    for source in found.report.sources:
        source.path = f"/very/long/path/{'x' * 90}/{source.path.rpartition('/')[2]}"
    closing = summary_closing(found, width=width)
    lines = [part for line in closing.figures for part in wrap_figures(line, width)]
    assert max(map(cell_len, lines)) <= width
    assert {line.split()[0][-6:] for line in lines if line.startswith(" /very")} == {
        f"{number:02}.csv" for number in range(3)
    }
    assert any("75 rows/s" in line for line in lines)

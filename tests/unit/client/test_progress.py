"""Progress for functions, terminals and notebooks."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ringhaul.client.display import TerminalBar, bar_line, every, open_display
from ringhaul.client.errors import UsageError
from ringhaul.client.progress import Progress

HALF = Progress.read(
    {
        **{"message_type": "status", "job": "ld-1", "state": "RUNNING", "done": 0.5, "rows": 1234},
        **{"rows_per_s": 99.6, "eta_s": 61.4, "units": 4, "units_done": 2, "new_field": 1},
    }
)
BAR = "━" * 15 + "─" * 15


def test_a_line_has_what_people_want_to_know() -> None:
    assert bar_line(HALF) == f"{BAR}  50%  1,234 rows  100 rows/s  ETA 1:01"
    paused = replace(HALF, state="PAUSED", rejected=3, retrying="a unit")
    assert bar_line(paused).endswith("3 rejected  PAUSED  retrying a unit")


def test_a_function_gets_the_record() -> None:
    seen: list[Progress] = []
    open_display(seen.append).show(HALF)
    assert seen == [HALF]


def test_a_terminal_has_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    display = open_display("bar")
    assert isinstance(display, TerminalBar)
    display.show(replace(HALF, retrying="a unit"))
    display.show(HALF)
    display.close()
    first, second = bar_line(replace(HALF, retrying="a unit")), bar_line(HALF)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"\r{first}\r{second:<{len(first)}}\n"


def test_a_log_is_not_filled_with_bars(capsys: pytest.CaptureFixture[str]) -> None:
    display = open_display("bar")
    display.show(HALF)
    display.close()
    assert capsys.readouterr().err == ""


def test_a_notebook_has_one_output_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[dict[str, object]] = []
    shell = SimpleNamespace(
        kernel=object(), display_pub=SimpleNamespace(publish=lambda **one: published.append(one))
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    display = open_display("bar")
    display.show(HALF)
    display.show(replace(HALF, done=1.0))
    assert [one["update"] for one in published] == [False, True]
    assert published[0]["transient"] == published[1]["transient"]
    assert published[0]["data"] == {"text/plain": bar_line(HALF)}


def test_anything_else_is_refused() -> None:
    with pytest.raises(UsageError, match="a function or 'bar'"):
        open_display("lines")


def test_a_log_gets_few_lines_and_the_end() -> None:
    seen: list[str] = []
    show = every(3600, lambda one: seen.append(one.state))
    for state in ("RUNNING", "RUNNING", "PAUSED", "COMPLETE"):
        show(Progress.read({"job": "ld-1", "state": state}))
    assert seen == ["RUNNING", "COMPLETE"]

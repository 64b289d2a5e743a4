"""The failpoint `hold` keeps a unit back while a file exists; without it, nothing is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.child import failpoints

Progress = tuple[int, int, int]


class Tick:
    """A unit's tick, which releases the unit at the third call."""

    def __init__(self, file: Path) -> None:
        self.calls: list[Progress] = []
        self._file = file

    def __call__(self, rows: int, rejected: int, input_bytes: int) -> None:
        self.calls.append((rows, rejected, input_bytes))
        if len(self.calls) == 3:
            self._file.unlink()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(failpoints, "_POINT", "hold")
    monkeypatch.setattr(failpoints, "_ONCE", str(tmp_path / "held"))
    return tmp_path / "held"


def test_a_unit_waits_and_renews_its_lease_until_the_file_is_gone(file: Path) -> None:
    file.write_text("2")
    tick = Tick(file)
    failpoints.holding(tick, 2)(5, 1, 90)
    assert tick.calls == [(5, 1, 90)] * 4


def test_units_before_the_first_that_is_held_go_on(file: Path) -> None:
    file.write_text("2")
    tick = Tick(file)
    failpoints.holding(tick, 1)(5, 1, 90)
    assert tick.calls == [(5, 1, 90)]
    assert file.exists()


def test_a_unit_that_is_held_can_be_stopped(file: Path) -> None:
    file.touch()

    def stop(rows: int, rejected: int, input_bytes: int) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        failpoints.holding(stop, 0)(0, 0, 0)


def test_without_the_variable_the_tick_is_the_unit_s_own(tmp_path: Path) -> None:
    tick = Tick(tmp_path / "held")
    assert failpoints.holding(tick, 0) is tick


def test_a_unit_stays_half_way_once_it_has_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failpoints, "_UNIT_S", 3 * failpoints._HOLD_S)
    tick = Tick(tmp_path / "held")
    (tmp_path / "held").touch()
    staying = failpoints.holding(tick, 7)
    staying(0, 0, 10)
    assert len(tick.calls) == 1
    staying(5, 0, 20)
    assert len(tick.calls) >= 4
    before = len(tick.calls)
    staying(6, 0, 30)
    assert len(tick.calls) == before + 1

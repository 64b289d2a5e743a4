"""Ragged records: whatever keys and types come when, the file has all of them, or none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.client import columns, frames, growing, records, tables
from ringhaul.client.errors import CommandCrashed, UsageError

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.decimals(-1000, 1000, places=2),
)
VALUES = st.recursive(
    st.one_of(st.none(), NUMBERS, st.text(max_size=3), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    ),
    max_leaves=6,
)
ALIKE = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), max_size=6)
ANY = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of each few records, so that columns and types come late."""
    monkeypatch.setattr(records, "FIRST_ROWS", 1)
    monkeypatch.setattr(records, "GROWTH", 2)
    monkeypatch.setattr(growing, "GROUP_ROWS_MAX", 4)


def plain(value: Any) -> Any:
    """A value without what has no place in a column: null fields, and the types of numbers."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if plain(one) is not None}
    if isinstance(value, list):
        items = value if not value or isinstance(value[0], tuple) else map(plain, value)
        return plain(dict(items)) if value and isinstance(value[0], tuple) else list(items)
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Decimal(value) if number else value


def without_empty(value: Any) -> Any:
    """The same with empty dictionaries as empty lists: a map without a key is one."""
    if isinstance(value, dict):
        return {key: without_empty(one) for key, one in value.items()} or []
    return list(map(without_empty, value)) if isinstance(value, list) else value


@given(st.lists(st.one_of(ALIKE, ANY), max_size=9))
def test_all_values_are_written_or_none(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        try:
            tables.write_table(iter(rows), path, checked=True)
        except UsageError as error:
            assert "column" in str(error) or "record" in str(error)
            return
        found = tables.read_file(path).to_pylist()
        assert [one.name for one in Path(folder).iterdir()] == ["t"]
    assert without_empty(list(map(plain, found))) == without_empty(list(map(plain, rows)))


LATE = [{"id": 1}, {"id": 2, "a": [1]}, {"id": 3, "a": [1, 2], "b": {"x": 1}}]


def first_keys_only(rows: Iterator[dict[str, Any]]) -> Iterator[Any]:
    """The defect that this module had: columns are those of the first record."""
    import pyarrow as pa

    yield pa.Table.from_pylist(list(rows))


def test_a_verification_counts_for_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a reader that loses columns, records or elements, a load would lose them, and the
    comparison of a file that lacks them would agree."""
    tables.write_table(LATE, tmp_path / "t", checked=True)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "record_tables", first_keys_only)
        tables.write_table(LATE, tmp_path / "t")
        with pytest.raises(CommandCrashed, match="would lack values of 'a'"):
            tables.write_table(LATE, tmp_path / "t", checked=True)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "record_tables", lambda rows: records.record_tables(list(rows)[1:]))
        with pytest.raises(CommandCrashed, match="would lack 1 record"):
            tables.write_table(LATE, tmp_path / "t", checked=True)
    short = {frozenset(["list"]): lambda values, *_: columns.column([v and 1 for v in values], "")}
    with monkeypatch.context() as patched:
        patched.setattr(columns, "_MAKERS", {**columns._MAKERS, **short})
        with pytest.raises(CommandCrashed, match="would lack values of 'a'"):
            tables.write_table(LATE, tmp_path / "t", checked=True)
    import pandas as pd

    frame = pd.DataFrame({"id": [1, 2], "a": ["x", None]})
    tables.write_table(frame, tmp_path / "t", checked=True)
    with monkeypatch.context() as patched:
        patched.setattr(frames, "_of_pandas", lambda _: pd_table(frame.drop(columns="a")))
        with pytest.raises(CommandCrashed, match="would lack values of 'a'"):
            tables.write_table(frame, tmp_path / "t", checked=True)


def pd_table(frame: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(frame)


def test_a_generator_of_ragged_records_is_written_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import pyarrow as pa

    monkeypatch.undo()
    monkeypatch.setattr(records, "TABLE_BYTES", 1 << 20)
    monkeypatch.setattr(growing, "GROUP_BYTES_MAX", 4 << 20)
    before, most = pa.total_allocated_bytes(), 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal most
        for n in range(4000):
            most = max(most, pa.total_allocated_bytes() - before)
            late = {"late": float(n)} if n > 3900 else {"early": n} if n < 100 else {}
            yield {"id": n, "text": "x" * 10_000, **late}

    path = tmp_path / "t"
    tables.write_table(rows(), path)
    assert most < 24 << 20, "of 40 MB in all"
    found = tables.read_file(path).drop_columns("text").to_pylist()
    names = {"id": None, "early": None, "late": None}
    wanted = [{**row, "text": None} for row in rows()]
    assert [{**names, **row} for row in found] == [
        {**names, **{k: v for k, v in row.items() if k != "text"}} for row in wanted
    ]

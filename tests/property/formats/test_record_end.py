"""The state machine finds the records of the grammar with windows of any size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.formats import record_end, records
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.record_end import FirstRecord, first_record, hidden_bytes, warm_up
from ringhaul.formats.records import scan_records
from tests.property.formats import grammar


def first_of_grammar(text: bytes, dialect: CsvDialect, *, final: bool) -> FirstRecord:
    """The expected result of `first_record`, found byte by byte."""
    if not final and dialect.line_end == "any":
        text = text.removesuffix(b"\r")
    if not text:
        return FirstRecord(0 if final else None, None)
    line = grammar.first_line(text, dialect)
    if (line.end == line.next and not final) or line.open_quote is not None:
        return FirstRecord(None, line.open_quote)
    return FirstRecord(line.end, None)


@contextmanager
def windows(window_bytes: int, compiled_bytes_min: int, jumps_max: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_end, "WINDOW_BYTES", window_bytes)
        patch.setattr(record_end, "COMPILED_BYTES_MIN", compiled_bytes_min)
        patch.setattr(record_end, "JUMPS_MAX", jumps_max)
        yield


@settings(max_examples=500, deadline=None)
@given(
    grammar.dialect_texts(),
    st.integers(1, 9),
    st.sampled_from([0, 100]),
    st.sampled_from([0, 1, 2, 100]),
    st.booleans(),
    st.none() | st.integers(0, 60),
)
def test_a_first_record_is_that_of_the_grammar_with_any_windows(
    case: tuple[CsvDialect, bytes],
    window: int,
    compiled_min: int,
    jumps_max: int,
    final: bool,
    size: int | None,
) -> None:
    dialect, text = case
    ticks = count()
    with windows(window, compiled_min, jumps_max):
        found = first_record(
            text, dialect, final=final, size_bytes=size, tick=lambda: void(next(ticks))
        )
    assert found == first_of_grammar(text[:size], dialect, final=final)
    walked = len(text[:size]) if found.end is None else found.end
    hides = any(c and c.encode() in text[:size] for c in (dialect.quote, dialect.escape))
    assert next(ticks) >= (walked - 1) // window * hides


def void(_: object) -> None:
    """Discard the result of a call."""


@settings(max_examples=500, deadline=None)
@given(grammar.dialect_texts())
def test_the_state_machine_and_the_walk_hide_the_same_line_ends(
    case: tuple[CsvDialect, bytes],
) -> None:
    dialect, text = case
    if dialect.quote is None and dialect.escape is None:
        return  # nothing is hidden, and there is no walk
    if len(dialect.raw_delimiter) > 1 or dialect.trim != "none":
        return  # the walk is not for these
    hidden, open_quote = hidden_bytes(text, len(text), dialect)
    walked, open_walked = records._walked(text, len(text), dialect)
    at = np.array([i for i, byte in enumerate(text) if byte in b"\r\n"], np.int64)
    if dialect.line_end == "lf":
        at = at[np.frombuffer(text, np.uint8)[at] == 10]
    assert hidden[at].tolist() == (walked(at).tolist() if walked else [False] * len(at))
    assert open_quote == open_walked


@settings(max_examples=300, deadline=None)
@given(grammar.dialect_texts(), st.booleans())
def test_a_dense_buffer_has_the_same_records(case: tuple[CsvDialect, bytes], final: bool) -> None:
    dialect, text = case
    expected = scan_records(text, dialect, final=final)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "DENSE_COUNT_MIN", 1)
        dense = scan_records(text, dialect, final=final)
    assert [list(map(int, part)) for part in (dense.starts, dense.ends)] == [
        list(map(int, part)) for part in (expected.starts, expected.ends)
    ]
    assert dense[2:] == expected[2:]


def test_compiled_kernels_are_loaded_once() -> None:
    warm_up()
    assert record_end._compiled() is record_end._compiled()

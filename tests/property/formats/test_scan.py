"""The scanner finds the records of the grammar on each of its code paths."""

import csv
import io

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.formats import records as scanner
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.records import count_line_ends, scan_records
from tests.property.formats import grammar


def spans(scan: scanner.Scan) -> list[tuple[int, int]]:
    return list(zip(scan.starts.tolist(), scan.ends.tolist(), strict=True))


@settings(max_examples=600, deadline=None)
@given(grammar.dialect_texts())
def test_final_scan_finds_the_records_of_the_grammar(case: tuple[CsvDialect, bytes]) -> None:
    dialect, text = case
    expected = grammar.records(text, dialect)
    scan = scan_records(text, dialect, final=True)

    broken = [record for record in expected if record.open_quote is not None]
    assert spans(scan) == [(r.start, r.end) for r in expected if r.open_quote is None]
    assert scan.open_quote == (broken[0].open_quote if broken else None)
    assert scan.consumed_bytes == (broken[0].start if broken else len(text))


@settings(max_examples=400, deadline=None)
@given(grammar.dialect_texts(), st.data())
def test_prefix_scan_finds_the_whole_records_and_no_others(
    case: tuple[CsvDialect, bytes], data: st.DataObject
) -> None:
    dialect, text = case
    cut = data.draw(st.integers(0, len(text)))
    expected = grammar.records(text, dialect)
    prefix = text[:cut]
    scan = scan_records(prefix, dialect, final=False)

    assert spans(scan) == [
        (r.start, r.end)
        for r in expected
        # A record is whole if its line end is in the prefix and is not a CR before a possible LF.
        if r.end < r.next <= cut and not (r.next == cut and prefix.endswith(b"\r"))
    ]
    rest = scan_records(text[scan.consumed_bytes :], dialect, final=True)
    again = [(s + scan.consumed_bytes, e + scan.consumed_bytes) for s, e in spans(rest)]
    assert spans(scan) + again == spans(scan_records(text, dialect, final=True))


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(
        [d for d in grammar.DIALECTS if d.quote and not d.escape and d.delimiter < "\x7f"]
    ).flatmap(lambda d: st.tuples(st.just(d), grammar.quoted_texts(d) | grammar.texts(d)))
)
def test_parity_and_the_walk_hide_the_same_line_ends(case: tuple[CsvDialect, bytes]) -> None:
    dialect, text = case
    dialect = CsvDialect(
        quote=dialect.quote,
        delimiter=dialect.delimiter,
        line_end=dialect.line_end,
        trim=dialect.trim,
    )
    view = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(view == ord(dialect.quote or ""))
    if not len(quotes) or not scanner._all_openings_proper(view, quotes, dialect):
        return
    offsets = np.flatnonzero((view == 10) | (view == 13))
    walked, open_walked = scanner._hidden_exactly(text, view, dialect)
    hidden = scanner._by_parity(quotes)(offsets)
    assert hidden.tolist() == (walked(offsets).tolist() if walked else [False] * len(offsets))
    assert scanner._open_by_parity(view, quotes) == open_walked


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([b"\\", b"\n", b"\r", b"\r\n", b"a", b"\t"]), max_size=40))
def test_runs_of_escapes_and_the_walk_hide_the_same_line_ends(parts: list[bytes]) -> None:
    text = b"".join(parts)
    if b"\\" not in text:
        return
    dialect = CsvDialect(quote=None, escape="\\", delimiter="\t")
    view = np.frombuffer(text, np.uint8)
    offsets = np.flatnonzero((view == 10) | (view == 13))
    walked, _ = scanner._walked(text, len(text), dialect)
    hidden = scanner._by_escapes(view, ord("\\"))(offsets)
    assert hidden.tolist() == (walked(offsets).tolist() if walked else [False] * len(offsets))


cells = st.text(st.sampled_from('ab,"\n\r#\\ é'), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(cells, min_size=1, max_size=4), max_size=8), st.sampled_from(["\n", "\r\n"])
)
def test_records_of_pythons_csv_module_are_found(rows: list[list[str]], line_end: str) -> None:
    written = []
    for row in rows:
        out = io.StringIO(newline="")
        # Python leaves a lone CR unquoted by default, so it could not read it back either.
        csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerow(row)
        written.append(out.getvalue().encode())
    text = b"".join(written)
    scan = scan_records(text, CsvDialect(), final=True)
    found = [text[start:end] for start, end in spans(scan)]
    assert found == [record.removesuffix(line_end.encode()) for record in written]


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"\n", b"\r", b"a"])).map(b"".join))
def test_line_ends_are_counted_as_splitlines_does(text: bytes) -> None:
    lines = len(text.splitlines()) - (1 if text and not text.endswith((b"\n", b"\r")) else 0)
    assert count_line_ends(text, 0, len(text)) == lines

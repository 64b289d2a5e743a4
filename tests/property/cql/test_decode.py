"""Pages decoded by column hold what the driver reads from them, or are refused."""

from __future__ import annotations

import ipaddress
import json
import os
import struct
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ringhaul.cql.addresses import parse_address
from ringhaul.cql.decimals import parse_decimal, parse_varint
from ringhaul.cql.decode import HostilePage, PageDecoder, paging_state, result_body
from ringhaul.cql.types import SCALARS, CqlType, parse_type
from tests.cases import each
from tests.property.cql import mutated
from tests.property.cql.pages import (
    NO_METADATA,
    PROTOCOL,
    address_form,
    cell,
    driver_type,
    page,
    plain_column,
    plain_driver,
    scalar_types,
    types,
    values,
)
from tests.protocol import long_bytes, string

MORE_PAGES, GLOBAL_TABLE, METADATA_CHANGED = 2, 1, 8
INT, TEXT = CqlType("int"), CqlType("text")


def decode(cql_type: CqlType, cells: list[bytes | None]) -> pa.Array:
    """Decode one column and validate it by Arrow's rules."""
    batch = PageDecoder(["c"], [cql_type]).decode(page([cells]))
    batch.validate(full=True)
    assert batch.schema == pa.schema([("c", cql_type.arrow())])
    return batch.column(0)


def refused(cql_type: CqlType, value: bytes | None) -> str:
    with pytest.raises(HostilePage) as caught:
        decode(cql_type, [value])
    return str(caught.value)


# --- against the driver


@given(st.data())
def test_values_are_what_the_driver_reads(data: st.DataObject) -> None:
    columns_types = data.draw(st.lists(types, min_size=1, max_size=3))
    rows_count = data.draw(st.integers(0, 4))
    columns, expected = [], []
    for cql_type in columns_types:
        driver = driver_type(cql_type)
        drawn = data.draw(
            st.lists(
                st.one_of(st.none(), values(cql_type)), min_size=rows_count, max_size=rows_count
            )
        )
        cells = [None if v is None else driver.to_binary(v, PROTOCOL) for v in drawn]
        columns.append(cells)
        read = [driver.from_binary(value, PROTOCOL) for value in cells]
        expected.append([plain_driver(cql_type, value) for value in read])
    names = [f"c{i}" for i in range(len(columns))]
    batch = PageDecoder(names, columns_types).decode(page(columns))
    batch.validate(full=True)
    assert batch.num_rows == rows_count
    for i, cql_type in enumerate(columns_types):
        assert batch.schema.field(i) == pa.field(names[i], cql_type.arrow())
        assert plain_column(cql_type, batch.column(i)) == expected[i]


@given(scalar_types)
def test_empty_cells_are_empty_values_or_null_as_in_the_driver(cql_type: CqlType) -> None:
    read = driver_type(cql_type).from_binary(b"", PROTOCOL)
    assert plain_column(cql_type, decode(cql_type, [b"", None])) == [read, None]
    assert (read is not None) == (cql_type.name in ("ascii", "text", "varchar", "blob"))


def test_every_scalar_type_is_decoded() -> None:
    assert {cql_type for cql_type in SCALARS if len(decode(CqlType(cql_type), [None]))} == set(
        SCALARS
    )


# --- numbers as text


@given(values(CqlType("decimal")))
@example(Decimal("0E-10"))
@example(Decimal("1E+3"))
@example(Decimal("0.000001"))
@example(Decimal("0.0000001"))
@example(Decimal("-0.10"))
@example(Decimal((1, (9, 2, 2, 3, 3, 7, 2, 0, 3, 6, 8, 5, 4, 7, 7, 5, 8, 0, 8), 5)))
@example(Decimal((0, (1, 2), -(2**31) + 1)))
@example(Decimal((0, (1, 2), 2**31)))
def test_decimals_read_back_bit_for_bit(value: Decimal) -> None:
    wire = driver_type(CqlType("decimal")).to_binary(value, PROTOCOL)
    (text,) = decode(CqlType("decimal"), [wire]).to_pylist()
    assert text == str(value)
    assert parse_decimal(text) == wire


def test_a_decimal_of_more_digits_than_python_prints() -> None:
    wire = struct.pack(">i", -3) + (-(7**9000)).to_bytes(4000, "big", signed=True).lstrip(b"\xff")
    (text,) = decode(CqlType("decimal"), [wire]).to_pylist()
    assert parse_decimal(text) == wire


@given(values(CqlType("varint")))
@example(-(2**63))
@example(2**63)
def test_varints_read_back_bit_for_bit(value: int) -> None:
    wire = driver_type(CqlType("varint")).to_binary(value, PROTOCOL)
    (text,) = decode(CqlType("varint"), [wire]).to_pylist()
    assert text == f"{Decimal(value)}"
    assert parse_varint(text) == wire


def test_padded_varints_are_read() -> None:
    cells = [b"\0\0\0\5", b"\xff" * 8 + b"\xfe", b"\0" * 20 + b"\7", None, b"\x80"]
    assert decode(CqlType("varint"), cells).to_pylist() == ["5", "-2", "7", None, "-128"]


@given(st.lists(st.sampled_from([0, 0, 0, 1, 0xFF0, 0xFFFF]), min_size=8, max_size=8))
@example([1, 0, 0, 1, 0, 0, 1, 1])
@example([1, 0, 0, 1, 0, 0, 0, 1])
@example([0, 0, 0, 0, 0, 0xFFFF, 0x7F00, 1])
def test_addresses_are_written_in_their_shortest_form(groups: list[int]) -> None:
    packed = struct.pack(">8H", *groups)
    (text,) = decode(CqlType("inet"), [packed]).to_pylist()
    assert text == address_form(str(ipaddress.IPv6Address(packed)))
    assert parse_address(text) == packed


# --- nested values in forms that the driver does not write


def test_elements_may_be_null_and_later_fields_missing() -> None:
    one, two = struct.pack(">i", 1), struct.pack(">i", 2)
    elements = struct.pack(">i", 3) + cell(one) + cell(None) + cell(b"")
    assert decode(CqlType("list", (INT,)), [elements]).to_pylist() == [[1, None, None]]
    cells = [cell(one), cell(one) + cell(two), None, b""]
    assert decode(CqlType("tuple", (INT, INT)), cells).to_pylist() == [
        {"0": 1, "1": None},
        {"0": 1, "1": 2},
        None,
        {"0": None, "1": None},
    ]
    # A field was added to the user-defined type after its schema was read.
    assert decode(CqlType("udt", (INT,), ("f",)), [cell(one) + cell(two)]).to_pylist() == [{"f": 1}]


def test_false_counts_of_elements_allocate_nothing() -> None:
    cells: list[bytes | None] = [struct.pack(">i", 2**31 - 1)] * 3000
    with pytest.raises(HostilePage, match="value 0 is not a list"):
        decode(CqlType("list", (INT,)), cells)


@each(
    ("cql_type", "value"),
    [
        ("list<int>", b"\0\0\0"),
        ("list<int>", struct.pack(">i", -1)),
        ("list<int>", struct.pack(">i", 2**31 - 1)),
        ("list<int>", struct.pack(">i", 1) + cell(b"\0\0\0\1")[:-1]),
        ("list<int>", struct.pack(">ii", 1, -2)),
        ("list<int>", struct.pack(">i", 0) + b"x"),
        ("list<int>", struct.pack(">i", 1) + cell(b"\0")),
        ("map<int, int>", struct.pack(">i", 1) + cell(b"\0\0\0\1")),
        ("map<int, int>", struct.pack(">i", 1) + cell(None) + cell(b"\0\0\0\1")),
        ("tuple<int>", b"\0\0"),
        ("tuple<int>", struct.pack(">i", -2)),
        ("tuple<int>", cell(b"\0\0\0\1") + cell(None)),
        ("vector<int, 2>", b"\0" * 7),
        ("vector<int, 2>", b"\0" * 9),
        ("vector<text, 2>", b"\1a"),
        ("vector<text, 2>", b"\1a\1"),
        ("vector<text, 2>", b"\1a\1b\0"),
        ("vector<text, 2>", b"\1a\xff" + b"\xff" * 8),
        ("vector<text, 1>", b"\x80"),
        ("int", b"\0\0\0"),
        ("uuid", b"\0" * 15),
        ("boolean", b"\0\0"),
        ("inet", b"\0" * 5),
        ("decimal", b"\0\0\0\1"),
        ("decimal", b"\0"),
        ("duration", b"\0\0"),
        ("duration", b"\0\0\0\0"),
        ("duration", b"\0\0\xff"),
        ("duration", b"\xf8" + b"\xff" * 5 + b"\0\0"),
        ("time", struct.pack(">q", -1)),
        ("time", struct.pack(">q", 86_400 * 10**9)),
        ("text", b"\xc3"),
        ("text", b"\xed\xa0\x80"),
    ],
)
def test_an_invalid_value_is_reported_with_its_column(cql_type: str, value: bytes) -> None:
    assert refused(parse_type(cql_type), value).startswith("column c: ")


def test_utf8_is_checked_value_by_value() -> None:
    # Together the two halves would be one character.
    with pytest.raises(HostilePage, match="column c: a text is not UTF-8"):
        decode(TEXT, [b"\xc3", b"\xa9"])


# --- the head of a page


def head(flags: int, columns: int, *parts: bytes) -> bytes:
    return struct.pack(">iii", 2, flags, columns) + b"".join(parts)


SPECS = [
    (INT, struct.pack(">H", 9)),
    (CqlType("list", (TEXT,)), struct.pack(">HH", 0x20, 13)),
    (CqlType("map", (TEXT, INT)), struct.pack(">HHH", 0x21, 13, 9)),
    (CqlType("tuple", (INT, TEXT)), struct.pack(">HHHH", 0x31, 2, 9, 13)),
    (
        CqlType("udt", (INT,), ("f",)),
        struct.pack(">H", 0x30)
        + string("ks")
        + string("u")
        + struct.pack(">H", 1)
        + string("f")
        + struct.pack(">H", 9),
    ),
    (
        CqlType("vector", (CqlType("float"),), size=3),
        struct.pack(">H", 0) + string("org.apache.cassandra.db.marshal.VectorType(FloatType, 3)"),
    ),
]


@pytest.mark.parametrize("global_table", [True, False])
@pytest.mark.parametrize("state", [None, b"the next page"])
@pytest.mark.parametrize("changed", [False, True])
def test_metadata_is_skipped(global_table: bool, state: bytes | None, changed: bool) -> None:
    table = string("ks") + string("t")
    flags, parts = 0, []
    if state is not None:
        flags |= MORE_PAGES
        parts.append(long_bytes(state))
    if changed:
        flags |= METADATA_CHANGED
        parts.append(string("0123456789abcdef"))
    if global_table:
        flags |= GLOBAL_TABLE
        parts.append(table)
    for i, (_, spec) in enumerate(SPECS):
        parts += [b"" if global_table else table, string(f"c{i}"), spec]
    body = page([[None, None]] * len(SPECS), head(flags, len(SPECS), *parts))
    decoder = PageDecoder([f"c{i}" for i in range(len(SPECS))], [cql_type for cql_type, _ in SPECS])
    batch = decoder.decode(body)
    assert batch.num_rows == 2
    assert [column.null_count for column in batch.columns] == [2] * len(SPECS)
    assert paging_state(body) == state
    # Wherever it is cut, nothing beyond the end is read.
    for end in range(len(body)):
        with pytest.raises(HostilePage):
            decoder.decode(body[:end])


@each(
    ("body", "reason"),
    [
        (struct.pack(">iii", 1, NO_METADATA, 1), "kind 1"),
        (head(NO_METADATA, 2) + struct.pack(">i", 0), "a page has 2 columns, not 1"),
        (head(NO_METADATA, -1) + struct.pack(">i", 0), "a page has -1 columns, not 1"),
        (head(NO_METADATA, 1) + struct.pack(">i", -1), "no room for -1 rows"),
        (head(NO_METADATA, 1) + struct.pack(">i", 2**31 - 1), "no room for 2147483647 rows"),
        (head(NO_METADATA, 1) + struct.pack(">ii", 1, -2), "a page ends in row 0"),
        (head(NO_METADATA, 1) + struct.pack(">ii", 1, 2**31 - 1), "a page ends in row 0"),
        (head(NO_METADATA, 1) + struct.pack(">ii", 1, -1) + b"x", "1 bytes follow"),
        (head(MORE_PAGES | NO_METADATA, 1) + struct.pack(">ii", -1, 0), "more pages"),
        (head(MORE_PAGES | NO_METADATA, 1) + struct.pack(">ii", 99, 0), "ends in its head"),
        (head(0, 2**31 - 1), "no room for 2147483647 columns"),
        (
            head(GLOBAL_TABLE, 1, *[string("x")] * 3, struct.pack(">H", 0x20) * 2000),
            "nested too deeply",
        ),
        (b"", "ends in its head"),
    ],
)
def test_an_invalid_head_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(HostilePage, match=reason):
        PageDecoder(["c"], [INT]).decode(body)


def test_the_extras_before_a_result_are_removed() -> None:
    body = page([[struct.pack(">i", 7)]])
    trace = bytes(range(16))
    warnings = struct.pack(">H", 2) + string("many tombstones") + string("é")
    payload = struct.pack(">H", 2) + string("k") + long_bytes(b"v") + string("n") + long_bytes(None)
    assert result_body(0, body) == (body, [])
    inner, said = result_body(0x02 | 0x08 | 0x04, trace + warnings + payload + body)
    assert (bytes(inner), said) == (body, ["many tombstones", "é"])
    assert PageDecoder(["c"], [INT]).decode(inner).to_pylist() == [{"c": 7}]
    assert paging_state(inner) is None
    whole = trace + warnings + payload
    for end in range(len(whole)):
        with pytest.raises(HostilePage):
            result_body(0x02 | 0x08 | 0x04, whole[:end])


# --- many pages


@given(st.lists(st.lists(st.tuples(st.integers(-9, 9), st.text()), max_size=3), max_size=5))
def test_many_pages_are_one_batch(pages: list[list[tuple[int, str]]]) -> None:
    bodies = []
    for rows in pages:
        cells = [[struct.pack(">i", number) for number, _ in rows]]
        cells.append([text.encode() for _, text in rows])
        bodies.append(page(cells))
    batch, counts = PageDecoder(["n", "t"], [INT, TEXT]).decode_many(bodies)
    assert counts == [len(rows) for rows in pages]
    found = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    assert found == [row for rows in pages for row in rows]


def test_a_page_does_not_continue_in_the_next() -> None:
    decoder = PageDecoder(["n"], [INT])
    whole = page([[struct.pack(">i", 7)]])
    with pytest.raises(HostilePage, match="a page ends in row 0"):
        decoder.decode_many([whole[:-1], whole])


# --- hostile pages


@given(st.data())
def test_a_garbled_page_is_refused_or_decoded_to_valid_data(data: st.DataObject) -> None:
    columns_types = data.draw(st.lists(types, min_size=1, max_size=2))
    columns = []
    for cql_type in columns_types:
        driver = driver_type(cql_type)
        drawn = data.draw(st.lists(values(cql_type), min_size=2, max_size=2))
        columns.append([driver.to_binary(value, PROTOCOL) for value in drawn])
    body = bytearray(page(columns))
    assume(len(body) < 2000)
    decoder = PageDecoder([f"c{i}" for i in range(len(columns))], columns_types)
    for end in range(len(body)):
        with pytest.raises(HostilePage):
            decoder.decode(bytes(body[:end]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        replacement = data.draw(st.sampled_from(mutated.REPLACEMENTS))
        body[at : at + len(replacement)] = replacement
    mutated.decode_or_refuse(decoder, bytes(body))


def test_no_kernel_reads_or_writes_outside_its_arrays(tmp_path: Path) -> None:
    """Kernels compiled with bounds checks raise no index error."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", mutated.__name__, "12000"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    counts: dict[str, Any] = json.loads(done.stdout)
    assert counts["decoded"] > 100 and counts["refused"] > 100


# --- the cache of compiled kernels


def test_kernels_compile_without_a_writable_folder() -> None:
    """As in a read-only installation, with a user without a home."""
    done = python(
        "import numba.core.caching as caching\n"
        "def nowhere(self): raise OSError('read-only')\n"
        "caching._CacheLocator.ensure_cache_path = nowhere\n"
        "from ringhaul.cql import compiled\n"
        "@compiled.kernel(compiled.COUNT(compiled.COUNT))\n"
        "def double(value): return 2 * value\n"
        "print(double(21))\n"
    )
    assert done.communicate(timeout=60) == ("42\n", "")


def test_processes_may_compile_at_once_and_find_broken_files(tmp_path: Path) -> None:
    # Given processes that all start with an empty cache
    script = "import ringhaul.cql.decode.gather; print('loaded')"
    together = [python(script, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    assert [done.communicate(timeout=240) for done in together] == [("loaded\n", "")] * 3
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 8
    # When the cached files are truncated
    for path in kept:
        os.truncate(path, path.stat().st_size // 2)
    # Then the next process works without them
    alone = python(script, NUMBA_CACHE_DIR=str(tmp_path))
    assert alone.communicate(timeout=240) == ("loaded\n", "")


def test_loading_the_package_does_not_load_the_compiler() -> None:
    done = python("import sys, ringhaul.cql.decode; print('numba' in sys.modules)")
    assert done.communicate(timeout=60) == ("False\n", "")


def python(script: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

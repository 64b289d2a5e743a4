"""Decoded pages of a real node, with a column of every type, compared with the driver's rows."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from cassandra import util
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ExecutionProfile, Session
from cassandra.policies import RoundRobinPolicy
from cassandra.protocol import ProtocolHandler
from cassandra.query import tuple_factory

from producer.local.stack import Endpoints
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import find_table
from ringhaul.cql.decode import PageDecoder, paging_state, result_body
from ringhaul.cql.types import CqlType
from tests.property.cql.pages import plain_column, plain_driver
from tests.services import patient_cluster

RESULT, ROWS = 8, 2
A, B = uuid.UUID(int=7), uuid.UUID("c0ffee00-1234-11ee-be56-0242ac120002")

#: Column -> its type, and values as the driver binds them. Sets are in the server's order.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "a_ascii": ("ascii", ["plain", ""]),
    "a_text": ("text", ["été 🚀", ""]),
    "a_blob": ("blob", [b"\0\xff", b""]),
    "a_tinyint": ("tinyint", [-128, 127]),
    "a_smallint": ("smallint", [-(2**15), 2**15 - 1]),
    "an_int": ("int", [-(2**31), 2**31 - 1]),
    "a_bigint": ("bigint", [-(2**63), 2**63 - 1]),
    "a_varint": ("varint", [-(2**63), 10**60]),
    "a_decimal": ("decimal", [Decimal("-0.0000000001"), Decimal("1E+3"), Decimal((0, (0,), -3))]),
    "a_float": ("float", [1.5, float("-inf"), float("nan")]),
    "a_double": ("double", [-0.0, 5e-324]),
    "a_boolean": ("boolean", [True, False]),
    "a_timestamp": ("timestamp", [datetime(2024, 2, 29, 12, 30, 1, 250000, UTC)]),
    "a_date": ("date", [util.Date(-(2**31)), util.Date(2**31 - 1)]),
    "a_time": ("time", [util.Time(0), util.Time(86_400 * 10**9 - 1)]),
    "a_duration": ("duration", [util.Duration(14, 3, 10**12), util.Duration(-1, -2, -(2**62))]),
    "an_inet": ("inet", ["127.0.0.1", "2001:db8::1:0:0:1"]),
    "a_uuid": ("uuid", [A]),
    "a_timeuuid": ("timeuuid", [B]),
    "a_list": ("list<int>", [[3, 1, 3], [7]]),
    "a_set": ("set<text>", [["a", "b"]]),
    "a_map": ("map<int, text>", [{1: "one", 2: ""}]),
    "frozen_list": ("frozen<list<text>>", [[], ["x"]]),
    "deep": (
        "map<text, frozen<list<frozen<set<int>>>>>",
        [{"k": [[1, 2], []], "l": []}],
    ),
    "a_tuple": ("tuple<int, text, frozen<list<int>>>", [(1, None, [5]), (None, "", None)]),
    "a_udt": ("place", [("Main", (1.5, 2.5), ["a"]), ("", None, None)]),
    "udts": ("list<frozen<place>>", [[("Main", None, []), (None, (0.0, 1.0), ["b"])]]),
    "of_floats": ("vector<float, 3>", [[1.0, 2.0, 3.0]]),
    "of_booleans": ("vector<boolean, 2>", [[True, False]]),
    "of_bigints": ("vector<bigint, 2>", [[-1, 2**63 - 1]]),
    "of_timestamps": ("vector<timestamp, 1>", [[datetime(1969, 12, 31, tzinfo=UTC)]]),
    "of_uuids": ("vector<uuid, 2>", [[A, B]]),
    "of_timeuuids": ("vector<timeuuid, 1>", [[B]]),
    "of_vectors": ("vector<vector<int, 2>, 2>", [[[1, 2], [3, 4]]]),
    "of_texts": ("vector<text, 2>", [["a", "b" * 300]]),
    "of_tinyints": ("vector<tinyint, 2>", [[1, -1]]),
    "of_smallints": ("vector<smallint, 2>", [[1, -1]]),
    "of_dates": ("vector<date, 2>", [[util.Date(0), util.Date(-1)]]),
    "of_times": ("vector<time, 2>", [[util.Time(0), util.Time(1)]]),
    "of_decimals": ("vector<decimal, 2>", [[Decimal("1.50"), Decimal("2E-20")]]),
    "of_varints": ("vector<varint, 2>", [[1, 2**100]]),
    "of_inets": ("vector<inet, 2>", [["10.0.0.1", "::"]]),
    "of_durations": ("vector<duration, 1>", [[util.Duration(1, 2, 3)]]),
    "of_blobs": ("vector<blob, 2>", [[b"", b"x" * 20_000]]),
    "of_lists": ("vector<frozen<list<int>>, 2>", [[[1, 2], []]]),
    "of_maps": ("vector<frozen<map<text, int>>, 1>", [[{"a": 1}]]),
    "of_tuples": ("vector<frozen<tuple<int, text>>, 2>", [[(1, "a"), (2, None)]]),
    "of_udts": ("vector<frozen<place>, 1>", [[("Main", None, ["t"])]]),
    "of_text_vectors": ("vector<vector<text, 2>, 2>", [[["a", "b"], ["", "d"]]]),
}
ROWS_COUNT = 4


class Recording(ProtocolHandler):
    """Keep the body of each page. With `only_pages`, the driver does not decode them itself."""

    pages: list[tuple[int, bytes]]
    only_pages = False

    @classmethod
    def decode_message(
        cls,
        protocol_version: int,
        user_type_map: Any,
        stream_id: int,
        flags: int,
        opcode: int,
        body: bytes,
        decompressor: Any,
        result_metadata: Any,
    ) -> Any:
        inner, _ = result_body(flags, body)
        if opcode == RESULT and bytes(inner[:4]) == struct.pack(">i", ROWS):
            cls.pages.append((flags, body))
            if cls.only_pages:
                flags, body = 0, struct.pack(">i", 1)
        return super().decode_message(
            protocol_version,
            user_type_map,
            stream_id,
            flags,
            opcode,
            body,
            decompressor,
            result_metadata,
        )


@pytest.fixture(params=[4, 5], ids=["v4", "v5"])
def recorded(endpoints: Endpoints, request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session for each protocol version, whose handler keeps pages."""
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(), request_timeout=30, row_factory=tuple_factory
    )
    cluster = patient_cluster(
        endpoints.contact_points,
        port=endpoints.port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        protocol_version=request.param,
        compression=False,
    )
    try:
        session = cluster.connect()
        session.client_protocol_handler = type("Kept", (Recording,), {"pages": []})
        yield session
    finally:
        cluster.shutdown()


def schema_of(session: Session, keyspace: str, table: str) -> TableSchema:
    session.cluster.refresh_schema_metadata()
    return find_table(DriverView(session), keyspace, table)


def read(session: Session, types: dict[str, CqlType], select: Any) -> list[Any]:
    """Decode pages, and assert that they equal the driver's rows of the same pages."""
    handler = session.client_protocol_handler
    handler.pages.clear()
    rows = list(session.execute(select))
    decoder = PageDecoder(list(types), list(types.values()))
    pages = [result_body(flags, body)[0] for flags, body in handler.pages]
    assert [paging_state(page) is None for page in pages] == [False] * (len(pages) - 1) + [True]
    batch, counts = decoder.decode_many(pages)
    batch.validate(full=True)
    assert sum(counts) == len(rows)
    for i, (name, cql_type) in enumerate(types.items()):
        ours = plain_column(cql_type, batch.column(i))
        assert ours == [plain_driver(cql_type, row[i]) for row in rows], name
    return pages


def test_every_type_is_decoded_like_the_driver(recorded: Session, keyspace: str) -> None:
    recorded.execute(
        f"CREATE TYPE {keyspace}.place (street text, at frozen<tuple<float, double>>, "
        "tags frozen<list<ascii>>)"
    )
    columns = ", ".join(f"{name} {cql_type}" for name, (cql_type, _) in COLUMNS.items())
    recorded.execute(f"CREATE TABLE {keyspace}.every (k int PRIMARY KEY, {columns})")
    marks = ", ".join("?" * (1 + len(COLUMNS)))
    insert = recorded.prepare(
        f"INSERT INTO {keyspace}.every (k, {', '.join(COLUMNS)}) VALUES ({marks})"
    )
    for k in range(ROWS_COUNT):
        # A row of nulls, then the values of each column in turn.
        values = [None if k == 0 else given[k % len(given)] for _, given in COLUMNS.values()]
        recorded.execute(insert, [k, *values])

    known = schema_of(recorded, keyspace, "every").types
    types = {name: known[name] for name in ("k", *COLUMNS)}
    query = f"SELECT {', '.join(types)} FROM {keyspace}.every"
    whole = read(recorded, types, query)
    assert len(whole) == 1
    # A prepared statement's pages have no metadata; with three rows a page, there are two.
    prepared = recorded.prepare(query)
    prepared.fetch_size = 3
    assert len(read(recorded, types, prepared)) == 2


def test_extremes_that_the_driver_cannot_represent(recorded: Session, keyspace: str) -> None:
    recorded.execute(f"CREATE TABLE {keyspace}.moments (k int PRIMARY KEY, t timestamp, e int)")
    insert = f"INSERT INTO {keyspace}.moments (k, t, e) VALUES (%s, %s, blobAsInt(0x))"
    for k, moment in enumerate([-(2**63), 2**63 - 1]):
        recorded.execute(insert, [k, moment])
    types = schema_of(recorded, keyspace, "moments").types
    handler = recorded.client_protocol_handler
    handler.pages.clear()
    handler.only_pages = True
    recorded.execute(f"SELECT t, k, e FROM {keyspace}.moments")
    decoder = PageDecoder(["t", "k", "e"], [types[name] for name in ("t", "k", "e")])
    ((flags, body),) = handler.pages
    batch = decoder.decode(result_body(flags, body)[0])
    moments = {k.as_py(): t.value for t, k, _ in zip(*batch.columns, strict=True)}
    assert moments == {0: -(2**63), 1: 2**63 - 1}
    # An int without bytes has no number.
    assert batch.column(2).to_pylist() == [None, None]


def test_counters_and_a_response_with_a_warning(recorded: Session, keyspace: str) -> None:
    recorded.execute(f"CREATE TABLE {keyspace}.hits (k int PRIMARY KEY, n counter)")
    recorded.execute(f"UPDATE {keyspace}.hits SET n = n - 5 WHERE k = 1")
    types = schema_of(recorded, keyspace, "hits").types
    # The server puts a warning about an aggregate over all partitions before the result.
    read(recorded, types, f"SELECT k, n FROM {keyspace}.hits")
    count = {"count": CqlType("bigint")}
    read(recorded, count, f"SELECT count(*) FROM {keyspace}.hits")
    ((flags, body),) = recorded.client_protocol_handler.pages
    inner, warnings = result_body(flags, body)
    assert len(warnings) == 1 and len(inner) < len(body)

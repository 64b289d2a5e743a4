"""Rows that a server refuses to read: a verification reports each of them, and continues.

The server is scripted: it refuses rows on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cqltypes import LongType
from cassandra.protocol import ColumnMetadata
from cassandra.query import PreparedStatement

from ringhaul.load.write import RequestBounds, Target
from ringhaul.load.write.pipeline import BLOCKS_KEPT_MAX
from ringhaul.records.account import UnitHooks
from ringhaul.records.unit import LoadUnit
from ringhaul.statements.verify import VerifyPlan, run_verify_unit
from tests.integration.load.pipeline_client import KEYSPACE, connected_client
from tests.integration.statements.test_request_faults import INVALID, one_row
from tests.loads import load_job, load_source, rejects_of, table_schema
from tests.scripted_server import ScriptedServer, error, query_id

TABLE = table_schema({"id": "bigint", "v": "bigint", "w": "bigint"}, ["id"])
RECORD_BYTES = len("1000,1000,\n")
BLOCK_ROWS = 100
ROWS = (2 * BLOCKS_KEPT_MAX + 1) * BLOCK_ROWS
MARKER = ColumnMetadata(KEYSPACE, "orders", "id", LongType)


@pytest.fixture
def target(server: ScriptedServer) -> Iterator[Target]:
    text = VerifyPlan.of(TABLE, load_source(["id", "v", "w"])).statement
    prepared = PreparedStatement([MARKER], query_id(text), [0], text, None, 4, [], None)
    server.known.add(prepared.query_id)
    with connected_client([server]) as connected:
        yield Target(connected.session, connected.plane, prepared, KEYSPACE)


@pytest.mark.parametrize(
    "bad",
    [
        lambda row: True,
        lambda row: row < 1000 + (BLOCKS_KEPT_MAX + 1) * BLOCK_ROWS,  # as many blocks as are kept
        lambda row: row % BLOCK_ROWS == BLOCK_ROWS - 1,
        lambda row: row % BLOCK_ROWS != 0,
    ],
    ids=["all", "first blocks", "one of each block", "all but one of each block"],
)
def test_rows_that_cannot_be_read_are_reported(
    server: ScriptedServer, target: Target, tmp_path: Path, bad: Callable[[int], bool]
) -> None:
    # Given a server with the rows of the file, some of which it cannot read
    path = tmp_path / "in.csv"
    numbers = range(1000, 1000 + ROWS)
    path.write_text("".join(f"{i},{i},\n" for i in numbers))
    server.script = lambda request: (
        error(request, INVALID, "no luck") if bad(request.row) else one_row(request)
    )
    size_bytes = path.stat().st_size
    source = load_source(["id", "v", "w"], path=str(path), size_bytes=size_bytes)
    job = load_job(
        *(TABLE, source),
        consistency="ONE",
        nulls="tombstone",
        kind="verify",
        block_bytes=BLOCK_ROWS * RECORD_BYTES,
    )

    # When the file is compared
    outcome = run_verify_unit(
        LoadUnit(0, 0, size_bytes, 0, 1, -1),
        job,
        target,
        RequestBounds(retries_max=1, request_timeout_s=30),
        UnitHooks(tick=lambda rows, rejected, input_bytes: None),
    )

    # Then exactly these are reported, in the order of the file, and the others are the same
    unread = [i for i in numbers if bad(i)]
    rejects = rejects_of(outcome)
    assert [(int((reject.data or b"").split(b",")[0]), reject.stage) for reject in rejects] == [
        (i, "read") for i in unread
    ]
    assert (outcome.records, outcome.written) == (ROWS, ROWS - len(unread))

"""Batches encoded by column equal those of the driver byte for byte."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
from cassandra import ConsistencyLevel
from cassandra.protocol import BatchMessage, ProtocolHandler
from cassandra.query import UNSET_VALUE, BatchType
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.cql.cells import NULL_LENGTH, UNSET_LENGTH, Cells, join_rows
from ringhaul.load.write.token_batch import EncodedBatch, EncodedBatchHandler

VALUES = st.one_of(st.none(), st.just(UNSET_VALUE), st.binary(max_size=40))


def cells(values: list[object]) -> Cells:
    """A column whose rows are bytes, None or unset."""
    lengths = np.array(
        [
            NULL_LENGTH if v is None else UNSET_LENGTH if v is UNSET_VALUE else len(v)  # type: ignore[arg-type]
            for v in values
        ],
        ">i4",
    )
    data = [v if isinstance(v, bytes) else b"" for v in values]
    return Cells(None, lengths, pa.array(data, pa.binary()))


@given(
    st.integers(1, 4).flatmap(
        lambda columns: st.lists(
            st.lists(VALUES, min_size=columns, max_size=columns), min_size=1, max_size=12
        )
    ),
    st.binary(min_size=16, max_size=16),
    st.sampled_from([4, 5]),
    st.integers(0, 32767),
    st.sampled_from([ConsistencyLevel.ONE, ConsistencyLevel.LOCAL_QUORUM, ConsistencyLevel.ALL]),
)
def test_a_batch_is_what_the_driver_sends(
    rows: list[list[object]],
    query_id: bytes,
    version: int,
    stream: int,
    consistency: int,
) -> None:
    # Given rows of any values, null and unset among them, bound to one prepared statement
    head = struct.pack(">BH", 1, 16) + query_id + struct.pack(">H", len(rows[0]))
    joined = join_rows([cells(list(column)) for column in zip(*rows, strict=True)])
    entries = b"".join(head + row for row in joined.to_pylist())
    # When the batch is encoded by us and by the driver
    ours = EncodedBatchHandler.encode_message(
        BatchMessage(BatchType.UNLOGGED, EncodedBatch(len(rows), memoryview(entries)), consistency),
        stream,
        version,
        None,
        False,
    )
    theirs = ProtocolHandler.encode_message(
        BatchMessage(BatchType.UNLOGGED, [(True, query_id, row) for row in rows], consistency),
        stream,
        version,
        None,
        False,
    )
    # Then the frames are the same
    assert ours == theirs


def test_other_messages_are_encoded_by_the_driver() -> None:
    message = BatchMessage(BatchType.LOGGED, [(False, "SELECT 1", [])], ConsistencyLevel.ONE)
    assert EncodedBatchHandler.encode_message(
        message, 7, 5, None, False
    ) == ProtocolHandler.encode_message(message, 7, 5, None, False)

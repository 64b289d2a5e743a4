"""What differs between versions of SSTables, and which one a stored job has."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from ringhaul.cql.cells import Cells
from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.components import file_name
from ringhaul.sstables.layout import Column, Layout
from ringhaul.sstables.version import SSTableVersion
from tests.sstable_figures import stats_of

NB, OA = SSTableVersion
INT = Column(name="c", class_name="Int32Type", cql_type="int", width=4)
TEXT = Column(name="t", class_name="UTF8Type", cql_type="text", width=0)
LAYOUT = Layout(partition_key_class="UTF8Type", clustering=(), columns=(), written_s=1_760_000_000)


def test_the_last_expiry_is_that_of_cassandra() -> None:
    # `Cell.MAX_DELETION_TIME`, and `MAX_DELETION_TIME_2038_LEGACY_CAP`
    assert (NB.expiry_s_max, OA.expiry_s_max) == (0x7FFFFFFE, 0xFFFFFFFD)
    assert (NB.last_day, OA.last_day) == ("2038-01-19", "2106-02-07")
    day = datetime(2045, 12, 31, tzinfo=UTC).timestamp()
    assert NB.expiry_s_max < day < OA.expiry_s_max


def test_later_versions_are_greater() -> None:
    assert sorted([OA, NB]) == [NB, OA]
    assert file_name(OA, 7, "Data.db") == "oa-7-big-Data.db"


def test_a_stored_job_keeps_its_version_and_an_older_one_has_nb() -> None:
    for layout in (LAYOUT, replace(LAYOUT, version=OA)):
        stored = json.loads(json.dumps(layout.to_json()))
        assert Layout.from_json(stored) == layout
        assert type(Layout.from_json(stored).version) is SSTableVersion
    del stored["version"]
    assert Layout.from_json(stored).version is NB


@pytest.mark.parametrize("version", [NB, OA])
def test_bounds_of_clusterings_are_whole_values(version: SSTableVersion) -> None:
    # Given 33 clustering columns, of which one is empty in the first row
    columns = (*[INT] * 31, TEXT, TEXT)
    layout = replace(LAYOUT, clustering=columns, version=version)
    first = [b"\0\0\0\1"] * 31 + [b"", b"a" * 300]
    last = [b"\0\0\0\1"] * 31 + [b"b", b"c"]
    clustering = [
        Cells(None, np.array([len(a), len(b)], ">i4"), pa.array([a, b], pa.binary()))
        for a, b in zip(first, last, strict=True)
    ]
    rows = Rows(
        keys=pa.array([b"k", b"k"], pa.binary()),
        clustering=clustering,
        columns=[],
        times_us=np.array([5, 6]),
        ttls_s=np.array([0, 0]),
    )

    # When an SSTable is built
    files = dict(build_sstable(layout, [rows]).files)

    # Then the bounds are these rows
    widths = [column.width for column in columns]
    found = stats_of(bytes(files["Statistics.db"][:]), version, widths)
    assert found.clustering_min == tuple(first)
    assert found.clustering_max == tuple(last)

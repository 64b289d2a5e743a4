"""Each way of the bench of memory loads every generated row, at a small size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.generated_input import FIRST_ID, LINE_BYTES, ids, lines, note, part, scores
from bench.sstable_memory import STREAMING, TABLE, TO_SSTABLES, check_table, measure
from bench.stage import KEYSPACE, Stage, stage_at
from producer.local.stack import Endpoints
from tests.sstable_reader import partitions_of

RECORDS = 4000
WIDTHS = {"score": 4, "note": 0}


@pytest.fixture
def running(endpoints: Endpoints, tmp_path: Path) -> Iterator[Stage]:
    with stage_at(endpoints, tmp_path) as stage:
        stage.env["RINGHAUL_STREAMING_INPUT_BYTES_MIN"] = "0"
        stage.env["RINGHAUL_STORAGE_PRIVATE_ADDRESSES"] = "true"
        yield stage
        stage.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)


def expected() -> dict[int, tuple[int, str]]:
    return {
        int(key): (int(score), note(number))
        for number, (key, score) in enumerate(zip(ids(0, RECORDS), scores(0, RECORDS), strict=True))
    }


def test_any_range_of_the_input_is_that_of_one_file() -> None:
    whole = lines(0, 300).tobytes()
    assert len(whole) == 300 * LINE_BYTES
    first, second, *_ = whole.decode().splitlines()
    assert first == f"{FIRST_ID},100000000,{note(0)}"
    assert second == f"{FIRST_ID + 1},100007919,{note(1)}"
    for start, end in ((0, len(whole)), (1, 2), (199, 401), (12_345, 50_000), (7, 7)):
        assert b"".join(part(start, end)) == whole[start:end]
    assert np.array_equal(lines(100, 5), lines(0, 300)[100:105])


def test_each_way_loads_every_row(running: Stage) -> None:
    removed: list[dict[int, tuple[int, str]]] = []

    def read(folder: Path) -> None:
        """Read the SSTables, instead of removing them."""
        found: dict[str, dict[str, bytes]] = {}
        for path in folder.rglob("nb-*"):
            base, _, component = path.name.rpartition("-")
            found.setdefault(base, {})[component] = path.read_bytes()
        rows = [
            (int.from_bytes(p.key, "big"), p.rows[0].cells)
            for files in found.values()
            for p in partitions_of(files, WIDTHS)
        ]
        assert len(rows) == RECORDS
        removed.append(
            {
                key: (
                    int.from_bytes(cells["score"].value or b"", "big"),
                    (cells["note"].value or b"").decode(),
                )
                for key, cells in rows
            }
        )

    with running.worker(1) as worker_pid:
        written = measure(running, worker_pid, TO_SSTABLES, RECORDS, read)
        streamed = measure(running, worker_pid, STREAMING, RECORDS)
        assert removed == [expected()]
        rows = running.session.execute(f"SELECT id, score, note FROM {TABLE}")
        assert {row.id: (row.score, row.note) for row in rows} == expected()
        for found in (written, streamed):
            assert (found.rows, found.sstables > 0) == (RECORDS, True)
            assert found.sstable_bytes > RECORDS * 20
            assert len(found.children_mb) == 1 and 100 < found.children_mb[0] < 400
        running.session.execute(f"DELETE FROM {TABLE} WHERE id = {FIRST_ID}")
        with pytest.raises(RuntimeError, match=f"and not {RECORDS} rows"):
            check_table(running, RECORDS)

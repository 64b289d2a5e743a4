"""Rejected records that the ledger does not keep are read from their files, mostly in one pass."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producer.figures import reject_source as module
from producer.figures.reject_source import RejectReader
from producer.figures.rejects import _data
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import SourceChanged
from ringhaul.formats.split import Position
from ringhaul.records.field_readers import field_reader
from ringhaul.records.job import LoadSource
from ringhaul.records.reading import read_records
from ringhaul.records.rejects import Reject
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from tests.loads import load_job, load_source, table_schema
from tests.property.cql.columns import wire

TABLE = table_schema({"id": "int", "v": "text"}, ["id"])
RECORDS = [b"%d,%s" % (i, b"x" * (i % 50)) for i in range(9000)]


def reject(source: LoadSource, *, offset: int, length: int = 0, line: int = 1) -> Reject:
    return Reject(
        file=source.file.path,
        offset=offset,
        length=length,
        line=line,
        stage="cast",
        column=None,
        reason="",
        data=None,
    )


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record each opening of a source by its kind."""
    names: list[str] = []

    def counted(name: str) -> None:
        real = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            names.append(name)
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, call)

    counted("open_records")
    counted("read_records")
    return names


def places() -> list[tuple[int, int]]:
    """(offset, length) of each record."""
    found, at = [], 0
    for record in RECORDS:
        found.append((at, len(record)))
        at += len(record) + 1
    return found


@pytest.mark.parametrize("whole", [False, True])
def test_records_of_text_are_returned_unchanged(
    tmp_path: Path, openings: list[str], whole: bool
) -> None:
    path = tmp_path / ("in.csv.gz" if whole else "in.csv")
    data = b"".join(record + b"\n" for record in RECORDS)
    path.write_bytes(gzip.compress(data) if whole else data)
    size_bytes = path.stat().st_size
    source = load_source(["id", "v"], path=str(path), size_bytes=size_bytes, whole=whole)
    wanted = [3, 4, 8000, 8999, 17, 18]
    with RejectReader(load_job(TABLE, source)) as reader:
        for number in wanted:
            offset, length = places()[number]
            found = reader.record(source, reject(source, offset=offset, length=length))
            assert found == RECORDS[number]
    # And a compressed file was reopened only for the record that lies before the previous one
    assert len(openings) == (2 if whole else len(wanted))


def test_rows_of_parquet_are_found_by_their_number(tmp_path: Path, openings: list[str]) -> None:
    # Given two row groups of several blocks each
    path = tmp_path / "in.parquet"
    rows = pa.table({"id": range(6000), "v": [f"{i}-" + "x" * 1000 for i in range(6000)]})
    pq.write_table(rows, path, row_group_size=3000)
    source = LoadSource(
        file=SourceFile(str(path), path.stat().st_size, False),
        fields=("id", "v"),
        mapping=(("id", "id"), ("v", "v")),
        format="parquet",
    )
    job = load_job(TABLE, source, block_bytes=64 * 1024)
    with RejectReader(job) as reader:
        for number in [0, 1, 2000, 2999, 3000, 5999, 5998, 7]:
            where = reject(source, offset=number // 3000, line=number + 1)
            assert json.loads(reader.record(source, where))["id"] == number
        # Then a group is opened once, and again for a row of a block that was passed
        assert len(openings) == 3
        with pytest.raises(SourceChanged, match="has no row 6001"):
            reader.record(source, reject(source, offset=1, line=6001))


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_records_of_another_version_are_not_exported(tmp_path: Path, form: str) -> None:
    # Given a job whose file is replaced by one of the same size between two of its rejects
    path = tmp_path / f"in.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"id": range(300), "v": ["x"] * 300}), path)
    else:
        data = b"".join(record + b"\n" for record in RECORDS)
        path.write_bytes(gzip.compress(data) if form == "csv.gz" else data)
    (file,) = find_sources([str(path)])
    mapping = (("id", "id"), ("v", "v"))
    kind = "parquet" if form == "parquet" else "csv"
    source = LoadSource(file=file, fields=("id", "v"), mapping=mapping, format=kind)
    where = [(0, 1), (0, 2)] if form == "parquet" else [(places()[n][0], n + 1) for n in (3, 4)]
    first, second = (reject(source, offset=at, length=4, line=line) for at, line in where)
    with RejectReader(load_job(TABLE, source)) as reader:
        assert _data(first, source, reader)
        shutil.copy(path, tmp_path / "other")
        os.replace(tmp_path / "other", path)
        # When they are exported, then the second one is missed, although its bytes are at hand
        with pytest.raises(SourceChanged, match=r"is not kept in the ledger, and .*was replaced"):
            _data(second, source, reader)


def test_numbers_in_text_load_again_with_the_same_values(tmp_path: Path) -> None:
    # Given numbers with --decimal-sep and --thousands-sep, some of them misspelt
    table = table_schema({"id": "int", "n": "decimal"}, ["id"])
    texts = ["1.500", "12,50", "-1.234,5", "12.50", "1,2,3", "1.5"]
    path, exported = tmp_path / "in.parquet", tmp_path / "again.jsonl"
    pq.write_table(pa.table({"id": range(len(texts)), "n": texts}), path)
    german = {"text": TextFormat(decimal_sep=",", thousands_sep=".")}

    def loaded(path: Path, form: str) -> tuple[list[bytes | None], list[int]]:
        """The values of the rows, and the numbers of the rejected records."""
        file = SourceFile(str(path), path.stat().st_size, False)
        mapping = (("id", "id"), ("n", "n"))
        source = LoadSource(file=file, fields=("id", "n"), mapping=mapping, format=form)
        job = load_job(table, source, **german)
        fields, values, refused = field_reader(job, source), [], []
        for block in read_records(source, job, Position(0, 0, 1), TO_THE_END, 1 << 20):
            parsed = fields.parse(block, np.ones(block.records_count, np.bool_))
            kind = table.parsed_type("n")
            cells, faults = fields.encode(kind, parsed.columns[1], job.text, null_length=-1)
            refused = sorted(faults)
            values = [cell for row, cell in enumerate(wire(cells)) if row not in faults]
        return values, refused

    before = loaded(path, "parquet")
    assert before[1] == [3, 4, 5]
    # When their rows are exported like rejects
    file = SourceFile(str(path), path.stat().st_size, False)
    mapping = (("id", "id"), ("n", "n"))
    source = LoadSource(file=file, fields=("id", "n"), mapping=mapping, format="parquet")
    with RejectReader(load_job(table, source, **german)) as reader:
        rows = [reader.record(source, reject(source, offset=0, line=n + 1)) for n in range(6)]
    exported.write_bytes(b"".join(row + b"\n" for row in rows))
    # Then the exported file loads with the same options
    assert loaded(exported, "jsonl") == before

"""One file of an unload's parts: it has their rows in order, appears at once, and a crash costs
nothing."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.compression import DECOMPRESSORS
from ringhaul.formats.write import OutputFormat
from ringhaul.output.job import Output
from ringhaul.output.one_file import file_exists, join_parts, parts_folder, remove_parts
from ringhaul.output.parts import PartInfo, PartSet
from ringhaul.storage.access import Access, access, set_access
from ringhaul.storage.folders import open_folder

NAMES, TYPES = ["k", "v"], [CqlType("int"), CqlType("text")]
_LIBRARIES: dict[str, Any] = {"gzip": gzip, "bz2": bz2, "xz": lzma}
FORMATS = {
    "csv": OutputFormat(),
    "no header": OutputFormat(header=False),
    "bom": OutputFormat(bom=True, line_end="crlf"),
    **{name: OutputFormat(compression=name) for name in ("gzip", "zstd", "bz2", "xz", "lz4")},
    "brotli": OutputFormat(compression="brotli"),
    "jsonl": OutputFormat(kind="jsonl"),
    "array": OutputFormat(kind="jsonl", json_layout="array"),
    "pretty": OutputFormat(kind="jsonl", json_layout="pretty", compression="gzip"),
    "parquet": OutputFormat(kind="parquet"),
    "snappy": OutputFormat(kind="parquet", compression="snappy"),
}


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder, by a path and by a URL."""
    before = access()
    set_access(Access(schemes=("file", "memory")))
    yield f"{'' if request.param == 'disk' else 'memory://'}{tmp_path}/out"
    set_access(before)


def rows(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch(
        [pa.array(numbers, pa.int32()), pa.array([f'value "{n}",' for n in numbers])], names=NAMES
    )


def output_of(folder: str, fmt: OutputFormat) -> Output:
    file = f"{folder}/all{fmt.suffix}"
    return Output(url=parts_folder(file, "ul-1"), file=file, format=fmt, listed=False)


def written(output: Output, units: int = 3) -> list[PartInfo]:
    """Write two parts for each unit, of 5 rows each."""
    parts: list[PartInfo] = []
    for unit in range(units):
        known = {"job": "ul-1", "unit": unit, "attempt": "a"}
        files = PartSet(output.url, output.part_format, NAMES, TYPES, rows_max=5, **known)  # type: ignore[arg-type]
        files.write(rows(10 * unit, 10))
        files.roll()
        parts += files.parts
    return parts


def content(output: Output) -> bytes:
    folder, _, name = output.file.rpartition("/")
    data = open_folder(folder).read(name)
    assert data is not None
    return data


def read(output: Output) -> list[tuple[int, str]]:
    """Return the rows of the file, read without our own code."""
    data, fmt = content(output), output.format
    if fmt.kind == "parquet":
        table = pq.read_table(pa.BufferReader(data))
        return [(row["k"], row["v"]) for row in table.to_pylist()]
    if fmt.compression in _LIBRARIES:
        text = _LIBRARIES[fmt.compression].decompress(data).decode()
    elif fmt.compression != "none":
        opened = DECOMPRESSORS[Path(output.file).suffix](pa.BufferReader(data))
        text = opened.read(1 << 20).decode()
    else:
        text = data.decode("utf-8-sig")
    if fmt.kind == "jsonl":
        lines = json.loads(text) if fmt.json_layout else map(json.loads, text.splitlines())
        return [(row["k"], row["v"]) for row in lines]
    found = list(csv.reader(text.splitlines()))
    if fmt.header:
        assert found.pop(0) == NAMES
    return [(int(k), v) for k, v in found]


@pytest.mark.parametrize("case", FORMATS)
def test_the_file_has_all_rows_in_the_order_of_the_parts(folder: str, case: str) -> None:
    output = output_of(folder, FORMATS[case])
    parts = written(output)
    assert not file_exists(output.file)
    joined = join_parts(output, parts, NAMES, TYPES)
    assert read(output) == [(n, f'value "{n}",') for n in range(30)]
    assert (joined.rows, joined.bytes) == (30, len(content(output)))
    remove_parts(output)
    assert open_folder(output.url).sizes() == {}


@pytest.mark.parametrize("case", FORMATS)
def test_a_file_without_rows_is_a_file_of_its_format(tmp_path: Path, case: str) -> None:
    output = output_of(str(tmp_path), FORMATS[case])
    join_parts(output, [], NAMES, TYPES)
    assert read(output) == []
    if output.format.compression not in ("none", "snappy"):
        assert content(output)


def test_an_older_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    output = output_of(str(tmp_path), FORMATS["csv"])
    Path(output.file).write_text("older\n")
    parts = written(output)
    gone = open_folder(output.url)
    gone.remove(parts[3].name)
    with pytest.raises(OutputUnusable, match="1 of 6 files that workers wrote are not what"):
        join_parts(output, parts, NAMES, TYPES)
    assert Path(output.file).read_text() == "older\n"
    assert len(list(Path(output.url).iterdir())) == 5, "nothing is lost"


def test_what_a_crash_left_is_finished_by_the_next_command(tmp_path: Path) -> None:
    output = output_of(str(tmp_path), FORMATS["csv"])
    parts = written(output)
    joined = join_parts(output, parts, NAMES, TYPES)
    # Given a command that died while it removed the parts
    open_folder(output.url).remove(parts[0].name)
    assert join_parts(output, parts, NAMES, TYPES) == joined
    remove_parts(output)
    assert not Path(output.url).exists()
    remove_parts(output)
    assert read(output) == [(n, f'value "{n}",') for n in range(30)]


def test_parts_without_a_finished_file_are_kept(tmp_path: Path) -> None:
    output = output_of(str(tmp_path), FORMATS["csv"])
    parts = written(output)
    remove_parts(output)
    assert len(list(Path(output.url).iterdir())) == len(parts)

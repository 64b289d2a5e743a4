"""Footers: the figures that pyarrow has, and files that would end its process refused in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import SourceCorrupt
from ringhaul.formats import footer_kernels, parquet_walk
from ringhaul.formats.parquet_footer import Footer, Stored, read_footer
from ringhaul.formats.parquet_read import parquet_errors, read_batches, row_groups
from ringhaul.formats.pieces import Position
from ringhaul.sources.files import open_parquet
from ringhaul.sources.find import find_sources
from ringhaul.storage.access import SCHEMES, Access, access, set_access
from tests.arrows import ROOT
from tests.cases import each
from tests.unit.formats.parquet_files import (
    WRITING,
    encrypted,
    footer_of,
    in_footer,
    tables,
    written,
)


def footer(data: bytes) -> Footer:
    return read_footer(Stored(lambda at, size: data[at : at + size], len(data)))


def read(path: Path | str, names: list[str]) -> pa.Table:
    """Return some columns of a file as a load reads them."""
    (source,) = find_sources([str(path)])
    with open_parquet(source) as opened:
        groups = list(row_groups(opened.footer, 0))
    blocks = []
    for group in groups:
        start = Position(group.number, 0, 1)
        with open_parquet(source, group.number, names) as file, parquet_errors(source.path):
            blocks += read_batches(file, names, size_bytes=1, start=start, block_bytes=1 << 20)
    return pa.Table.from_batches([block.batch for block in blocks])


@each("options", WRITING, ids=lambda options: "-".join(options))
@each("number", [0, 1])
def test_a_footer_has_the_figures_of_pyarrow(number: int, options: dict[str, object]) -> None:
    data = written(tables()[number], **options)
    found, metadata = footer(data), pq.read_metadata(pa.BufferReader(data))
    assert (found.rows_count, found.groups_count) == (metadata.num_rows, metadata.num_row_groups)
    for group in range(metadata.num_row_groups):
        about = metadata.row_group(group)
        assert found.rows_of(group) == about.num_rows
        chunks = [about.column(column) for column in range(about.num_columns)]
        assert found.stored_bytes(group) == sum(chunk.total_compressed_size for chunk in chunks)
        for column, theirs in enumerate(chunks):
            ours = found.chunk(group, column)
            data_start = theirs.data_page_offset
            theirs_as_ours = (
                theirs.path_in_schema,
                theirs.physical_type,
                theirs.compression.replace("LZ4", "LZ4_RAW"),
                theirs.num_values,
                theirs.total_uncompressed_size,
                theirs.total_compressed_size,
                min(theirs.dictionary_page_offset or data_start, data_start),
                any("DELTA" in name for name in theirs.encodings),
            )
            assert tuple(ours) == theirs_as_ours
            assert found.spans(group)[column] == (ours.start, ours.stored_bytes)


def test_the_compiled_walk_is_the_same_walk() -> None:
    """Also for each footer cut short, and with each byte replaced."""
    data = written(tables()[1], row_group_size=20)
    start, end = footer_of(data)
    whole = data[start:end]
    columns, groups = pq.read_metadata(pa.BufferReader(data)).num_columns, 2
    cases = [whole, *(whole[:at] for at in range(0, len(whole), 7))]
    for at in range(0, len(whole), 3):
        for byte in (0, 0x19, 0x7F, 0xFF):
            cases.append(whole[:at] + bytes([byte]) + whole[at + 1 :])
    ends = set()
    for case in cases:
        lists = [0] * groups, [[0] * parquet_walk.WIDTH for _ in range(groups * columns)]
        stack = [[0] * 5 for _ in range(parquet_walk.DEPTH_MAX)]
        arrays = tuple(np.zeros_like(np.array(each, np.int64)) for each in (*lists, stack))
        at = parquet_walk.walk_footer(case, *lists, stack)
        assert footer_kernels.walk_footer(np.frombuffer(case, np.uint8), *arrays) == at
        for ours, compiled in zip(lists, arrays, strict=False):
            assert np.array(ours).tolist() == compiled.tolist()
        ends.add(at)
    assert {parquet_walk.DAMAGED, len(whole)} <= ends


def test_footers_of_many_groups_are_read(tmp_path: Path) -> None:
    table = pa.table({f"c{n}": np.arange(300) for n in range(40)})
    found = footer(written(table, row_group_size=3))
    assert (found.groups_count, found.rows_of(99), len(found.paths)) == (100, 3, 40)
    with pytest.raises(pa.ArrowInvalid, match="no row group 100"):
        found.rows_of(100)


def test_other_columns_of_a_file_with_an_encrypted_one_are_read(tmp_path: Path) -> None:
    table = tables()[0].rename_columns(["id", "secret", "l", "m"])
    path = tmp_path / "f.parquet"
    path.write_bytes(encrypted(table, "secret", plaintext_footer=True))
    assert read(path, ["id", "l", "m"]).equals(table.select(["id", "l", "m"]))
    with pytest.raises(SourceCorrupt, match=r"f\.parquet: column secret is encrypted, which .*"):
        read(path, ["id", "secret"])


def test_an_encrypted_footer_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(encrypted(tables()[0], "v", plaintext_footer=False))
    with pytest.raises(SourceCorrupt, match=r"f\.parquet: its footer is encrypted") as error:
        read(path, ["id"])
    assert "cut short" not in str(error.value)


@pytest.mark.parametrize("what", ["type", "codec"])
def test_an_unknown_number_in_a_footer_is_refused_for_its_column(tmp_path: Path, what: str) -> None:
    # Given each file in which one byte of the footer gives a column the type or the codec 49
    data = written(pa.table({"id": [1, 2], "v": ["a", "b"]}), compression="snappy")
    path = tmp_path / "f.parquet"
    start, end = footer_of(data)
    seen = set()
    for place in range(start, end):
        path.write_bytes(data[:place] + bytes([98]) + data[place + 1 :])  # 49 in Thrift
        for name, other in (("id", "v"), ("v", "id")):
            try:
                read(path, [name])
            except SourceCorrupt as error:
                if f"f.parquet: column {name} has the unknown {what} 49" in str(error):
                    # Then the other column is read
                    assert read(path, [other]).num_rows == 2
                    seen.add(name)
    assert seen == {"id", "v"}


def test_a_name_that_is_not_utf_8_is_refused_with_the_file(tmp_path: Path) -> None:
    data = written(pa.table({"id": [1], "name": ["a"]}), store_schema=False)
    path = tmp_path / "f.parquet"
    path.write_bytes(in_footer(data, b"name", b"n\xe4me"))
    with pytest.raises(SourceCorrupt, match=r"f\.parquet: the column name b'n\\xe4me' is not UTF"):
        read(path, ["id"])


@pytest.mark.parametrize("where", ["file", "memory"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_flipped_bit_in_a_page_is_noticed(tmp_path: Path, where: str, version: str) -> None:
    table = pa.table({"id": np.arange(100), "n": np.full(100, 300, np.int64)})
    data = written(
        table,
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
        data_page_version=version,
    )
    start, _ = footer_of(data)
    at = data.index((300).to_bytes(8, "little") * 50)
    flipped = data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :]
    assert at < start
    if where == "memory":
        known = access()
        set_access(Access(schemes=(*SCHEMES, "memory")))
        try:
            store = fsspec.filesystem("memory")
            store.pipe("/crc/whole.parquet", data)
            store.pipe("/crc/flipped.parquet", flipped)
            check_flipped("memory://crc/", table)
        finally:
            set_access(known)
        return
    (tmp_path / "whole.parquet").write_bytes(data)
    (tmp_path / "flipped.parquet").write_bytes(flipped)
    check_flipped(f"{tmp_path}/", table)


def check_flipped(folder: str, table: pa.Table) -> None:
    assert read(f"{folder}whole.parquet", ["id", "n"]).equals(table)
    assert read(f"{folder}flipped.parquet", ["id"]).num_rows == 100
    with pytest.raises(SourceCorrupt, match=r"flipped\.parquet: .*CRC checksum"):
        read(f"{folder}flipped.parquet", ["id", "n"])


_MUTATIONS = """
import random, sys
from pathlib import Path
from ringhaul.errors import SourceCorrupt
from ringhaul.sources.files import open_parquet
from ringhaul.sources.find import find_sources
from tests.unit.formats.parquet_files import WRITING, encrypted, mutated, tables, written
from tests.unit.formats.test_parquet_footer import read

path, refused = Path(sys.argv[1]), 0
files = [written(table, **options) for table in tables() for options in WRITING]
files.append(encrypted(tables()[0], "v", plaintext_footer=True))
for number in range(500):
    noise = random.Random(number)
    path.write_bytes(mutated(noise, noise.choice(files)))
    print(number, file=sys.stderr, flush=True)
    try:
        (source,) = find_sources([str(path)])
        with open_parquet(source) as file:
            names = file.schema_arrow.names
        if len(set(names)) == len(names):
            read(path, names)
    except SourceCorrupt:
        refused += 1
print(refused)
"""


def test_a_damaged_footer_never_ends_the_process(tmp_path: Path) -> None:
    """Of 1,500 such files, 76 ended it when pyarrow was asked about chunks."""
    done = subprocess.run(
        [sys.executable, "-c", _MUTATIONS, str(tmp_path / "f.parquet")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-1000:]
    assert 250 < int(done.stdout) < 500

"""Sources are split into units: in order, without gaps, with ordinals across files."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from producer.plan.units import split_sources
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.unit import TO_THE_END, UNCOUNTED, LoadUnit
from tests.loads import load_job, load_source, table_schema

TABLE = table_schema({"id": "int"}, ["id"])
HEADER = Position(3, 0, 2)  # after "id\n"


def source(path: Path, text: bytes, *, whole: bool = False, start: Position = HEADER) -> LoadSource:
    path.write_bytes(text)
    return load_source(["id"], path=str(path), size_bytes=len(text), whole=whole, start=start)


def job(*sources: LoadSource, **options: object) -> LoadJob:
    return load_job(TABLE, *sources, **({"unit_bytes": 5} | options))


def records(first: int, last: int) -> bytes:
    """`id` and a record of three bytes for each number."""
    return b"id\n" + b"".join(b"%02d\n" % number for number in range(first, last))


def test_files_are_split_in_turn_and_ordinals_continue(tmp_path: Path) -> None:
    one = source(tmp_path / "1.csv", records(0, 5))
    two = source(tmp_path / "2.csv", records(5, 8))
    assert list(split_sources(job(one, two))) == [
        LoadUnit(0, 3, 6, 0, 2, 2),
        LoadUnit(0, 9, 6, 2, 4, 2),
        LoadUnit(0, 15, 3, 4, 6, 1),
        LoadUnit(1, 3, 6, 5, 2, 2),
        LoadUnit(1, 9, 3, 7, 4, 1),
    ]


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_compressed_file_is_one_unit_and_its_records_are_counted_for_the_next(
    tmp_path: Path, suffix: str
) -> None:
    # Given a compressed file between two plain ones, and another at the end
    packed = COMPRESSORS[suffix](records(2, 40))
    sources = [
        source(tmp_path / "1.csv", records(0, 2)),
        source(tmp_path / f"2.csv{suffix}", packed, whole=True),
        source(tmp_path / "3.csv", records(40, 41)),
        source(tmp_path / f"4.csv{suffix}", packed, whole=True),
    ]
    # Then each compressed file is one unit, with an unknown count, after its own header
    assert list(split_sources(job(*sources))) == [
        LoadUnit(0, 3, 6, 0, 2, 2),
        LoadUnit(1, 3, TO_THE_END, 2, 2, UNCOUNTED),
        LoadUnit(2, 3, 3, 40, 2, 1),
        LoadUnit(3, 3, TO_THE_END, 41, 2, UNCOUNTED),
    ]


def test_a_compressed_files_unit_comes_before_the_file_is_counted(tmp_path: Path) -> None:
    # Given a broken archive before another file
    broken = source(tmp_path / "1.csv.gz", b"no archive", whole=True)
    units = split_sources(job(broken, source(tmp_path / "2.csv", records(0, 1))))
    # Then its unit comes first, so that a worker can start
    assert next(units).source == 0


def test_only_units_with_wanted_records_are_made(tmp_path: Path) -> None:
    one = source(tmp_path / "1.csv", records(0, 5))
    two = source(tmp_path / "2.csv", records(5, 9))
    # When the first 3 records are skipped and 3 are loaded
    units = list(split_sources(job(one, two, ordinal_first=3, ordinal_end=6)))
    # Then only units that hold records 3, 4 and 5 are left, numbered as in the whole input
    assert units == [
        LoadUnit(0, 9, 6, 2, 4, 2),
        LoadUnit(0, 15, 3, 4, 6, 1),
        LoadUnit(1, 3, 6, 5, 2, 2),
    ]


def test_bounds_of_each_file_count_from_its_first_record(tmp_path: Path) -> None:
    one = source(tmp_path / "1.csv", records(0, 9))
    packed = source(tmp_path / "2.csv.gz", gzip.compress(records(9, 40)), whole=True)
    two = source(tmp_path / "3.csv", records(40, 45))
    short = source(tmp_path / "4.csv", records(45, 46))
    # When one record of each file is skipped and two are loaded
    bounds = {"ordinal_first": 1, "ordinal_end": 3, "bounds_per_source": True}
    units = list(split_sources(job(one, packed, two, short, **bounds)))
    # Then only their units are made, and know where their file begins; what follows them is not
    # counted, and ordinals ascend all the same
    assert units == [
        LoadUnit(0, 3, 6, 0, 2, 2),
        LoadUnit(0, 9, 6, 2, 4, 2),
        LoadUnit(1, 3, TO_THE_END, 4, 2, UNCOUNTED, 4),
        LoadUnit(2, 3, 6, 35, 2, 2, 35),
        LoadUnit(2, 9, 6, 37, 4, 2, 35),
    ]
    assert [LoadUnit.unpack(unit.pack()) for unit in units] == units


def test_of_a_long_compressed_file_no_more_is_counted_than_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("producer.plan.units.COUNT_BYTES", 30)
    packed = source(tmp_path / "1.csv.gz", gzip.compress(records(0, 99)), whole=True)
    two = source(tmp_path / "2.csv", records(0, 2))
    bounds = {"ordinal_end": 4, "bounds_per_source": True}
    *_, last = split_sources(job(packed, two, **bounds))
    assert last == LoadUnit(1, 3, 6, 11, 2, 2, 11)


def test_files_after_the_last_wanted_record_are_not_opened(tmp_path: Path) -> None:
    one = source(tmp_path / "1.csv", records(0, 5))
    gone = load_source(["id"], path=str(tmp_path / "gone.csv"), size_bytes=9)
    assert len(list(split_sources(job(one, gone, ordinal_end=5)))) == 3


def test_blank_lines_and_comments_alone_make_no_unit(tmp_path: Path) -> None:
    text = b"id\n\n\n# none\n01\n\n\n\n\n\n02\n# end\n"
    dialect = CsvDialect(comment="#")
    units = list(split_sources(job(source(tmp_path / "1.csv", text), dialect=dialect)))
    assert sum(unit.records_count for unit in units) == 2
    assert all(unit.records_count > 0 for unit in units)
    only_blank = source(tmp_path / "2.csv", b"id\n\n\n")
    assert list(split_sources(job(only_blank))) == []


@pytest.mark.parametrize("unit_bytes", [1, 4, 7, 1000])
def test_whatever_the_unit_size_units_tile_the_records(tmp_path: Path, unit_bytes: int) -> None:
    text = b'id\n"a\nb"\r\n01\n"""\n"\r\n\n02\n"x"'
    one = source(tmp_path / "1.csv", text)
    units = list(split_sources(job(one, unit_bytes=unit_bytes)))
    position = 3
    for unit in units:
        assert unit.offset_bytes == position
        position += unit.length_bytes
    assert position == len(text)
    assert sum(unit.records_count for unit in units) == 5
    ordinals = [unit.first_ordinal for unit in units]
    assert ordinals == [sum(u.records_count for u in units[:n]) for n in range(len(units))]

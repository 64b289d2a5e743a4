"""The census bench's files and figures, without a server."""

from __future__ import annotations

import random
import threading
import zipfile
from pathlib import Path

from bench.census import GEO, GEO_CHARACTERS, GEO_FIELDS, geo_layout, geo_lines, zip_file
from bench.census_ways import Meter, Records, parse_geo
from ringhaul.formats.fixed_layout import parse_layout


def test_a_geographic_record_has_its_fields_at_the_published_places(tmp_path: Path) -> None:
    (line,) = geo_lines(1, random.Random(1))
    assert len(line) == GEO_CHARACTERS + 1
    row = dict(zip(GEO.columns, parse_geo(line), strict=True))
    assert row["logrecno"] == 1 and row["stusab"] == "NY" and row["state"] == "36"
    assert row["name"] == "Census Tract 1, Block Group 1"
    assert 40 <= row["intptlat"] <= 45 and -79 <= row["intptlon"] <= -72
    layout = parse_layout(geo_layout(tmp_path).read_bytes())
    assert {field.name: (field.first, field.last) for field in layout} == GEO_FIELDS
    # Nothing is outside of the fields that are read
    rest = list(line.rstrip("\n"))
    for first, last in GEO_FIELDS.values():
        rest[first - 1 : last] = [" "] * (last - first + 1)
    assert not "".join(rest).strip()


def test_an_archive_is_written_once_and_has_the_records(tmp_path: Path) -> None:
    path = zip_file(tmp_path, GEO, 5000)
    before = path.stat().st_mtime_ns
    assert zip_file(tmp_path, GEO, 5000).stat().st_mtime_ns == before
    with zipfile.ZipFile(path) as archive:
        assert [info.file_size for info in archive.infolist()] == [5000 * (GEO_CHARACTERS + 1)]


def test_rows_count_before_or_after_the_queue_was_filled() -> None:
    filled = threading.Event()
    meter = Meter(filled)
    meter.add(3)
    filled.set()
    meter.add(4)
    meter.add(5)
    assert [part.rows for part in meter.parts()] == [3, 9]
    assert all(part.work_s >= 0 for part in meter.parts())
    never = Meter(threading.Event())
    never.add(3)
    assert [part.rows for part in never.parts()] == [3, 0]


def test_workers_get_the_first_records_and_then_nothing() -> None:
    class Queue:
        def __init__(self) -> None:
            self.numbers = iter(range(100))

        def get(self) -> tuple[int]:
            return (next(self.numbers),)

        get_nowait = get

    records = Records(Queue(), 3)
    assert [records.get(), records.get_nowait(), records.get()] == [(0,), (1,), (2,)]
    assert records.get() is None and records.get_nowait() is None

"""Parts appear whole or not at all, and attempts do not collide."""

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.output.parts import PartInfo, PartSet, part_name, remove_orphans
from ringhaul.storage.access import Access, access, set_access
from ringhaul.storage.folders import LocalFolder, open_folder
from tests.limits import files_up_to

NAMES, TYPES = ["k", "v"], [CqlType("int"), CqlType("text")]
FORMATS = [OutputFormat(), OutputFormat(kind="jsonl"), OutputFormat(kind="parquet")]
COMPRESSED = [OutputFormat(compression=word) for word in ("gzip", "zstd", "bz2", "xz")]


def rows(count: int, first: int = 0) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch(
        [pa.array(numbers, pa.int32()), pa.array([f"value {n}" for n in numbers])], names=NAMES
    )


def part_set(url: object, fmt: OutputFormat = FORMATS[0], **options: Any) -> PartSet:
    known: dict[str, Any] = {"job": "ul-7f3a9c", "unit": 12, "attempt": "a1"} | options
    return PartSet(str(url), fmt, NAMES, TYPES, **known)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(params=["disk", "file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same folder, by a path and by URLs."""
    before = access()
    set_access(Access(schemes=("file", "memory")))
    kind = "" if request.param == "disk" else f"{request.param}://"
    yield f"{kind}{tmp_path}/out"
    set_access(before)


def test_a_part_appears_only_when_it_is_whole(url: str) -> None:
    parts = part_set(url)
    parts.write(rows(3))
    folder = open_folder(url)
    assert not [name for name in folder.sizes() if not name.startswith(".")]
    parts.roll()
    (part,) = parts.parts
    data = folder.read(part.name)
    assert data == b"k,v\n0,value 0\n1,value 1\n2,value 2\n"
    assert part == PartInfo(
        name="part-000012-000000-ul-7f3a9c-a1.csv",
        rows=3,
        bytes=len(data),
        checksum=f"crc32:{zlib.crc32(data):08x}",
    )
    assert folder.sizes() == {part.name: len(data)}
    assert PartInfo.from_json(part.to_json()) == part


def test_parts_roll_at_an_exact_number_of_rows(url: str) -> None:
    parts = part_set(url, rows_max=4, tokens=(-5, 7), first_number=2)
    for first, count in ((0, 3), (3, 6), (9, 0), (9, 1)):
        parts.write(rows(count, first))
    parts.roll()
    parts.roll()
    assert [part.rows for part in parts.parts] == [4, 4, 2]
    assert [part.name[12:18] for part in parts.parts] == ["000002", "000003", "000004"]
    assert {(part.token_after, part.token_to) for part in parts.parts} == {(-5, 7)}
    texts = [open_folder(url).read(part.name) or b"" for part in parts.parts]
    lines = [line for text in texts for line in text.decode().splitlines()]
    assert lines.count("k,v") == 3, "a header in each part"
    assert [line for line in lines if line != "k,v"] == [f"{n},value {n}" for n in range(10)]


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.kind)
def test_parts_roll_at_about_a_number_of_bytes(tmp_path: Path, fmt: OutputFormat) -> None:
    parts = part_set(tmp_path, fmt, bytes_max=10_000)
    for first in range(0, 6000, 2000):
        parts.write(rows(2000, first))
    parts.roll()
    assert sum(part.rows for part in parts.parts) == 6000
    assert len(parts.parts) > 3
    for part in parts.parts:
        assert part.bytes == (tmp_path / part.name).stat().st_size
        assert part.bytes < 13_000


@pytest.mark.parametrize("kind", ["crc32", "sha256"])
@pytest.mark.parametrize("fmt", [*FORMATS, *COMPRESSED], ids=lambda fmt: fmt.suffix)
def test_the_checksum_is_that_of_the_file(tmp_path: Path, fmt: OutputFormat, kind: str) -> None:
    parts = part_set(tmp_path, fmt, checksum=kind)
    parts.write(rows(5000))
    parts.roll()
    data = (tmp_path / parts.parts[0].name).read_bytes()
    crc32, sha256 = f"{zlib.crc32(data):08x}", hashlib.sha256(data).hexdigest()
    assert parts.parts[0].checksum == f"{kind}:{crc32 if kind == 'crc32' else sha256}"
    assert parts.parts[0].name.endswith(fmt.suffix)


def test_no_rows_make_no_part(tmp_path: Path) -> None:
    parts = part_set(tmp_path)
    parts.write(rows(0))
    parts.roll()
    parts.abandon()
    assert parts.parts == [] and names(tmp_path) == []


@pytest.mark.parametrize("fmt", [*FORMATS, *COMPRESSED], ids=lambda fmt: fmt.suffix)
def test_abandoning_leaves_only_whole_parts(tmp_path: Path, fmt: OutputFormat) -> None:
    parts = part_set(tmp_path, fmt, rows_max=5)
    parts.write(rows(8))
    assert len(names(tmp_path)) == 2
    parts.abandon()
    assert names(tmp_path) == [parts.parts[0].name]
    parts.withdraw()
    assert names(tmp_path) == [] and parts.parts == []


def test_attempts_of_one_unit_do_not_collide(url: str) -> None:
    one, other = part_set(url), part_set(url, attempt="b2")
    one.write(rows(3))
    other.write(rows(4))
    other.roll()
    one.roll()
    sizes = open_folder(url).sizes()
    assert len(sizes) == 2
    assert [part.rows for part in one.parts + other.parts] == [3, 4]


def test_parts_are_in_order_by_name_however_many() -> None:
    names = [
        part_name("ul-7f3a9c", unit, number, "a1", OutputFormat())
        for unit in (999, 1000)
        for number in (0, 999, 1000, 9_999, 10_000, 999_999)
    ]
    assert names == sorted(names)


def test_orphans_are_removed_and_nothing_else(url: str) -> None:
    winner, loser, dead = part_set(url), part_set(url, attempt="b2"), part_set(url, attempt="c3")
    for parts in (winner, loser, dead):
        parts.write(rows(2))
    winner.roll()
    loser.roll()
    kept = [winner.parts[0].name]
    folder = open_folder(url)
    strangers = [
        "_manifest.json",
        "notes.txt",
        "part-000012-000000-ul-7f3a9c2-a1.csv",  # another job's
        "part-000012-000000-x-ul-7f3a9c-a1.csv",
        "part-000012-000000-ul-7f3a9c-a1-b2.csv",
        "my-part-000012-000000-ul-7f3a9c-a1.csv",
        "part-000012-000000-ul.7f3a9c-a1.csv",
    ]
    for name in strangers:
        file = folder.create(name)
        file.write(b"precious")
        file.publish()
    removed = remove_orphans(url, "ul-7f3a9c", kept)
    assert loser.parts[0].name in removed and not set(removed) & {*kept, *strangers}
    assert sorted(folder.sizes()) == sorted([*kept, *strangers])
    assert remove_orphans(url, "ul-7f3a9c", kept) == []
    dead.abandon()


def test_a_folder_that_is_not_there_has_no_orphans(tmp_path: Path) -> None:
    assert remove_orphans(str(tmp_path / "none"), "ul-1", []) == []


def test_an_attempt_must_be_a_plain_word(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="letters and digits"):
        part_set(tmp_path, attempt="../x")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nothing://bucket/folder", "nothing:// is not among"),
        ("https://host/folder", "nothing is written to a web server"),
        ("s3://key:sentinel@bucket/folder", "credentials do not belong in a URL"),
    ],
)
def test_unwritable_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        open_folder(url)
    assert "sentinel" not in str(error.value)


def test_an_allowed_url_of_an_unknown_kind_is_refused() -> None:
    before = access()
    set_access(Access(schemes=("nothing",)))
    with pytest.raises(UsageError, match="no such kind of URL"):
        open_folder("nothing://bucket/folder")
    set_access(before)


@pytest.mark.parametrize(
    "fmt",
    [*FORMATS, OutputFormat(kind="parquet", compression="none"), *COMPRESSED],
    ids=lambda fmt: f"{fmt.kind}-{fmt.compression}",
)
def test_a_file_at_its_size_limit_is_an_error(tmp_path: Path, fmt: OutputFormat) -> None:
    parts = part_set(tmp_path, fmt)
    noise = pa.record_batch(
        [
            pa.array(range(20_000), pa.int32()),
            pa.array([os.urandom(20).hex() for _ in range(20_000)]),
        ],
        names=NAMES,
    )
    message = "larger than a file may be"
    with pytest.raises(OutputUnusable, match=message) as caught, files_up_to(100_000):
        for _ in range(20):
            parts.write(noise)
        parts.roll()
    assert str(tmp_path) in str(caught.value)
    parts.abandon()
    assert names(tmp_path) == []


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    opened = os.open

    def on_a_full_disk(path: str, flags: int, mode: int = 0o777) -> int:
        full = path.endswith(".tmp")
        return opened("/dev/full" if full else path, os.O_WRONLY if full else flags, mode)

    monkeypatch.setattr(os, "open", on_a_full_disk)
    parts = part_set(folder)
    with pytest.raises(OutputUnusable, match="no space is left; make room") as caught:
        parts.write(rows(10))
        parts.roll()
    assert str(folder) in str(caught.value)
    parts.abandon()
    assert names(folder) == []


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputUnusable, match=r"out: .*every worker must see the same folder"):
        part_set(tmp_path / "out").write(rows(1))
    with pytest.raises(OutputUnusable):
        part_set(tmp_path / "out" / "deeper").write(rows(1))


def test_removing_and_reading_missing_files(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    folder.remove("nothing")
    assert folder.read("nothing") is None


def test_a_part_of_parquet_has_one_footer(tmp_path: Path) -> None:
    parts = part_set(tmp_path, FORMATS[2])
    parts.write(rows(300_000))
    parts.roll()
    file = pq.ParquetFile(tmp_path / parts.parts[0].name)
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sizes == [131_072, 131_072, 37_856]

"""Headers of Parquet pages: their sizes, which are refused, and which rows fit for sure."""

from __future__ import annotations

import io
import os
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import SourceCorrupt
from ringhaul.formats import parquet_pages, parquet_sure_rows
from ringhaul.formats.parquet_batches import BATCH_ROWS
from ringhaul.formats.parquet_file import Footers
from ringhaul.formats.parquet_footer import Stored, read_footer
from ringhaul.formats.parquet_leaves import Leaf, leaves_of
from ringhaul.formats.parquet_pages import Page, longest_plain, pages, parse_page
from ringhaul.formats.parquet_read import parquet_errors, read_batches
from ringhaul.formats.parquet_sure_rows import PagesTooLarge, SureRows
from ringhaul.formats.parquet_watch import PageWatch
from ringhaul.formats.pieces import Position
from ringhaul.sources.files import open_parquet
from ringhaul.sources.find import find_sources
from ringhaul.storage.access import SCHEMES, Access, access, set_access
from tests.cases import each

MIB = 1 << 20
ROWS = 5000
CODECS = ["none", "snappy", "gzip", "zstd", "brotli", "lz4"]


def table() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "id": numbers,
            "name": [f"name {n}" for n in range(ROWS)],
            "city": [f"city {n % 200}" if n % 7 else None for n in range(ROWS)],
            "tags": [[f"tag {n % 9}"] * (n % 4) for n in range(ROWS)],
            "price": numbers / 7,
        }
    )


def written(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink, data_page_size=10_000, **options)
    return sink.getvalue()


def stored(data: bytes) -> Stored:
    return Stored(lambda at, size: data[at : at + size], len(data))


def leaves(data: bytes, names: list[str] | None = None) -> list[Leaf]:
    footer = read_footer(stored(data))
    names = names or footer.schema.to_arrow_schema().names
    return leaves_of(footer, 0, names)


def pages_of(data: bytes, leaf: Leaf) -> list[Page]:
    end = leaf.start + leaf.stored_bytes
    return list(pages(stored(data).read, leaf.start, end, leaf.values_count))


@each("version", ["1.0", "2.0"])
@each("codec", CODECS)
def test_headers_say_where_pages_are_and_what_they_unpack_to(codec: str, version: str) -> None:
    data = written(compression=codec, data_page_version=version, write_page_checksum=True)
    for leaf in leaves(data):
        found = pages_of(data, leaf)
        assert found[-1].start + found[-1].stored_bytes == leaf.start + leaf.stored_bytes
        # The footer counts headers, too
        headers = leaf.stored_bytes - sum(page.stored_bytes for page in found)
        assert sum(page.unpacked_bytes for page in found) + headers == leaf.plain_bytes
        values = sum(page.values_count for page in found if page.kind != parquet_pages.DICTIONARY)
        assert values == leaf.values_count


@pytest.mark.parametrize("pieces", [1, 7, 100, 5000])
def test_pages_that_are_read_in_pieces_are_all_checked(
    pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = written()
    looked: list[Page] = []
    monkeypatch.setattr(
        parquet_sure_rows.Held, "check", lambda _, path, page, size: looked.append(page)
    )
    watch = PageWatch(leaves(data))
    for at in range(0, len(data), pieces):
        watch.look(at, data[at : at + pieces])
        watch.look(at, data[at : at + pieces])  # as by a reader that was reopened
    assert looked == [page for leaf in leaves(data) for page in pages_of(data, leaf)]


def test_a_damaged_header_is_a_clean_error() -> None:
    data = written(compression="none")
    leaf = leaves(data)[1]
    header = data[leaf.start : pages_of(data, leaf)[0].start]
    # Cut short: there is more to read
    for size in range(len(header)):
        with pytest.raises(IndexError):
            parse_page(header[:size], 0, 0)
    noise = random.Random(1)
    for _ in range(3000):
        spoiled = bytearray(header + noise.randbytes(20))
        spoiled[noise.randrange(len(header))] = noise.randrange(256)
        try:
            page = parse_page(bytes(spoiled), 0, 0)
        except (IndexError, pa.ArrowInvalid):
            continue
        assert min(page.unpacked_bytes, page.stored_bytes, page.values_count) >= 0
    with pytest.raises(pa.ArrowInvalid, match="damaged header"):
        list(pages(lambda at, size: b"\x19\xf8"[:size], 0, 2, 1))
    # Lists in lists in lists
    with pytest.raises(pa.ArrowInvalid, match="damaged header"):
        parse_page(b"\x99" + b"\x19" * 1000, 0, 0)


def plain(values: list[bytes]) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


def test_the_longest_value_of_a_dictionary_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(2)
    unknown = 0
    for _ in range(200):
        monkeypatch.setattr(parquet_pages, "_WINDOW_BYTES", noise.choice([8, 50, 300, 1 << 16]))
        # Given short and long values, some with zero bytes like those of lengths
        most, size_max = noise.choice([0, 2, 255]), noise.choice([1, 5, 40, 300, 1000])
        count = noise.randrange(60)
        values = [
            bytes(noise.choices(range(most + 1), k=noise.randrange(size_max))) for _ in range(count)
        ]
        found = longest_plain(plain(values), noise.choice([count, 1_000_000]))
        unknown += found is None
        assert found in (None, max(map(len, values), default=0))
    assert unknown < 5
    assert longest_plain(plain([uuid.uuid4().bytes] * 9), 9) == 16
    # Many values that must each be looked at are not worth the time
    assert longest_plain(plain([b"", b"\x01\0\0\0"] * 9000), 18_000) is None


def test_ordinary_rows_fit_for_sure_and_long_shared_ones_do_not() -> None:
    data = written()
    some = leaves(data)
    sure = SureRows(stored(data), some, ROWS)
    texts = [leaf for leaf in some if leaf.physical == "BYTE_ARRAY"]
    longest = {leaf.path: sure.longest(leaf, 0) or 0 for leaf in texts}
    assert longest["name"] == len("name 4999") + 4
    assert longest["city"] == len("city 199") + 4
    assert sure.rows(0, ROWS, longest, MIB, MIB) == ROWS
    assert sure.rows(3000, ROWS, longest, MIB, MIB) == ROWS - 3000
    # A value that all rows might have
    assert 0 < sure.rows(3000, ROWS, {**longest, "city": 20_000}, MIB, MIB) * 20_000 <= MIB
    # A value of unknown length
    assert sure.rows(3000, ROWS, {"name": 13}, MIB, MIB) == 0
    assert SureRows(stored(data), some, ROWS).rows(0, ROWS, longest, 1000, MIB) * 8 <= 1000


def test_rows_with_common_prefixes_never_fit_for_sure() -> None:
    data = written(use_dictionary=False, column_encoding={"name": "DELTA_BYTE_ARRAY"})
    assert SureRows(stored(data), leaves(data, ["name"]), ROWS).rows(0, 9, {}, MIB, MIB) == 0
    assert SureRows(stored(data), leaves(data, ["id"]), ROWS).rows(0, 9, {}, MIB, MIB) == 9


def test_a_page_that_says_2_gib_is_refused_unless_the_file_has_a_quarter_of_it() -> None:
    held = parquet_sure_rows.Held(1)
    held.check("t", Page(0, 1 << 30, 1 << 28, 9, 0, 0), 1 << 28)
    with pytest.raises(PagesTooLarge, match="column t has a page of 50,000 bytes that unpacks to"):
        parquet_sure_rows.Held(1).check("t", Page(0, 2**31 - 1, 50_000, 9, 0, 0), 50_000)
    # The stored size in the header counts only up to the size of the file
    with pytest.raises(PagesTooLarge):
        parquet_sure_rows.Held(1).check("t", Page(0, 2**31 - 1, 2**30, 9, 0, 0), 50_000)
    # Many columns: all of them have a page in memory at a time
    held = parquet_sure_rows.Held(40)
    with pytest.raises(PagesTooLarge, match="column 25 has a dictionary"):
        for number in range(40):
            held.check(str(number), Page(2, 10 * MIB, 1000, 9, 0, 0), 1000)


@pytest.fixture
def bomb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A file on disk or behind a URL, with a page of 2 MB in 100 bytes."""
    sink = io.BytesIO()
    rows = {"id": np.arange(8), "t": ["x" * 250_000 + str(n) for n in range(8)]}
    pq.write_table(pa.table(rows), sink, use_dictionary=False, compression="zstd")
    if request.param == "path":
        path = tmp_path / "b.parquet"
        path.write_bytes(sink.getvalue())
        yield str(path)
        return
    before = access()
    set_access(Access(schemes=(*SCHEMES, "memory")))
    store = fsspec.filesystem("memory")
    store.pipe("/pages/b.parquet", sink.getvalue())
    yield "memory://pages/b.parquet"
    store.rm("/pages", recursive=True)
    set_access(before)


@pytest.mark.parametrize("bomb", ["path", "url"], indirect=True)
def test_a_page_that_is_too_large_is_refused_before_it_is_unpacked(
    bomb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = find_sources([bomb])

    def read() -> int:
        with open_parquet(source, 0, ["id", "t"]) as file, parquet_errors(source.path):
            at = Position(0, 0, 1)
            blocks = read_batches(file, ["id", "t"], size_bytes=1, start=at, block_bytes=MIB)
            return sum(block.records_count for block in blocks)

    assert read() == 8
    monkeypatch.setattr(parquet_sure_rows, "HELD_BYTES", MIB)
    monkeypatch.setattr(parquet_sure_rows, "COLUMN_HELD_BYTES", 1000)
    with pytest.raises(SourceCorrupt) as caught:
        read()
    assert "b.parquet: column t has a page of" in str(caught.value)
    assert "unpacks to 2,0" in str(caught.value)
    assert "write_batch_size" in str(caught.value)


def test_pages_are_checked_beside_columns_read_as_dictionary_indices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a text that many rows share, so long that it is read as indices, and a page that is too
    # large after more rows than one batch may have
    path, count = tmp_path / "late.parquet", BATCH_ROWS + 2000
    rows = {
        "t": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["x" * 3000]),
        "u": pa.array(["s"] * (count - 1) + ["y" * 2_000_000]),
    }
    options = {"use_dictionary": ["t"], "compression": "zstd", "store_schema": False}
    pq.write_table(pa.table(rows), path, write_batch_size=100, data_page_size=1000, **options)
    monkeypatch.setattr(parquet_sure_rows, "HELD_BYTES", MIB)
    monkeypatch.setattr(parquet_sure_rows, "COLUMN_HELD_BYTES", 1000)
    (source,) = find_sources([str(path)])
    done = 0
    with (
        open_parquet(source, 0, ["t", "u"]) as file,
        pytest.raises(PagesTooLarge, match="column u"),
    ):
        at = Position(0, 0, 1)
        for block in read_batches(file, ["t", "u"], size_bytes=1, start=at, block_bytes=64 << 10):
            done += block.records_count
    assert 0 < done < count


def test_the_footer_of_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(written())
    footer = read_footer(stored(path.read_bytes()))
    footers = Footers()
    with path.open("rb") as file:
        # A file that was written a moment ago may still change
        footers.keep(file.fileno(), footer)
        assert footers.find(file.fileno()) is None
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        footers.keep(file.fileno(), footer, now=about.st_ctime + 60)
        assert footers.find(file.fileno()) is footer
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
        assert footers.find(file.fileno()) is None

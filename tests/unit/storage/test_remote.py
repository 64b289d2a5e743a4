"""Files behind URLs: finding them, and the requests that read them. The store is fsspec's own."""

import gzip
import io
import threading
from collections.abc import Iterator

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import SourceChanged, SourceMissing, UsageError
from ringhaul.formats import parquet_read
from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.split import Stream
from ringhaul.sources.files import check_unchanged, open_parquet, open_range, open_whole
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import SCHEMES, Access, access, set_access
from ringhaul.storage.lanes import LANES_AHEAD
from ringhaul.storage.remote import AHEAD, FIRST_BYTES, PIECE_BYTES, RemoteReader, list_files
from ringhaul.storage.store_ranges import StoreRanges
from tests.heads import estimate


@pytest.fixture(autouse=True)
def store() -> Iterator[fsspec.AbstractFileSystem]:
    """An empty store in memory."""
    before = access()
    set_access(Access(schemes=(*SCHEMES, "memory")))
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    yield memory
    memory.store.clear()
    set_access(before)


def names(found: list[SourceFile]) -> list[str]:
    return [source.path.removeprefix("memory://") for source in found]


def read_all(stream: Stream, size: int = 1 << 20) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


class Counted:
    """Byte ranges of `data`; records the requests."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.fetched: list[tuple[int, int]] = []
        self.lock = threading.Lock()
        self.at_once = self.at_once_max = 0

    def fetch(self, start: int, end: int) -> bytes:
        with self.lock:
            self.fetched.append((start, end))
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
        assert 0 <= start < end <= len(self.data)
        try:
            return self.data[start:end]
        finally:
            with self.lock:
                self.at_once -= 1

    def close(self) -> None: ...


DATA = bytes(range(256)) * (50 << 12)  # 50 MiB


def test_an_object_a_glob_and_a_folder(store: fsspec.AbstractFileSystem) -> None:
    for path in ("b/2.csv", "b/1.csv", "b/deep/3.jsonl.gz", "b/.x.csv", "b/notes.md", "b/d/"):
        store.pipe(f"/{path}", b"x\n")
    assert names(find_sources(["memory://b/2.csv"])) == ["b/2.csv"]
    assert names(find_sources(["memory://b/*.csv"])) == ["b/1.csv", "b/2.csv"]
    assert names(find_sources(["memory://b/**/*.gz"])) == ["b/deep/3.jsonl.gz"]
    for folder in ("memory://b", "memory://b/"):
        assert names(find_sources([folder])) == ["b/1.csv", "b/2.csv", "b/deep/3.jsonl.gz"]
    assert names(find_sources(["memory://b"], RFC_4180, "jsonl")) == ["b/deep/3.jsonl.gz"]
    twice = find_sources(["memory://b/*.csv", "memory://b/1.csv"])
    assert names(twice) == ["b/1.csv", "b/2.csv"]
    assert [source.whole for source in find_sources(["memory://b"])] == [False, False, True]
    assert [file.size_bytes for file in list_files("memory://b/*.csv")] == [2, 2]


def test_a_glob_takes_the_folders_that_it_matches(store: fsspec.AbstractFileSystem) -> None:
    for path in ("1.csv/_SUCCESS", "1.csv/p0.csv", "2.csv", "3.csv/deep/p1.csv", "4.txt/p.csv"):
        store.pipe(f"/days/{path}", b"x\n")
    found = ["days/1.csv/p0.csv", "days/2.csv", "days/3.csv/deep/p1.csv"]
    assert names(find_sources(["memory://days/*.csv"])) == found
    assert names(find_sources(["memory://days/**/p0*"])) == found[:1]
    store.pipe("/days/5.csv/_SUCCESS", b"")
    with pytest.raises(UsageError, match=r"days/5\.csv/: the directory holds no"):
        find_sources(["memory://days/*.csv"])


def test_an_object_whose_name_looks_like_a_glob(store: fsspec.AbstractFileSystem) -> None:
    store.pipe("/b/x[1].csv", b"1\n")
    store.pipe("/b/x1.csv", b"1\n")
    assert names(find_sources(["memory://b/x[1].csv"])) == ["b/x[1].csv"]


def test_files_in_a_hidden_folder_are_taken_only_by_name(
    store: fsspec.AbstractFileSystem,
) -> None:
    # Given the staging files of a dead job beside its output
    store.pipe("/out/part-0.csv", b"id\n1\n")
    store.pipe("/out/.staging-1/part-0.csv", b"id\n1\n")
    store.pipe("/out/.staging-1/deep/part-0.csv", b"id\n1\n")
    for pattern in ("out/**/*.csv", "out/**", "out/"):
        assert names(find_sources([f"memory://{pattern}"])) == ["out/part-0.csv"]
    with pytest.raises(SourceMissing):
        find_sources(["memory://out/*/part-*.csv"])
    found = find_sources(["memory://out/.staging-*/part-*.csv"])
    assert names(found) == ["out/.staging-1/part-0.csv"]


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("memory://b/none.csv", SourceMissing, "no such object or folder"),
        ("memory://b/*.parquet", SourceMissing, "no object matches"),
        ("memory://b/deep", UsageError, "holds no .csv"),
        ("memory://b/**.csv", UsageError, "entire path component"),
        ("memory://b/x.parquet.gz", UsageError, "compressed within"),
        ("file://elsewhere/x.csv", UsageError, "of this host"),
        ("https://host/days/*.csv", UsageError, "does not list its files"),
        ("https://host/days/x.csv?token=1", UsageError, "holds a secret"),
    ],
)
def test_urls_without_data_are_errors(
    store: fsspec.AbstractFileSystem, url: str, error: type[Exception], message: str
) -> None:
    store.pipe("/b/deep/notes.md", b"x\n")
    store.pipe("/b/x.parquet.gz", b"x\n")
    with pytest.raises(error, match=message):
        find_sources([url])


def test_an_unloaded_folder_gives_the_parts_of_its_manifest(
    store: fsspec.AbstractFileSystem,
) -> None:
    store.pipe("/out/_manifest.json", b'{"parts": [{"name": "p2.csv"}, {"name": "p1.csv"}]}')
    for name in ("p1.csv", "p2.csv", "orphan.csv"):
        store.pipe(f"/out/{name}", b"x\n")
    assert names(find_sources(["memory://out"])) == ["out/p2.csv", "out/p1.csv"]
    store.rm("/out/p1.csv")
    with pytest.raises(SourceMissing, match=r"lists p1\.csv, which is not there"):
        find_sources(["memory://out"])
    store.pipe("/out/_manifest.json", b'{"parts": [{"name": "../b/p2.csv"}]}')
    with pytest.raises(UsageError, match="outside the folder"):
        find_sources(["memory://out"])
    store.pipe("/out/_manifest.json", b'{"of": "something else"}')
    assert names(find_sources(["memory://out"])) == ["out/orphan.csv", "out/p2.csv"]


def test_file_urls_are_paths(tmp_path: object) -> None:
    path = f"{tmp_path}/a b.csv"
    with open(path, "w") as file:
        file.write("x\n")
    assert find_sources([f"file://{tmp_path}/a%20b.csv"]) == find_sources([path])
    assert [file.path for file in find_sources([path])] == [path]


def test_a_range_takes_a_handful_of_requests() -> None:
    ranges = Counted(DATA)
    start, end = 3 << 20, 35 << 20
    with RemoteReader(ranges, len(DATA), end) as reader:
        reader.seek(start)
        found = b""
        while len(found) < end - start:
            found += reader.read(min(1 << 20, end - start - len(found)))
    assert found == DATA[start:end]
    assert sorted(ranges.fetched) == [
        (at, min(at + PIECE_BYTES, end)) for at in range(start, end, PIECE_BYTES)
    ]
    assert len(ranges.fetched) == 4


def test_reading_the_start_does_not_fetch_the_whole_file() -> None:
    ranges = Counted(DATA)
    with RemoteReader(ranges, len(DATA)) as reader:
        reader.read(64 << 10)
    assert ranges.fetched == [(0, FIRST_BYTES)]


def test_sequential_reads_fetch_growing_pieces_ahead() -> None:
    ranges = Counted(DATA)
    with RemoteReader(ranges, len(DATA)) as reader:
        assert read_all(reader, 64 << 10) == DATA
        assert reader.read(10) == b""
    fetched = sorted(ranges.fetched)
    assert [end for _, end in fetched] == [start for start, _ in fetched[1:]] + [len(DATA)]
    sizes = [end - start for start, end in fetched]
    assert sizes[:4] == [FIRST_BYTES, FIRST_BYTES * 4, FIRST_BYTES * 16, PIECE_BYTES]
    assert len(sizes) == 9 and max(sizes) == PIECE_BYTES


def test_the_number_of_prefetches_is_bounded() -> None:
    ranges = Counted(DATA)
    with RemoteReader(ranges, len(DATA), len(DATA)) as reader:
        reader.read(1)
        assert len(ranges.fetched) <= AHEAD + 1


def test_random_reads_fetch_little_else() -> None:
    ranges = Counted(DATA)
    with RemoteReader(ranges, len(DATA), 0) as reader:
        assert reader.seek(-100, io.SEEK_END) == len(DATA) - 100
        assert reader.read(1000) == DATA[-100:]
        reader.seek(10 << 20)
        assert reader.read(3 << 20) == DATA[10 << 20 : 13 << 20]
        reader.seek(10 << 20)
        assert reader.read(5) == DATA[10 << 20 : (10 << 20) + 5]
    assert ranges.fetched == [(len(DATA) - 100, len(DATA)), (10 << 20, 13 << 20)]


def test_an_error_of_a_prefetch_is_raised_when_it_is_read() -> None:
    class Broken(Counted):
        def fetch(self, start: int, end: int) -> bytes:
            if start >= PIECE_BYTES:
                raise SourceMissing("gone")
            return super().fetch(start, end)

    with RemoteReader(Broken(DATA), len(DATA), len(DATA)) as reader:
        assert len(reader.read(PIECE_BYTES)) == PIECE_BYTES
        with pytest.raises(SourceMissing, match="gone"):
            reader.read(1)


def test_a_range_and_a_compressed_file(store: fsspec.AbstractFileSystem) -> None:
    store.pipe("/b/x.csv", DATA)
    store.pipe("/b/x.csv.gz", gzip.compress(b"a,b\n" * 1000))
    plain, packed = find_sources(["memory://b/*"])
    with open_range(plain, 5, 9 << 20) as stream:
        assert read_all(stream) == DATA[5 : 5 + (9 << 20)]
    with open_whole(packed, RFC_4180) as stream:
        assert read_all(stream) == b"a,b\n" * 1000
    assert estimate(packed).bound == 1001
    (wide,) = find_sources(["memory://b/x.csv"], CsvDialect(encoding="utf-16"))
    assert wide.whole


def test_a_changed_file_is_detected(store: fsspec.AbstractFileSystem) -> None:
    store.pipe("/b/x.csv", b"1\n")
    (source,) = find_sources(["memory://b/x.csv"])
    check_unchanged(source)
    with pytest.raises(SourceChanged, match="was replaced"):
        check_unchanged(source._replace(version="another"))
    store.pipe("/b/x.csv", b"1\n2\n")
    with pytest.raises(SourceChanged, match="4 bytes now and was 2"):
        check_unchanged(source)
    store.rm("/b/x.csv")
    with pytest.raises(SourceChanged, match="is gone"):
        check_unchanged(source)


@pytest.fixture
def request_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size in bytes of each request to the store."""
    found: list[int] = []
    fetch = StoreRanges.fetch

    def counted(self: StoreRanges, start: int, end: int) -> bytes:
        found.append(end - start)
        return fetch(self, start, end)

    monkeypatch.setattr(StoreRanges, "fetch", counted)
    return found


THIRTY = pa.table({f"c{n}": range(n, n + 300_000) for n in range(30)})


def read_group(store: fsspec.AbstractFileSystem, columns: int) -> int:
    """Read some columns of the second of three row groups of `THIRTY`; the bytes of all."""
    buffer = io.BytesIO()
    pq.write_table(THIRTY, buffer, row_group_size=100_000, compression="none", use_dictionary=False)
    store.pipe("/b/x.parquet", buffer.getvalue())
    (source,) = find_sources(["memory://b/x.parquet"])
    wanted = THIRTY.column_names[:columns]
    with open_parquet(source, 1, wanted) as file:
        batches = list(file.iter_batches(row_groups=[1], columns=wanted, use_threads=False))
    assert pa.Table.from_batches(batches).equals(THIRTY.select(wanted).slice(100_000, 100_000))
    return len(buffer.getvalue()) // 3


@pytest.mark.parametrize("columns", [30, 2])
def test_a_row_group_is_read_without_the_rest_of_the_file(
    store: fsspec.AbstractFileSystem, request_sizes: list[int], columns: int
) -> None:
    group_bytes = read_group(store, columns)
    if columns == 30:
        assert len(request_sizes) == 4 and sum(request_sizes) < group_bytes + (
            1 << 20
        )  # the footer, three pieces
    else:
        assert sum(request_sizes) < group_bytes // 10


def test_a_large_row_group_is_not_held_whole(
    store: fsspec.AbstractFileSystem, request_sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a row group of 24 MB, and a memory limit of half of that
    monkeypatch.setattr(parquet_read, "HELD_BYTES", 12 << 20)
    monkeypatch.setattr(parquet_read, "COLUMN_BYTES", 256 << 10)
    group_bytes = read_group(store, 30)
    # Then each column is read in three pieces, so that one of each and those ahead fit; none twice
    assert max(request_sizes[1:]) <= (12 << 20) // (30 + LANES_AHEAD)
    assert len(request_sizes) == 1 + 3 * 30
    assert sum(request_sizes) < group_bytes + (1 << 20)


def test_columns_of_a_large_row_group_are_requested_concurrently(
    store: fsspec.AbstractFileSystem, request_sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a group that is not kept whole, and a store that answers no request until there are
    # as many as should be in flight (the footer's, at the end of the file, is alone)
    monkeypatch.setattr(parquet_read, "HELD_BYTES", 12 << 20)
    all_there = threading.Barrier(LANES_AHEAD + 1, timeout=60)
    first = iter(range(LANES_AHEAD + 1))
    fetch = StoreRanges.fetch

    def waited(self: StoreRanges, start: int, end: int) -> bytes:
        if len(request_sizes) and next(first, None) is not None:
            all_there.wait()
        return fetch(self, start, end)

    monkeypatch.setattr(StoreRanges, "fetch", waited)
    # Then the read completes
    read_group(store, 30)
    assert all_there.broken is False and next(first, None) is None

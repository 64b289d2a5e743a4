"""A plan opens each of its sources once, whatever it asks, and holds little of them."""

from __future__ import annotations

import gzip
import io
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from config.settings import load_settings
from producer.plan import heads as plan_heads
from producer.plan.dialect_warnings import dialect_warnings
from producer.plan.dry_run import dry_run_json
from producer.plan.files import each_file
from producer.plan.heads import Heads
from producer.plan.json_layout import with_layout
from producer.plan.new_table import plan_new_table
from producer.plan.sources import plan_sources
from producer.plan.titles import with_separator
from producer.request.load import LoadDraft, load_draft
from ringhaul.errors import SourceCorrupt
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import Stream
from ringhaul.records.job import LoadSource
from ringhaul.sources import beginning
from ringhaul.sources.beginning import Beginning
from ringhaul.sources.estimate import Estimate
from ringhaul.sources.files import open_parquet, open_stored, open_whole
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import Access, access, set_access
from tests.loads import load_job, table_schema
from tests.options import parse_options
from tests.web_server import WebServer, running_web_server

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text"}, ["id"])
ROWS = [(number, number * 7, f"note {number}") for number in range(200)]
CSV = "id,n,note\n" + "".join(f"{one},{n},{note}\n" for one, n, note in ROWS)
JSON = "".join(f'{{"id": {one}, "total": {n}, "at": 1700000000}}\n' for one, n, _ in ROWS)
TITLES = "sep=;\nReport of May\n\nid;n;note\n" + "".join(f"{a};{b};{c}\n" for a, b, c in ROWS)
FIXED = "".join(f"{one:>5}{n:>7}{note:<12}\n" for one, n, note in ROWS)


def parquet(**options: bool) -> bytes:
    buffer = io.BytesIO()
    notes = [random.Random(number).randbytes(40).hex() for number in range(5000)]
    table = pa.table({"id": range(len(notes)), "note": notes})
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


#: Name of a file -> its bytes, and the options of its load.
LOADS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "header.csv": (CSV.encode(), ()),
    "latin.csv": (CSV.encode("latin-1"), ("--encoding", "latin-1")),
    "wide.csv": (CSV.encode("utf-16"), ("--encoding", "utf-16")),
    "titles.csv": (TITLES.encode(), ("--header-at", "auto")),
    "numbered.csv": (TITLES.encode(), ("--header-at", "4")),
    "behind.csv": (CSV.encode(), ("--skip-rows", "20")),
    "bare.csv": (
        CSV.partition("\n")[2].encode(),
        ("--no-header", "--mapping", "0=id,1=n", "--skip-rows", "20"),
    ),
    "packed.csv.gz": (gzip.compress(CSV.encode()), ()),
    "mapped.jsonl": (
        JSON.encode(),
        ("--mapping", "id=id,total=n", "--timestamp-field", "at"),
    ),
    "array.json": (
        ("[" + JSON.strip().replace("\n", ",") + "]").encode(),
        ("--skip-columns", "total,at"),
    ),
    "packed.jsonl.gz": (gzip.compress(JSON.encode()), ("--mapping", "id=id,total=n")),
    "columns.txt": (
        FIXED.encode(),
        ("--format", "fixed", "--columns-at", "id:1-5,n:6-12,note:13-24"),
    ),
    "columns.parquet": (parquet(), ()),
    "indexed.parquet": (parquet(write_page_index=True), ()),
}
NEW = ("--create-table", "--primary-key", "id")


def asked(path: str, *arguments: str) -> tuple[list[LoadSource], list[Estimate]]:
    """Ask what the plan of a load asks, in the order of the command, with a dry run."""
    options = parse_options("load", path, "-t", TABLE.name, *arguments)
    request = load_draft(options, load_settings())
    files = find_sources([path], request.dialect, request.file_format)
    with Heads(files) as heads:
        return ask(heads, request)


def ask(heads: Heads, request: LoadDraft) -> tuple[list[LoadSource], list[Estimate]]:
    request = with_separator(request, heads)
    request, _ = with_layout(request, heads)
    table = plan_new_table(request, heads).table.schema if request.create_table else TABLE
    sources = [source for source in plan_sources(request, heads, table) if source is not None]
    estimates = each_file(
        heads.files,
        lambda file: (
            Estimate(heads[file].rows_count, 0)
            if file.path.endswith("parquet")
            else heads[file].estimate(request.dialect)
        ),
    )
    dialect_warnings(request, heads, sources, table)
    job = load_job(
        table,
        *sources,
        dialect=request.dialect,
        text=request.text,
        ordinal_first=request.skip_rows,
    )
    if not any(source.format == "parquet" for source in sources):  # its sample is in other places
        shown = dry_run_json(job, heads, 1)
        assert shown["samples"][0]["rows"], shown["samples"]
    return sources, estimates


@pytest.fixture
def server() -> Iterator[WebServer]:
    before = access()
    set_access(Access(private_addresses=True))
    try:
        with running_web_server() as running:
            yield running
    finally:
        set_access(before)


def contents(server: WebServer) -> dict[str, list[str]]:
    """Return the requests for the content of each file: other ones ask for the first byte, to see
    its size and version."""
    found: dict[str, list[str]] = {}
    for name, wanted in server.requests:
        if wanted != "bytes=0-0":
            found.setdefault(name, []).append(wanted)
    return found


@pytest.mark.parametrize("new", [(), NEW], ids=["", "create-table"])
@pytest.mark.parametrize("name", LOADS)
def test_a_plan_requests_a_file_once(server: WebServer, name: str, new: tuple[str, ...]) -> None:
    data, arguments = LOADS[name]
    if new and {"--no-header", "auto"} & {*arguments}:
        pytest.skip("a new table has its names from the header, and none tells the header")
    server.files[name] = data
    asked(f"{server.url}/{name}", *arguments, *new)
    # The footer of a Parquet file is read once. The types of a new table need values, which are in
    # another place, and so would be a file that an index before the footer hides.
    most = 1 + (bool(new) and name.endswith("parquet")) + (name == "indexed.parquet")
    (ranges,) = contents(server).values()
    assert 1 <= len(ranges) <= most
    # One look at the version when it is found, and one when it is opened
    if not name.endswith("parquet"):
        assert len(server.requests) == 3


def test_a_plan_reads_no_byte_of_a_larger_file_twice(server: WebServer) -> None:
    text = CSV + "".join(f"{number},1,{'x' * 80}\n" for number in range(1000, 9000))
    server.files["large.csv"] = text.encode()
    asked(f"{server.url}/large.csv", "--skip-rows", "3000")
    ranges = contents(server)["large.csv"]
    assert len(ranges) > 1 and not overlap(ranges)


def overlap(ranges: Sequence[str]) -> bool:
    """Whether requests (`bytes=0-99`, or none for the whole) are for the same bytes."""
    if len(ranges) == 1:
        return False
    ends = sorted(tuple(map(int, one.removeprefix("bytes=").split("-"))) for one in ranges)
    return any(before[1] >= after[0] for before, after in pairwise(ends))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each local file is opened to read it."""
    counts: Counter[str] = Counter()

    def counted(source: SourceFile, window_bytes: int | None = None) -> io.RawIOBase:
        counts[Path(source.path).name] += 1
        return open_stored(source, window_bytes)

    def parquet_counted(source: SourceFile, *arguments: object) -> object:
        counts[Path(source.path).name] += 1
        return open_parquet(source, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(beginning, "open_stored", counted)
    monkeypatch.setattr(plan_heads, "open_parquet", parquet_counted)
    return counts


@pytest.mark.parametrize("name", LOADS)
def test_a_plan_opens_a_local_file_once(tmp_path: Path, name: str, opened: Counter[str]) -> None:
    data, arguments = LOADS[name]
    (tmp_path / name).write_bytes(data)
    asked(str(tmp_path / name), *arguments)
    assert opened == {name: 1}


def test_many_files_are_opened_once_each(tmp_path: Path, opened: Counter[str]) -> None:
    for number in range(40):
        (tmp_path / f"{number}.jsonl").write_text(JSON)
    sources, estimates = asked(str(tmp_path), "--mapping", "id=id,total=n")
    assert len(sources) == 40 and {*estimates} == {Estimate(201, 201)}
    assert len(opened) == 40 and {*opened.values()} == {1}


def test_what_is_held_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_heads, "HELD_BYTES_MAX", 3 * plan_heads.OPEN_BYTES)
    for number in range(12):
        (tmp_path / f"{number:02}.csv").write_text(CSV * 200)
    files = find_sources([str(tmp_path)])
    with Heads(files) as heads:
        held = []
        for file in files * 2:
            heads[file].first_block(CsvDialect())
            held.append(sum(heads[one].held_bytes for one in files))
        assert max(held) <= plan_heads.HELD_BYTES_MAX
        assert heads[files[0]].held_bytes and not heads[files[1]].held_bytes
    assert not any(heads[file].held_bytes for file in files)


def test_numbers_of_records_are_kept_of_a_file_that_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Counter[str]
) -> None:
    monkeypatch.setattr(plan_heads, "HELD_BYTES_MAX", 0)
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "b.csv").write_text(CSV)
    (tmp_path / "c.parquet").write_bytes(parquet())
    _, b, c = files = find_sources([str(tmp_path)])
    with Heads(files) as heads:
        for _ in range(2):
            assert heads[b].estimate(CsvDialect()).records == 202
            heads[c].columns()
            assert heads[c].rows_count == 5000 and not heads[b].held_bytes
    assert opened["b.csv"] == 1


# --- The text of a beginning


KINDS = {"a.csv": "utf-8", "a.csv.gz": "utf-8", "b.csv": "utf-16"}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("keep_bytes", [0, 100, 1 << 20])
def test_any_reads_of_a_beginning_are_reads_of_the_whole_text(
    tmp_path: Path, name: str, keep_bytes: int
) -> None:
    path, dialect = tmp_path / name, CsvDialect(encoding=KINDS[name])
    data = CSV.encode(KINDS[name])
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (file,) = find_sources([str(path)], dialect)
    with open_whole(file, dialect) as stream:
        text = all_of(stream)
    draw = random.Random(name)
    read = Beginning(file, dialect, keep_bytes)
    for _ in range(200):
        at, size = draw.randrange(len(text) + 50), draw.randrange(1, 3000)
        assert read.read_up_to(at, size) == text[at : at + size]
        assert read.kept_bytes <= keep_bytes
        if draw.random() < 0.1:
            read.close()
    assert all_of(read.stream(10)) == text[10:]
    read.close()
    assert not read.is_open


def test_damage_is_met_by_each_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(random.Random(1).randbytes(100_000))[:50_000])
    (file,) = find_sources([str(path)])
    read = Beginning(file, CsvDialect(), 1 << 20)
    for _ in range(2):
        assert read.read(0, 100)
        with pytest.raises(SourceCorrupt, match="cut short"):
            read.read_up_to(0, 1 << 20)
    assert not read.is_open


def all_of(stream: Stream) -> bytes:
    pieces: Sequence[bytes] = list(iter(lambda: stream.read(1 << 16), b""))
    return b"".join(pieces)

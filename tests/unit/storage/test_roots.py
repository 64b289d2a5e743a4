"""Paths and URLs below the allowed roots, in every spelling."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.cql.types import parse_type
from ringhaul.errors import SourceChanged
from ringhaul.formats.dialect import RFC_4180
from ringhaul.formats.write import OutputFormat
from ringhaul.new_file import new_file
from ringhaul.output.parts import PartSet
from ringhaul.scan.spill import PartialTooLarge, spill, unspill
from ringhaul.sources import files as sources
from ringhaul.sources.files import check_unchanged, open_parquet, open_stored, open_whole
from ringhaul.sources.local_file import LocalFile
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import Access, set_access
from ringhaul.storage.folders import LocalFolder, open_folder
from ringhaul.storage.places import check_places
from ringhaul.storage.roots import OutsideRoots, check_opened, check_roots
from tests.cases import each


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("s3://bucket/in/a.csv", "s3://bucket/in"),
        ("s3://bucket/in", "s3://bucket/in/"),
        ("s3a://bucket/a", "s3://bucket"),
        ("S3://bucket/a", "s3://bucket"),
        ("s3://any/a", "s3://"),
        ("https://h:443/a/b.csv?x=1", "https://h/a"),
        ("https://H/a/b", "https://h/a"),
        ("http://h:8080/a", "http://h:8080/"),
        ("https://h/a%20b/c", "https://h/a b"),
    ],
)
def test_urls_below(name: str, root: str) -> None:
    check_roots(name, [root])
    check_roots(name, ["/data", root])
    check_roots(name, [])


@each(
    ("name", "root"),
    [
        ("s3://bucket/input/a.csv", "s3://bucket/in"),
        ("s3://bucket2/a", "s3://bucket"),
        ("gs://bucket/a", "s3://bucket"),
        ("http://h/a", "https://h/a"),
        ("https://h:8443/a", "https://h/a"),
        ("https://h/a/../b", "https://h/a"),
        ("https://h/a/%2e%2e/b", "https://h/a"),
        ("https://h/a/..%2fb", "https://h/a"),
        ("https://h/a/%5c../b", "https://h/a"),
        ("https://u@h/a", "https://h/a"),
        ("https://h@evil/a", "https://h"),
        ("https://h.evil/a", "https://h"),
        ("/data/a.csv", "s3://bucket"),
        ("s3://data/a.csv", "/data"),
        ("s3://b/i%6e/x", "s3://b/in"),
        ("s3://b/in/../x", "s3://b/in"),
    ],
)
def test_urls_outside(name: str, root: str) -> None:
    with pytest.raises(OutsideRoots, match=r"storage\.allowed_roots"):
        check_roots(name, [root])


def test_folders(tmp_path: Path) -> None:
    inside, outside = tmp_path / "data", tmp_path / "database"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "out").symlink_to(outside)
    (inside / "in").symlink_to(inside / "there")
    (tmp_path / "alias").symlink_to(inside)
    root = str(inside)
    for name in ("a.csv", "", "not/yet/there", "in/a.csv", "x/../a.csv"):
        check_roots(str(inside / name), [root])
        check_roots(str(inside / name), [f"{root}/"])
        check_roots(f"file://{inside / name}", [root])
    check_roots(str(tmp_path / "alias" / "a.csv"), [root])
    check_roots(str(inside / "a.csv"), [str(tmp_path / "alias")])
    for path in (
        outside / "secret",
        tmp_path,
        inside / "out" / "secret",
        inside / ".." / "database" / "secret",
        Path("/"),
    ):
        with pytest.raises(OutsideRoots):
            check_roots(str(path), [root])
        with pytest.raises(OutsideRoots):
            check_roots(f"file://{path}", [root])


def test_an_open_file_is_checked_by_its_real_path(tmp_path: Path) -> None:
    inside = tmp_path / "data"
    inside.mkdir()
    (tmp_path / "secret").write_text("x")
    (inside / "a").write_text("y")
    for path, allowed in ((inside / "a", True), (tmp_path / "secret", False)):
        with path.open() as file:
            if allowed:
                check_opened(file.fileno(), str(path), [str(inside)])
                continue
            with pytest.raises(OutsideRoots, match=str(tmp_path / "secret")):
                check_opened(file.fileno(), str(inside / "a"), [str(inside)])


@pytest.fixture
def limited(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Let this process open only files in `data`; `secret.csv` is beside it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.csv").write_text("id\n1\n")
    (tmp_path / "data" / "link.csv").symlink_to(tmp_path / "secret.csv")
    (tmp_path / "data" / "a.csv").write_text("id\n1\n")
    set_access(Access(allowed_roots=(str(tmp_path / "data"),)))
    yield tmp_path
    set_access(Access())


def test_every_way_to_open_a_file_is_checked(limited: Path) -> None:
    inside = limited / "data"
    check_unchanged(SourceFile(str(inside / "a.csv"), 5, False))
    open_stored(SourceFile(str(inside / "a.csv"), 5, False)).close()
    for path in (limited / "secret.csv", inside / "link.csv", inside / ".." / "secret.csv"):
        with pytest.raises(OutsideRoots):
            check_unchanged(SourceFile(str(path), 5, False))
        with pytest.raises(OutsideRoots):
            open_stored(SourceFile(str(path), 5, False))
    open_folder(str(inside / "out"))
    with pytest.raises(OutsideRoots):
        open_folder(str(limited / "out"))
    with pytest.raises(OutsideRoots):
        LocalFolder(str(limited)).create("x")
    with pytest.raises(OutsideRoots):
        PartSet(
            str(limited / "out"),
            OutputFormat(),
            ["a"],
            [parse_type("int")],
            job="j",
            unit=0,
            attempt="a",
        )
    assert spill(b"xx", 1, str(inside), "j-000001-a.partial")
    with pytest.raises(OutsideRoots):
        spill(b"xx", 1, str(limited), "j-000001-a.partial")
    with pytest.raises(OutsideRoots):
        unspill(b"\x01j-000001-a.partial", str(limited))


def test_a_file_url_is_checked_like_a_path(limited: Path) -> None:
    inside = limited / "data"
    for name in ("d?", "d#"):
        (inside / name).mkdir()
        for path in (f"{inside}/{name}/../../secret.csv", f"{inside}/a.csv"):
            source = SourceFile(f"file://{path}", 5, True)
            with pytest.raises(OutsideRoots), open_whole(source, RFC_4180):
                pass
    with pytest.raises(OutsideRoots):
        open_folder(f"file://{inside}/d?/../../out")


def test_a_redirect_cannot_leave_the_roots(limited: Path) -> None:
    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            inside = self.path.startswith("/in/")
            self.send_response(302 if inside else 200)
            if inside:
                self.send_header("Location", self.path.replace("/in/", "/private/"))
            self.send_header("Content-Length", "0" if inside else "5")
            self.end_headers()
            self.wfile.write(b"" if inside else b"id\n1\n")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        set_access(Access(private_addresses=True, allowed_roots=(f"{url}/in",)))
        for name in ("in/x.csv", "private/x.csv"):
            source = SourceFile(f"{url}/{name}", 5, True)
            with pytest.raises(OutsideRoots), open_whole(source, RFC_4180) as stream:
                stream.read(5)
        server.shutdown()


def test_parquet_is_read_from_the_file_that_was_checked(
    limited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is replaced by a link right after it was opened."""
    for path, number in ((limited / "data" / "a.parquet", 1), (limited / "b.parquet", 2)):
        pq.write_table(pa.table({"id": [number]}), path)
    path = limited / "data" / "a.parquet"
    opened = sources.open_local

    def and_swapped(source: SourceFile) -> LocalFile:
        file = opened(source)
        path.unlink()
        path.symlink_to(limited / "b.parquet")
        return file

    monkeypatch.setattr(sources, "open_local", and_swapped)
    source = SourceFile(str(path), path.stat().st_size, False)
    with pytest.raises(SourceChanged, match="was replaced"), open_parquet(source) as file:
        assert file.read().to_pydict() == {"id": [1]}


def test_a_partial_result_is_read_only_by_a_valid_name(limited: Path) -> None:
    for name in ("../../secret.csv", "/etc/hostname", "x", "../j-000001-a.partial"):
        with pytest.raises(PartialTooLarge, match="not the name of a partial result"):
            unspill(b"\x01" + name.encode(), str(limited / "data"))


@pytest.mark.parametrize("planted", ["link", "dangling", "pipe", "hard link", "left over"])
def test_a_planted_file_in_place_of_a_new_one_is_not_written_to(
    tmp_path: Path, planted: str
) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_text("kept")
    out.mkdir()
    names = (".part.csv.tmp", "._manifest.json.tmp", ".j-000001-a.partial", ".made")
    for name in names:
        _plant(out / name, victim, planted)
    for name in ("part.csv", "_manifest.json"):
        file = LocalFolder(str(out)).create(name)
        file.write(b"new")
        file.publish()
        assert (out / name).read_bytes() == b"new" and not (out / name).is_symlink()
    spill(b"partial", 1, str(out), "j-000001-a.partial")
    with new_file(out / ".made") as made:
        made.write(b"new")
    assert victim.read_text() == "kept"
    assert not (tmp_path / "nowhere").exists()
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [".made", "j-000001-a.partial", "_manifest.json", "part.csv"]
    )


def _plant(path: Path, victim: Path, what: str) -> None:
    if what == "link":
        path.symlink_to(victim)
    elif what == "dangling":
        path.symlink_to(victim.with_name("nowhere"))
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "hard link":
        path.hardlink_to(victim)
    else:
        path.write_text("of a process that died" * 99)


def test_preflight_refuses_them_before_there_is_a_job(limited: Path) -> None:
    access = {"allowed_roots": [str(limited / "data")]}
    sources = [(str(limited / "data" / name), 5, "") for name in ("a.csv", "link.csv")]
    wrong = check_places(
        {"sources": sources, "folder": str(limited), "probe": "", "access": access}
    )
    assert [name for name, _ in wrong] == [str(limited / "data" / "link.csv"), str(limited)]
    assert all("storage.allowed_roots" in why for _, why in wrong)

"""What is kept aside in folders is not read: attempts, marks, logs of tables, lists of unloads."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from producer.schedule.listing import find_strange, list_arrivals
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.sources.find import find_sources
from ringhaul.sources.left_out import find_tables, left_out
from ringhaul.storage.access import SCHEMES, Access, access, set_access
from ringhaul.storage.hidden import MANIFEST, MANIFESTS, matches

SHOWN = [
    "_day=1/part-0.csv",
    "g=north/_h=2/part-1.csv",
    "g=north/part-0.csv",
    "part-00000.csv",
]
ASIDE = [
    "._part-00000.csv",
    ".part-00000.csv",
    ".part-00000.csv.crc",
    "_SUCCESS",
    "_committed_123.csv",
    "_temporary/0/_temporary/attempt_0/part-00000.csv",
    "_temporary/0/g=north/part-00000.csv",
    ".hive-staging_1/g=north/part-0.csv",
    "g=north/_temporary/part-0.csv",
    "g=north/.part-0.csv",
    "g=north/_x=1.csv",
    "_=/.csv",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that a job of Spark has written, with an attempt that was never committed."""
    for name in (*SHOWN, *ASIDE):
        path = tmp_path / "sp" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\n1\n")
    return tmp_path / "sp"


@pytest.fixture
def store() -> Iterator[fsspec.AbstractFileSystem]:
    """The same folder in an object store, as memory://sp."""
    before = access()
    set_access(Access(schemes=(*SCHEMES, "memory")))
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    for name in (*SHOWN, *ASIDE):
        memory.pipe(f"/sp/{name}", b"id\n1\n")
    yield memory
    memory.store.clear()
    set_access(before)


def found(place: str, *args: str) -> list[str]:
    paths = [source.path for source in find_sources([f"{place}{arg}" for arg in args])]
    return [path.removeprefix(f"{place}/") for path in paths]


GLOBS = {
    "": SHOWN,
    "/**": SHOWN,
    "/**/*": SHOWN,
    "/**/*.csv": SHOWN,
    "/**/part-*.csv": SHOWN,
    "/**/part-0.csv": [SHOWN[0], SHOWN[2]],
    "/*.csv": [SHOWN[3]],
    "/*/*.csv": [SHOWN[0], SHOWN[2]],
    "/_*/*.csv": [SHOWN[0]],
    # What is named is read.
    "/_committed_*.csv": ["_committed_123.csv"],
    "/_committed_123.csv": ["_committed_123.csv"],
    "/g=north/_temporary": ["g=north/_temporary/part-0.csv"],
    "/g=north/_temp*/*.csv": ["g=north/_temporary/part-0.csv"],
    "/_temporary/**/part-*.csv": ["_temporary/0/g=north/part-00000.csv"],
    "/_temporary/*/g=*": ["_temporary/0/g=north/part-00000.csv"],
    "/_temporary/0/_temporary/": ["_temporary/0/_temporary/attempt_0/part-00000.csv"],
}


@pytest.mark.parametrize(("arg", "names"), GLOBS.items())
def test_what_is_kept_aside_is_not_read_unless_it_is_named(
    folder: Path, arg: str, names: list[str]
) -> None:
    assert found(str(folder), arg) == names


@pytest.mark.parametrize("arg", ["/**", "/**/*.csv", "/**/part-*.csv", "/*.csv", "/*/*.csv", ""])
def test_arriving_files_are_the_same(folder: Path, arg: str) -> None:
    pattern = f"{folder}{arg}"
    listed = [os.path.relpath(one.path, folder) for one in list_arrivals((pattern,), "/")]
    assert listed == GLOBS[arg]
    assert find_strange((pattern,), "/", [f"{folder}/{name}" for name in listed]) is None
    for name in ASIDE:
        assert find_strange((pattern,), "/", [f"{folder}/{name}"]) == f"{folder}/{name}", name
        assert not matches(f"{folder}/**/*", f"{folder}/{name}")


@pytest.mark.parametrize("arg", GLOBS)
def test_an_object_store_is_read_alike(store: fsspec.AbstractFileSystem, arg: str) -> None:
    assert found("memory://sp", arg) == GLOBS[arg]


def test_arriving_objects_are_the_same(store: fsspec.AbstractFileSystem) -> None:
    for arg in ("", "/**/*.csv"):
        listed = [one.path for one in list_arrivals((f"memory://sp{arg}",), "/")]
        assert [path.removeprefix("memory://sp/") for path in listed] == SHOWN


def test_members_of_an_archive_are_the_same(folder: Path) -> None:
    path = folder / "day.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*SHOWN, *ASIDE, "__MACOSX/part-00000.csv"):
            archive.writestr(name, "id\n1\n")
    for arg in ("", "!*.csv"):
        names = [source.path for source in find_sources([f"{path}{arg}"])]
        assert [name.removeprefix(f"{path}!") for name in names] == SHOWN
    assert len(find_sources([f"{path}!_committed_123.csv"])) == 1


def test_a_glob_that_matches_only_hidden_files_says_so(folder: Path) -> None:
    with pytest.raises(SourceMissing, match=r"matches but .*/_SUCCESS, which counts as hidden"):
        find_sources([f"{folder}/*SUCCESS"])
    with pytest.raises(UsageError, match=r"begin with _ or \. count as hidden"):
        find_sources([f"{folder}/_="])


TABLES = {
    "Delta Lake": ["_delta_log/00000000000000000000.json", "part-0.snappy.parquet"],
    "Apache Hudi": [".hoodie/hoodie.properties", "day=1/a.parquet"],
    "Apache Iceberg": ["metadata/v1.metadata.json", "metadata/snap-1.avro", "data/a.parquet"],
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("deep", ["", "lake/"])
def test_the_folder_of_a_table_format_is_refused_in_words(
    tmp_path: Path, store: fsspec.AbstractFileSystem, name: str, deep: str
) -> None:
    for file in TABLES[name]:
        path = tmp_path / "t" / deep / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        store.pipe(f"/t/{deep}{file}", b"{}")
    for place in (f"{tmp_path}/t", "memory://t"):
        at = f"{place}/{deep}".rstrip("/")
        with pytest.raises(UsageError, match=f"{at}: is a table of {name}, whose folder also"):
            find_sources([place])
        # A glob takes files as they are, as the message says, and never those of the log.
        paths = [source.path for source in find_sources([f"{place}/**/*.parquet"])]
        assert paths == [f"{at}/{TABLES[name][-1]}"]
        assert find_tables(paths) == ({at: name} if place == f"{tmp_path}/t" else {})


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_the_list_of_an_unload_is_never_data(
    tmp_path: Path, store: fsspec.AbstractFileSystem, manifest: str
) -> None:
    content = json.dumps({"parts": [{"name": "b.json"}, {"name": "a.json"}]}).encode()
    for name, text in {"a.json": b"{}", "b.json": b"{}", "left.json": b"{}"}.items():
        (tmp_path / name).write_bytes(text)
        store.pipe(f"/out/{name}", text)
    (tmp_path / manifest).write_bytes(content)
    store.pipe(f"/out/{manifest}", content)
    every = ["a.json", "b.json", "left.json"]
    for place in (str(tmp_path), "memory://out"):
        assert found(place, "") == ["b.json", "a.json"]
        for glob in ("/*.json", "/**/*.json", "/**", "/*"):
            assert found(place, glob) == every, glob
        # as a shell expands *.json
        assert found(place, *(f"/{name}" for name in [manifest, *every])) == every
        with pytest.raises(UsageError, match="lists the files of an unload; to load these, give"):
            found(place, f"/{manifest}")
        listed = list_arrivals((f"{place}/*.json",), "/")
        assert [one.path.removeprefix(f"{place}/") for one in listed] == every


def test_a_file_of_that_name_that_is_no_list_is_data(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"id": 1}')
    assert found(str(tmp_path), "/*.json") == ["manifest.json"]
    assert found(str(tmp_path), "/manifest.json") == ["manifest.json"]


def test_the_new_list_counts_before_an_older_one(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n1\n")
    (tmp_path / MANIFESTS[1]).write_text('{"parts": [{"name": "a.csv"}]}')
    assert found(str(tmp_path), "") == ["a.csv"]
    (tmp_path / MANIFEST).write_text('{"parts": [{"name": "b.csv"}]}')
    assert found(str(tmp_path), "") == ["b.csv"]


def test_data_files_that_are_left_out_are_named(tmp_path: Path) -> None:
    for name in ("a.csv", "_b.csv", "_SUCCESS", ".c.csv", "sub/d.csv", "sub/_e.csv.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\n1\n")
    for args, names in (
        ([""], ["_b.csv"]),
        (["/*.csv", "/sub"], ["_b.csv", "sub/_e.csv.gz"]),
        (["/_b.csv", "/a.csv", "/_*.csv", "/**/*.csv"], []),
        (["/none", "/*.parquet"], []),
    ):
        assert left_out([f"{tmp_path}{arg}" for arg in args]) == [
            f"{tmp_path}/{name}" for name in names
        ]
    (tmp_path / MANIFEST).write_text('{"parts": [{"name": "a.csv"}]}')
    assert left_out([str(tmp_path)]) == []

"""The object store alone: listing, reading, and the visibility of files while written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from s3fs import S3FileSystem

from ringhaul.errors import SourceChanged, SourceMissing
from ringhaul.formats.dialect import RFC_4180
from ringhaul.sources.files import open_range, open_whole
from ringhaul.sources.find import find_sources
from ringhaul.storage.access import Access, access, set_access
from ringhaul.storage.folders import open_folder, try_writing
from ringhaul.storage.remote import RemoteFile, check_unchanged, list_files, stat_file
from tests.object_store import ObjectStore, running_object_store

MIB = 1 << 20


@pytest.fixture(scope="module")
def running_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def store(running_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """The object store, which this process has access to."""
    before = access()
    for name, value in running_store.env.items():
        monkeypatch.setenv(name, value)
    set_access(Access(s3_endpoint_url=running_store.endpoint_url))
    yield running_store
    set_access(before)


def test_a_listing_and_a_lookup_agree_about_an_object(store: ObjectStore) -> None:
    for number in range(3):
        store.put(f"days/{number}.csv", b"x\n" * number)
    store.put("days/.hidden.csv", b"x\n")
    store.put("days/folder/", b"")
    found = list_files(store.url("days"))
    assert [(file.path, file.size_bytes) for file in found] == [
        (store.url(f"days/{number}.csv"), 2 * number) for number in range(3)
    ]
    assert found == list_files(store.url("days/")) == list_files(store.url("days/*.csv"))
    assert found == [stat_file(file.path) for file in found]
    assert all(file.version for file in found)
    assert list_files(store.url("nothing")) == list_files(store.url("nothing/*")) == []


def test_a_replacement_of_the_same_size_is_noticed(store: ObjectStore) -> None:
    url = store.put("changing.csv", b"1\n")
    file = stat_file(url)
    store.put("changing.csv", b"1\n")
    check_unchanged(file)  # the same bytes, uploaded again, count as unchanged
    store.put("changing.csv", b"2\n")
    with pytest.raises(SourceChanged, match="was replaced since the job started"):
        check_unchanged(file)
    store.client().delete_object(Bucket=store.bucket, Key="changing.csv")
    with pytest.raises(SourceChanged, match="is gone"):
        check_unchanged(file)
    with pytest.raises(SourceMissing, match="no such object"):
        stat_file(url)


def test_a_part_of_another_version_is_not_read(store: ObjectStore) -> None:
    # Given a reader of an object, which is replaced by one of the same size and later restored
    old, new = b"1\n" * MIB, b"2\n" * MIB
    (source,) = find_sources([store.put("back.csv", old)])
    with open_range(source, 0, len(old)) as stream, open_whole(source, RFC_4180) as whole:
        store.put("back.csv", new)
        # When it reads in between, then it gets no bytes of the other version
        for opened in (stream, whole):
            with pytest.raises(SourceChanged, match="was replaced since the job started"):
                opened.read(1)
        store.put("back.csv", old)
    check_unchanged(RemoteFile(source.path, source.size_bytes, source.version))
    with open_range(source, 0, len(old)) as stream:
        assert b"".join(iter(lambda: stream.read(MIB), b"")) == old


def test_a_store_that_ignores_conditions_is_noticed(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = find_sources([store.put("ignored.csv", b"1\n")])
    call = S3FileSystem._call_s3

    async def unconditional(self: S3FileSystem, *names: object, **fields: object) -> object:
        fields.pop("IfMatch", None)
        return await call(self, *names, **fields)

    monkeypatch.setattr(S3FileSystem, "_call_s3", unconditional)
    with open_range(source, 0, 2) as stream:
        store.put("ignored.csv", b"2\n")
        with pytest.raises(SourceChanged, match="was replaced since the job started"):
            stream.read(1)


def test_a_unit_of_64_mib_takes_few_requests(store: ObjectStore) -> None:
    data = os.urandom(MIB) * 70
    (source,) = find_sources([store.put("large.csv", data)])
    before = len(store.requests())
    with open_range(source, 3 * MIB, 64 * MIB) as stream:
        found = b"".join(iter(lambda: stream.read(MIB), b""))
    assert found == data[3 * MIB : 67 * MIB]
    requests = store.requests()[before:]
    assert [method for method, _, _ in requests].count("GET") == 8
    assert len(requests) == 9, "one more request checks that it is unchanged"


def uploads(store: ObjectStore) -> list[str]:
    """Return the keys of incomplete uploads."""
    found = store.client().list_multipart_uploads(Bucket=store.bucket).get("Uploads", [])
    return [upload["Key"] for upload in found]


@pytest.mark.parametrize("size_bytes", [100, 40 * MIB])
def test_a_file_is_visible_only_when_complete(store: ObjectStore, size_bytes: int) -> None:
    folder = open_folder(store.url("out"))
    file = folder.create("part")
    for _ in range(10):
        file.write(bytes(size_bytes // 10))
    assert store.keys("out/") == []
    file.publish()
    assert folder.sizes() == {"part": size_bytes}
    assert len(folder.read("part") or b"") == size_bytes
    folder.remove("part")
    assert store.keys("out/") == uploads(store) == []


@pytest.mark.parametrize("size_bytes", [100, 40 * MIB])
def test_a_discarded_file_leaves_nothing(store: ObjectStore, size_bytes: int) -> None:
    file = open_folder(store.url("out")).create("part")
    file.write(bytes(size_bytes))
    file.discard()
    del file
    assert store.keys("out/") == uploads(store) == []


def test_a_file_of_a_killed_process_never_becomes_visible(
    store: ObjectStore, tmp_path: Path
) -> None:
    script = (
        "import os, signal, sys\n"
        "from ringhaul.storage.folders import open_folder\n"
        "from ringhaul.storage.access import Access, set_access\n"
        "set_access(Access(s3_endpoint_url=sys.argv[2]))\n"
        "file = open_folder(sys.argv[1]).create('part')\n"
        "file.write(bytes(40 << 20))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", script, store.url("killed"), store.endpoint_url]
    assert subprocess.run(command, timeout=60).returncode == -9
    assert store.keys("killed/") == []
    assert uploads(store) == ["killed/part"], "the bucket's own rules drop it"


def test_a_write_check_leaves_nothing(store: ObjectStore) -> None:
    try_writing(store.url("tried"))
    assert store.keys("tried/") == []

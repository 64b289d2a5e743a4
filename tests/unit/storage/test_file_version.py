"""What shows that a local file is no longer the one that was planned, here and on other hosts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ringhaul.errors import SourceChanged
from ringhaul.storage import file_version
from ringhaul.storage.file_version import (
    COARSE_TICK_NS,
    TICK_NS,
    FileVersion,
    changed,
    read_small,
    time_text,
    unlike,
    version_text,
)
from tests.acceptance.command import wait_until

SECOND_NS = 1_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "in.csv"
    found.write_text("id\n1\n")
    return found


def after_a_tick(path: Path) -> None:
    """Wait until a change shows in the times of files."""
    probe, before = path.with_name("probe"), path.stat().st_ctime_ns

    def ticked() -> bool:
        probe.touch()
        return probe.stat().st_ctime_ns > before

    wait_until(ticked, "the clock of files")
    probe.unlink()


def restored(path: Path, content: str) -> None:
    """Rewrite a file in place and put its modification time back."""
    before = path.stat()
    path.write_text(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("id\n2\n")
    os.replace(other, path)


def replaced_with_its_time(path: Path) -> None:
    other, before = path.with_name("other"), path.stat()
    other.write_text("id\n2\n")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)


def moved_away_and_back(path: Path) -> None:
    os.rename(path, path.with_name("away"))
    os.rename(path.with_name("away"), path)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "another size": (lambda path: path.write_text("id\n"), "is 3 bytes now and was 5 when the job"),
    "in place": (lambda path: path.write_text("id\n2\n"), "was written to since the job started"),
    "in place, time put back": (lambda path: restored(path, "id\n2\n"), "may have been rewritten"),
    "moved away and back": (moved_away_and_back, "may have been rewritten"),
    "replaced": (replaced, "was replaced by another one of the same size"),
    "replaced, same time": (replaced_with_its_time, "was replaced by another one of the same size"),
    "permissions": (lambda path: path.chmod(0o600), ""),
    "a link": (lambda path: os.link(path, path.with_name("link")), ""),
    "nothing": (lambda path: path.read_bytes(), ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_on_the_host_that_planned(path: Path, name: str) -> None:
    change, message = CHANGES[name]
    then = FileVersion.of(path.stat())
    size_bytes = path.stat().st_size
    after_a_tick(path)
    change(path)
    found = changed(size_bytes, FileVersion.parse(then.text), path.stat())
    assert message in found and bool(found) == bool(message)
    if "size" not in name and message:
        assert "start again once nothing" in found


def test_another_kernel_sees_other_inodes_and_times_of_change(path: Path) -> None:
    then = FileVersion.of(path.stat())
    elsewhere = then._replace(kernel="another", inode=7, changed_ns=then.changed_ns - 1)
    assert changed(5, elsewhere, path.stat()) == ""
    # The modification time and the size are the same on all hosts
    other = elsewhere._replace(modified_ns=then.modified_ns - 1)
    message = changed(5, other, path.stat())
    assert time_text(then.modified_ns) in message and time_text(other.modified_ns) in message
    assert "cp -p" in message
    assert "is 5 bytes now and was 6" in changed(6, elsewhere, path.stat())


def test_a_container_may_have_a_copy_of_its_own(path: Path) -> None:
    then = FileVersion.of(path.stat())
    # The same kernel, another mount namespace: on one device it is the same file, or was replaced
    beside = then._replace(mounts="1", inode=then.inode + 1)
    assert "was replaced" in changed(5, beside, path.stat())
    # On another device it is a copy
    assert changed(5, beside._replace(device=then.device + 1), path.stat()) == ""
    # A mount that was made again has another device number
    assert changed(5, then._replace(device=then.device + 1), path.stat()) == ""


@pytest.mark.parametrize(
    ("here_ns", "there_ns", "same"),
    [
        (123_456_789, 123_456_700, True),  # SMB keeps hundreds of nanoseconds
        (123_456_789, 123_456_000, True),
        (7 * SECOND_NS + 123_456_789, 7 * SECOND_NS, True),  # whole seconds, as `scp -p` keeps
        (7 * SECOND_NS + 123_456_789, 6 * SECOND_NS, True),  # FAT
        (7 * SECOND_NS + 123_456_789, 8 * SECOND_NS, False),
        (123_456_789, 123_456_788, False),
        (7 * SECOND_NS, 6 * SECOND_NS + 1, False),
    ],
)
def test_other_hosts_may_keep_fewer_digits(
    path: Path, here_ns: int, there_ns: int, same: bool
) -> None:
    os.utime(path, ns=(there_ns, there_ns))
    then = FileVersion.of(path.stat())._replace(kernel="another", modified_ns=here_ns)
    assert (changed(5, then, path.stat()) == "") == same
    assert (unlike(5, then.text, path.stat()) == "") == same


def test_a_host_with_another_file_is_told_apart_before_the_job(path: Path) -> None:
    there = path.with_name("there.csv")
    there.write_text("id\n2\n")
    os.utime(there, ns=(SECOND_NS, SECOND_NS))
    version = version_text(path.stat())
    assert unlike(5, version, path.stat()) == unlike(5, "", there.stat()) == ""
    assert unlike(6, version, path.stat()) == "5 bytes on the worker, 6 here"
    assert unlike(5, version, there.stat()).startswith(
        "modified at 1970-01-01T00:00:01.000000000Z on the worker, at "
    )


@pytest.mark.parametrize(
    "text", ["", "etag", "file", "file a b 1 2 3", "file a b 1 2 3 x 5", "other a b 1 2 3 4 5"]
)
def test_versions_of_jobs_of_other_versions_are_no_versions(path: Path, text: str) -> None:
    assert FileVersion.parse(text) is None
    assert changed(5, None, path.stat()) == ""
    assert unlike(5, text, path.stat()) == ""


def test_a_file_of_a_moment_ago_is_waited_for() -> None:
    then = FileVersion("k", "m", 1, 2, 5 * SECOND_NS + 1, 6 * SECOND_NS + 1, "")
    assert then.ready_ns(7 * SECOND_NS) == -SECOND_NS + 1 + TICK_NS
    assert then.ready_ns(6 * SECOND_NS + 1) == TICK_NS
    # A time in the future shows nothing about when it changed
    assert then._replace(modified_ns=9 * SECOND_NS).ready_ns(6 * SECOND_NS + 1) == TICK_NS
    coarse = then._replace(modified_ns=6 * SECOND_NS, changed_ns=6 * SECOND_NS)
    assert coarse.ready_ns(6 * SECOND_NS) == COARSE_TICK_NS
    assert coarse._replace(modified_ns=1 << 62, changed_ns=1 << 62).ready_ns(0) == 0


def test_a_host_without_proc_goes_by_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = FileVersion.of(path.stat())
    monkeypatch.setattr(file_version, "_BOOT_ID", "/none")
    file_version._here.cache_clear()
    try:
        there = FileVersion.of(path.stat())
        assert there.kernel == os.uname().nodename and not there.is_near(here)
        assert FileVersion.parse(there.text) == there
    finally:
        file_version._here.cache_clear()


@pytest.mark.parametrize(("kind", "same"), [("fuse.sshfs", True), ("vfat", True), ("ext4", False)])
def test_inodes_that_are_numbered_anew_are_no_change(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, same: bool
) -> None:
    device = path.stat().st_dev
    mounts = path.with_name("mounts")
    mounts.write_text(
        "22 1 0:5 / / rw shared:1 - proc proc rw\n"
        f"29 1 {os.major(device)}:{os.minor(device)} / /data rw shared:2 - {kind} disk rw\n"
    )
    monkeypatch.setattr(file_version, "_MOUNT_LIST", str(mounts))
    then = FileVersion.of(path.stat())
    assert (changed(5, then._replace(inode=7), path.stat()) == "") == same
    assert changed(5, then._replace(inode=7, changed_ns=then.changed_ns - 1), path.stat())
    mounts.unlink()
    assert "was replaced" in changed(5, then._replace(inode=7), path.stat())


def test_times_beyond_the_calendar() -> None:
    assert time_text(-1) == "1969-12-31T23:59:59.999999999Z"
    assert time_text(10**21) == "1000000000000.000000000 s"


def test_a_list_is_read_as_it_was_at_one_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_small(path, 5) == b"id\n1\n"
    assert read_small(path, 3) == b"id\n1"
    fstat, looks = os.fstat, []

    def and_written(descriptor: int) -> os.stat_result:
        found = fstat(descriptor)
        looks.append(found)
        if len(looks) == 1:
            path.write_text("id\n1\n2\n")
        return found

    monkeypatch.setattr(os, "fstat", and_written)
    with pytest.raises(SourceChanged, match="was written to while it was read"):
        read_small(path, 100)

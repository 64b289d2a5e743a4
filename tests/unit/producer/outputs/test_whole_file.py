"""A file keeps its content until a complete new one replaces it, and an export never
overwrites the source of its records."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from producer.figures.rejects import refuse_source
from producer.outputs.whole_file import check_replacing, whole_file
from ringhaul.errors import OutputUnusable, UsageError


def test_a_file_is_replaced_when_all_of_it_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "x.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with whole_file(str(link)) as out:
        out.write(b"new")
        assert target.read_text() == "old"
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [link, target]


@pytest.mark.parametrize("error", [UsageError("other headers"), KeyboardInterrupt()])
def test_a_failure_midway_changes_nothing(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "x.csv"
    target.write_text("old")
    with pytest.raises(type(error)), whole_file(str(target)) as out:
        out.write(b"new")
        raise error
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_two_writers_of_one_file_do_not_collide(tmp_path: Path) -> None:
    """Like two hosts that share the folder, with equal process ids."""
    target = tmp_path / "x.csv"
    with whole_file(str(target)) as first:
        first.write(b"first\n" * 9)
        with whole_file(str(target)) as second:
            second.write(b"second\n")
        assert target.read_text() == "second\n"
    assert target.read_text() == "first\n" * 9
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    missing = tmp_path / "gone" / "x.csv"
    with pytest.raises(UsageError) as refusal, whole_file(str(missing)):
        pass
    assert str(refusal.value) == f"{missing}: cannot be written: No such file or directory"
    with (
        pytest.raises(OutputUnusable, match="/dev/full: cannot be written: No space left"),
        whole_file("/dev/full") as out,
    ):
        out.write(b"x")
    assert Path("/dev/full").is_char_device()


def test_a_file_that_cannot_be_written_is_refused_before_the_block(tmp_path: Path) -> None:
    """In a folder where not even root can create a file."""
    link = tmp_path / "link"
    link.symlink_to("/proc/x.csv")
    for path in (f"{tmp_path}/gone/x.csv", "/proc/x.csv", str(link), f"{tmp_path}/{'n' * 300}"):
        with pytest.raises(UsageError, match="cannot be written") as refusal:
            check_replacing(path)
        assert str(refusal.value).startswith(f"{path}: ")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there").write_text("old\n")
    before = sorted(tmp_path.iterdir())
    for name in ("pipe", "there", "new"):
        check_replacing(f"{tmp_path}/{name}")
    with (tmp_path / "there").open("a") as log:
        check_replacing(f"/dev/fd/{log.fileno()}")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there").read_text() == "old\n"


def test_a_pipe_is_written_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(str(pipe)) as out:
            out.write(b"x")
        assert os.read(reader, 9) == b"x"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "/proc/{pid}/fd/{}", "a link"])
def test_a_descriptor_is_written_in_place(tmp_path: Path, name: str) -> None:
    """With `--export /dev/stdout >> log.txt`, /dev/stdout is a link to log.txt."""
    log, path = tmp_path / "log.txt", tmp_path / "link"
    log.write_text("old\n")
    reading, pipe = os.pipe()
    appending = os.open(log, os.O_WRONLY | os.O_APPEND)
    beginning = os.open(tmp_path / "new.txt", os.O_WRONLY | os.O_CREAT)
    os.write(beginning, b"first\n")
    try:
        for descriptor in (appending, beginning, pipe):
            named = name.format(descriptor, pid=os.getpid())
            if name == "a link":
                path.unlink(missing_ok=True)
                path.symlink_to(f"/dev/fd/{descriptor}")
                named = str(path)
            with whole_file(named) as out:
                out.write(b"new\n")
            os.write(descriptor, b"last\n")
        assert os.read(reading, 99) == b"new\nlast\n"
    finally:
        for descriptor in (reading, pipe, appending, beginning):
            os.close(descriptor)
    assert log.read_text() == "old\nnew\nlast\n"
    assert (tmp_path / "new.txt").read_text() == "first\nnew\nlast\n"


def test_the_output_of_another_process_is_appended_to(tmp_path: Path) -> None:
    """Such as `/proc/1/fd/1` in a container."""
    log = tmp_path / "log.txt"
    log.write_text("old\n")
    with log.open("ab") as out:
        other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out)
    with whole_file(f"/proc/{other.pid}/fd/1") as there:
        there.write(b"new\n")
    other.communicate(b"last\n")
    assert log.read_text() == "old\nnew\nlast\n"


def test_a_closed_descriptor_is_a_clear_error() -> None:
    with (
        pytest.raises(UsageError, match="/dev/fd/999: cannot be written: Bad file descriptor"),
        whole_file("/dev/fd/999"),
    ):
        pass


def test_an_export_over_a_source_is_refused_under_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "rejects.csv"
    source.write_text("id\n1\n")
    (tmp_path / "link").symlink_to(source)
    (tmp_path / "hard").hardlink_to(source)
    sources = ["s3://bucket/x.csv", str(tmp_path / "gone.csv"), str(source)]
    for name in ("rejects.csv", "./rejects.csv", str(source), "link", "hard"):
        with pytest.raises(UsageError) as refusal:
            refuse_source(name, sources)
        assert str(refusal.value) == (
            f"--export {name}: the job was loaded from this file; give another name"
        )
    for name in ("-", "other.csv", "gone.csv", "s3://bucket/x.csv"):
        refuse_source(name, sources)


def test_a_link_with_the_name_of_the_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringhaul.new_file.secrets.token_hex", lambda _: "aa")
    (tmp_path / ".x.csv.aa.tmp").symlink_to(tmp_path / "nowhere")
    with whole_file(str(tmp_path / "x.csv")) as file:
        file.write(b"id\n")
    assert (tmp_path / "x.csv").read_bytes() == b"id\n"
    assert os.listdir(tmp_path) == ["x.csv"]

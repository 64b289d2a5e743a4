"""Standard input is spooled to a file of one command, and removed when the command ends."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from producer.inputs.stdin_spool import (
    as_standard_input,
    naming_standard_input,
    pipe_note,
    spool_path,
    spool_sources,
)
from producer.inputs.urlfile import read_urlfile
from producer.request.load import LoadDraft
from producer.run.spool_cleanup import drop_spooled
from producer.spool_names import path_as_given
from ringhaul.errors import OutputUnusable, SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect
from tests.heads import plan_sources
from tests.loads import load_job, load_source, table_schema

JOB = "ld-7f3a9c"
TABLE = table_schema({"id": "int"}, ["id"])


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The spool folder with files of other commands of the same job id."""
    folder = tmp_path / "state" / "spool"
    folder.mkdir(parents=True)
    for name in (f"{JOB}.csv", spool_path(tmp_path / "state", JOB).name):
        (folder / name).write_text("id\n1\n")
    return folder


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that no server listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def started(tmp_path: Path, port: int) -> subprocess.Popen[str]:
    arguments = ("load", "-", "-t", "shop.orders", "--job-id", JOB, "--dry-run")
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ringhaul", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
            "RINGHAUL_CLUSTER_CONTACT_POINTS": "127.0.0.1",
            "RINGHAUL_CLUSTER_PORT": str(port),
        },
    )


def test_a_command_that_fails_in_planning_keeps_the_spool_files_of_others(
    tmp_path: Path, kept: Path, unused_port: int
) -> None:
    before = set(kept.iterdir())
    with started(tmp_path, unused_port) as command:
        _, stderr = command.communicate("id\n2\n", timeout=120)
    assert command.returncode == 4, stderr
    assert "Traceback" not in stderr
    assert set(kept.iterdir()) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_spool_file_is_removed_when_the_command_is_terminated(
    tmp_path: Path, kept: Path, unused_port: int, number: signal.Signals
) -> None:
    # Given a command in the middle of its standard input
    before = set(kept.iterdir())
    with started(tmp_path, unused_port) as command:
        give_up = time.monotonic() + 120
        while len(set(kept.iterdir())) == len(before):
            assert command.poll() is None, command.communicate()
            assert time.monotonic() < give_up
            time.sleep(0.05)
        # When it gets the signal
        command.send_signal(number)
        code = command.wait(120)
        # Then it ends as after Ctrl-C, and its file is gone
        assert code == 130, command.communicate()
    assert set(kept.iterdir()) == before


@pytest.mark.parametrize(
    "name", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "file:///dev/stdin"]
)
def test_standard_input_by_any_name_is_spooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"id\n1\n")))
    spool = spool_path(tmp_path, JOB)
    (file,) = spool_sources([name], CsvDialect(), "auto", spool)
    assert (file.path, spool.read_bytes()) == (str(spool), b"id\n1\n")


@pytest.mark.parametrize("kind", ["descriptor", "pipe with a name", "link", "URL"])
def test_other_pipes_are_spooled(tmp_path: Path, kind: str) -> None:
    # Given 300 kB from a pipe, as of <(...) in a shell
    data = b"id\n" + b"12345\n" * 50_000
    reading, writing = os.pipe()
    name = f"/dev/fd/{reading}"
    if kind != "descriptor":
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "link").symlink_to("pipe")
        name = str(tmp_path / ("link" if kind == "link" else "pipe"))

    def write() -> None:
        with open(writing if kind == "descriptor" else tmp_path / "pipe", "wb") as file:
            file.write(data)

    if kind == "URL":
        name = f"file://{name}"
    with ThreadPoolExecutor() as pool:
        written = pool.submit(write)
        spool = spool_path(tmp_path, JOB)
        (file,) = spool_sources([name], CsvDialect(), "auto", spool)
        written.result()
    assert (file.path, spool.read_bytes()) == (str(spool), data)
    os.close(reading)
    if kind != "descriptor":
        os.close(writing)


def test_a_pipe_is_the_only_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe, other = str(tmp_path / "pipe"), str(tmp_path / "a.csv")
    spool = spool_path(tmp_path, JOB)
    for sources, why in (
        ([pipe, other], f"{pipe} \\(a pipe\\) cannot be given together with other sources"),
        ([other, "/dev/stdin"], "/dev/stdin \\(standard input\\) cannot be given together"),
        (["/dev/fd/987"], "/dev/fd/987: No such file"),
    ):
        with pytest.raises(UsageError, match=why):
            spool_sources(sources, CsvDialect(), "auto", spool)
    with pytest.raises(UsageError, match="a pipe"):
        places = tmp_path / "list"
        places.write_text(f"{other}\n{pipe}\n")
        read_urlfile(str(places), ())


def test_a_finished_job_removes_only_its_own_spool_file(kept: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    mine, other = sorted(kept.iterdir())
    outside = tmp_path / f"{JOB}.csv"
    outside.write_text("id\n1\n")
    job = load_job(TABLE, *(load_source(["id"], path=str(path)) for path in (mine, outside)))
    drop_spooled(state, "ld-other", job)
    assert mine.exists()
    drop_spooled(state, JOB, job)
    assert not mine.exists()
    assert other.exists()
    assert outside.exists()


PIPED = {
    "gzip": (gzip.compress(b"id\n1\n"), "is compressed by gzip: unpack it in the pipe (gzip -dc "),
    "bzip2": (bz2.compress(b"id\n1\n"), "is compressed by bzip2: unpack it in the pipe (bzip2 "),
    "xz": (lzma.compress(b"id\n1\n"), "is compressed by xz: unpack it in the pipe (xz -dc FILE | "),
    "zstd": (
        pa.Codec("zstd").compress(b"id\n1\n").to_pybytes(),
        "is compressed by zstd: unpack it in the pipe (zstd -dc FILE | ringhaul ...)",
    ),
    "parquet": (b"PAR1\x15\x04", "is a Parquet file: give --format parquet"),
}


@pytest.mark.parametrize("kind", PIPED)
def test_binary_standard_input_is_refused_before_it_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    content, reason = PIPED[kind]
    rest = b"x" * 2**20

    def spooled(form: str = "auto", encoding: str = "utf-8") -> int:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content + rest)))
        dialect = CsvDialect(encoding=encoding)
        (file,) = spool_sources(["-"], dialect, form, spool_path(tmp_path, JOB))
        return file.size_bytes

    with pytest.raises(UsageError) as refusal:
        spooled()
    assert str(refusal.value).startswith(f"standard input {reason}")
    assert sys.stdin.buffer.tell() < len(rest)
    # Text of other encodings may begin like this, and so does Parquet with --format parquet.
    assert spooled(encoding="utf-16") == len(content + rest)
    if kind == "parquet":
        assert spooled("parquet") == len(content + rest)


def test_errors_of_standard_input_do_not_name_the_spool_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a state folder by a relative path, and standard input that is not JSON Lines
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'[{"id": 1}]')))
    spool = spool_path(Path("state"), JOB)
    request = LoadDraft(keyspace="shop", table="orders", file_format="jsonl")
    files = spool_sources(["-"], request.dialect, "jsonl", spool)
    # When it is planned
    with pytest.raises(UsageError) as refusal, naming_standard_input(spool):
        plan_sources(request, files, TABLE)
    # Then the message names standard input
    assert str(refusal.value).startswith("standard input: begins with [, as a JSON array does,")
    assert JOB not in str(refusal.value)


def test_a_spool_file_is_shown_as_standard_input_wherever_it_is(tmp_path: Path) -> None:
    spool = spool_path(tmp_path / "straße", JOB)
    assert path_as_given(str(spool), JOB) == "standard input"
    for path, job in ((spool, "ld-7f3a9"), (tmp_path / spool.name, JOB), (f"{spool}.gz", JOB)):
        assert path_as_given(str(path), job) == str(path)
    for text in (f"{spool}:3", json.dumps({"path": str(spool)})):
        assert as_standard_input(text, spool) == text.replace(
            str(spool) if str(spool) in text else json.dumps(str(spool))[1:-1], "standard input"
        )


def test_standard_input_that_cannot_be_read_or_spooled_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = spool_path(tmp_path / "state", JOB)
    monkeypatch.setattr("sys.stdin", None)  # as Python sets it after `<&-`
    with pytest.raises(UsageError, match="standard input is closed"):
        spool_sources(["-"], CsvDialect(), "auto", spool)
    # A file that cannot grow, as on a full disk
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1\n" * 100_000)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OutputUnusable) as refusal:
            spool_sources(["-"], CsvDialect(), "auto", spool_path(tmp_path / "state", JOB))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(refusal.value).startswith(f"{spool.parent}: standard input cannot be kept here")
    assert "File too large; free some disk space" in str(refusal.value)


def test_files_are_not_spooled(tmp_path: Path) -> None:
    spool = spool_path(tmp_path / "state", JOB)
    with pytest.raises(SourceMissing):
        spool_sources([str(tmp_path / "x.csv")], CsvDialect(), "auto", spool)
    assert not spool.parent.exists()


def test_a_pipe_that_is_waited_for_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.csv")
    (tmp_path / "x.csv").touch()
    assert pipe_note(["-"]) is None and pipe_note([str(tmp_path / "x.csv")]) is None
    note = pipe_note([str(tmp_path / "p.csv")])
    assert note == f"{tmp_path}/p.csv is a pipe: it is read to its end before the job starts"

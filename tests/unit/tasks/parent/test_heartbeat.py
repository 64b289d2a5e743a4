"""The file whose age says that a worker is alive."""

import os
from pathlib import Path

import pytest

from tasks.parent.heartbeat import Heartbeat


def test_each_beat_touches_the_file_and_the_end_removes_it(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    heartbeat = Heartbeat(path)
    heartbeat.beat()
    os.utime(path, (0, 0))
    heartbeat.beat()
    assert path.stat().st_mtime > 1_000_000
    heartbeat.end()
    assert not path.exists()
    heartbeat.end()


def test_a_file_that_cannot_be_written_is_logged_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "no folder" / "heartbeat"
    heartbeat = Heartbeat(path)
    heartbeat.beat()
    assert f"worker.heartbeat_file: cannot write {path}: No such file or directory" in caplog.text
    heartbeat.end()


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heartbeat = Heartbeat(None)
    heartbeat.beat()
    heartbeat.end()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, there: bool
) -> None:
    other, path = tmp_path / "other", tmp_path / "heartbeat"
    if there:
        other.touch()
        os.utime(other, (0, 0))
    path.symlink_to(other)
    Heartbeat(path).beat()
    assert "cannot write" in caplog.text
    assert other.stat().st_mtime == 0 if there else not other.exists()


def test_a_pipe_does_not_block_the_worker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.mkfifo(tmp_path / "heartbeat")
    Heartbeat(tmp_path / "heartbeat").beat()
    assert "cannot write" in caplog.text

"""Files of the current folder that nobody named: whose are taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.settings import load_settings
from config.trust import doubt


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "why"),
    [
        (0o644, 0o755, None),
        (0o600, 0o700, None),
        (0o644, 0o1777, None),  # as /tmp: others cannot put another file in its place
        (0o664, 0o755, None),  # of a group that is the user's alone, as many systems have it
        (0o646, 0o755, "other users can change it"),
        (0o644, 0o777, "other users can put another file in its place"),
    ],
)
def test_a_file_that_others_can_change_is_not_read(
    clean: Path,
    capsys: pytest.CaptureFixture[str],
    file_mode: int,
    folder_mode: int,
    why: str | None,
) -> None:
    file = clean / "ringhaul.toml"
    file.write_text("[cluster]\nport = 2\n")
    file.chmod(file_mode)
    clean.chmod(folder_mode)
    try:
        loaded = load_settings()
        load_settings()
    finally:
        clean.chmod(0o700)
    assert loaded.settings.cluster.port == (2 if why is None else 9042)
    assert loaded.config_file == (file if why is None else None)
    told = capsys.readouterr().err
    if why is None:
        assert told == ""
    else:
        assert told.startswith(f"warning: {file} is not read: {why}; ")
        assert "--config" in told and told.count("\n") == 1, "once, with what to do"


def test_a_file_of_another_user_is_not_read(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clean / "ringhaul.toml"
    file.write_text("[cluster]\nport = 2\n")
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    assert doubt(file) == "it belongs to another user"
    assert load_settings().config_file is None
    assert load_settings(config_file=file).settings.cluster.port == 2, "named, it is read"


def test_a_file_that_another_group_can_change_is_not_read(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = clean / "ringhaul.toml"
    file.write_text("")
    file.chmod(0o664)
    monkeypatch.setattr("os.getegid", lambda: file.stat().st_gid + 1)
    assert doubt(file) == "other users can change it"


def test_a_named_file_that_everybody_can_change_is_read_with_a_warning(
    clean: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = clean / "named.toml"
    file.write_text("[cluster]\nport = 3\n")
    file.chmod(0o646)
    assert load_settings(config_file=file).settings.cluster.port == 3
    told = f"warning: every user of this host can change {file}: `chmod o-w` it\n"
    assert capsys.readouterr().err == told

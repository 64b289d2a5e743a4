"""Settings files found in the current folder: which owners and modes are trusted."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from config.settings import load_settings
from config.trust import why_untrusted


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "why"),
    [
        (0o644, 0o755, None),
        (0o600, 0o700, None),
        (0o644, 0o1777, None),  # like /tmp: others cannot replace the file
        (0o664, 0o755, None),  # group-writable by the user's private group
        (0o644, 0o775, None),
        (0o646, 0o755, "other users can change it"),
        (0o644, 0o777, "other users can replace it"),
    ],
)
@pytest.mark.usefixtures("private_group")
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
    warning = capsys.readouterr().err
    if why is None:
        assert warning == ""
    else:
        assert warning.startswith(f"warning: {file} is not read: {why}; ")
        assert "--config" in warning and warning.count("\n") == 1, "one line, with what to do"


def test_a_file_of_another_user_is_not_read(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clean / "ringhaul.toml"
    file.write_text("[cluster]\nport = 2\n")
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    assert why_untrusted(file) == "it belongs to another user"
    assert load_settings().config_file is None
    assert load_settings(config_file=file).settings.cluster.port == 2, "a named file is read"


@pytest.mark.parametrize(
    ("primary", "name", "members"),
    [
        (False, "me", []),  # a second group of the user
        (True, "users", []),  # the primary group of all users, as on some systems
        (True, "me", ["me", "mallory"]),
    ],
)
def test_a_file_that_a_group_can_change_is_not_read(
    clean: Path, monkeypatch: pytest.MonkeyPatch, primary: bool, name: str, members: list[str]
) -> None:
    file = clean / "ringhaul.toml"
    file.write_text("")
    clean.chmod(0o700)
    gid = file.stat().st_gid
    _as_user(monkeypatch, gid if primary else gid + 1, name, members)
    file.chmod(0o664)
    assert why_untrusted(file) == "other users can change it"
    assert load_settings().config_file is None
    file.chmod(0o644)
    clean.chmod(0o770)
    assert why_untrusted(file) == "other users can replace it"
    clean.chmod(0o1770)
    assert why_untrusted(file) is None
    file.chmod(0o664)
    monkeypatch.setattr("config.trust.grp.getgrgid", _unknown_group)
    assert why_untrusted(file) == "other users can change it", "a group without a name"


def test_a_folder_of_another_user_has_no_settings_for_us(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner can hard-link any file of ours into it, sticky or not."""
    file = clean / "ringhaul.toml"
    file.write_text("")
    clean.chmod(0o1755)
    found = Path.stat

    def of_another(path: Path, **options: bool) -> os.stat_result:
        result = found(path, **options)
        if path != clean:
            return result
        return os.stat_result((*result[:4], 12345, *result[5:]))

    monkeypatch.setattr(Path, "stat", of_another)
    assert why_untrusted(file) == "its folder belongs to another user"
    assert load_settings().config_file is None


def test_a_link_is_trusted_as_its_target(clean: Path) -> None:
    (clean / "open").mkdir()
    (clean / "open" / "real.toml").write_text("")
    (clean / "ringhaul.toml").symlink_to("open/real.toml")
    clean.chmod(0o700)
    assert why_untrusted(clean / "ringhaul.toml") is None
    (clean / "open").chmod(0o777)
    assert why_untrusted(clean / "ringhaul.toml") == "other users can replace it"
    (clean / "open").chmod(0o755)
    (clean / "open" / "real.toml").chmod(0o646)
    assert why_untrusted(clean / "ringhaul.toml") == "other users can change it"


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "warned"),
    [
        (0o644, 0o755, ""),
        (0o664, 0o755, "other users can change {file}: `chmod go-w` it"),
        (
            0o644,
            0o775,
            "other users can replace {file}: `chmod go-w {file.parent}`",
        ),
        (
            0o644,
            0o777,
            "other users can replace {file}: `chmod go-w {file.parent}`",
        ),
        (0o644, 0o1777, ""),
    ],
)
def test_a_named_file_that_others_can_change_is_read_with_a_warning(
    clean: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file_mode: int,
    folder_mode: int,
    warned: str,
) -> None:
    file = clean / "etc" / "named.toml"
    file.parent.mkdir()
    file.write_text("[cluster]\nport = 3\n")
    _as_user(monkeypatch, file.stat().st_gid, "users", [])
    file.chmod(file_mode)
    file.parent.chmod(folder_mode)
    assert load_settings(config_file=file).settings.cluster.port == 3
    warning = capsys.readouterr().err
    assert warning == (f"warning: {warned.format(file=file)}\n" if warned else "")


@pytest.fixture
def private_group(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the user a private group of the same name, as many systems do."""
    _as_user(monkeypatch, clean.stat().st_gid, "me", ["me"])


def _as_user(monkeypatch: pytest.MonkeyPatch, gid: int, group: str, members: list[str]) -> None:
    monkeypatch.setattr(
        "config.trust.pwd.getpwuid", lambda uid: SimpleNamespace(pw_name="me", pw_gid=gid)
    )
    monkeypatch.setattr(
        "config.trust.grp.getgrgid", lambda gid: SimpleNamespace(gr_name=group, gr_mem=members)
    )


def _unknown_group(gid: int) -> None:
    raise KeyError(gid)


def test_a_named_file_that_everybody_can_change_is_read_with_a_warning(
    clean: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = clean / "named.toml"
    file.write_text("[cluster]\nport = 3\n")
    file.chmod(0o646)
    assert load_settings(config_file=file).settings.cluster.port == 3
    warning = f"warning: every user of this host can change {file}: `chmod o-w` it\n"
    assert capsys.readouterr().err == warning

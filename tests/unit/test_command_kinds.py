"""The first command of a kind in a run starts as a user's does, in whichever process that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance import command


def test_each_kind_is_the_first_once_in_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_kinds_folders", [])

    def first_in_a_new_process(kind: tuple[str, ...]) -> bool:
        monkeypatch.setattr(command, "_kinds_run", set())
        command.share_kinds(tmp_path / "kinds")
        return command._is_first(kind)

    assert first_in_a_new_process(("load",))
    assert not command._is_first(("load",))
    assert not first_in_a_new_process(("load",))
    assert first_in_a_new_process(("schedule", "list"))


def test_a_process_without_a_folder_remembers_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_kinds_folders", [])
    monkeypatch.setattr(command, "_kinds_run", set())
    assert command._is_first(("load",))
    assert not command._is_first(("load",))

"""Options of Flower: defaults, secrets, and a Flower that cannot be guarded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import flower.command
import flower.options  # defines the options
import pytest
from tornado.options import options

from config.errors import ConfigError
from config.known_secrets import hide
from config.sections import Settings, WebSettings
from producer.web.launch import prepare, refuse_unsafe
from ringhaul.errors import UsageError


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path / "state")


@pytest.fixture(autouse=True)
def untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Options are global to the process: put them back."""
    monkeypatch.setattr(flower.command, "Flower", flower.command.Flower)
    for name in [name for name in os.environ if name.startswith("FLOWER_")]:
        monkeypatch.delenv(name)
    before = {name: option._value for name, option in options._options.items()}
    yield
    for name, value in before.items():
        options._options[name]._value = value


def final(settings: Settings, *arguments: str) -> SimpleNamespace:
    """The options as Flower's command leaves them, in its own order."""
    given = prepare(settings, list(arguments))
    flower.command.apply_env_options()
    flower.command.apply_options("flower", given)
    return SimpleNamespace(**options.as_dict())


def test_defaults(settings: Settings) -> None:
    found = final(settings)
    assert found.address == "127.0.0.1"
    assert (found.max_tasks, found.max_workers, found.purge_offline_workers) == (20_000, 500, 300)
    assert found.conf == os.devnull
    assert found.db == str(settings.state_dir / "web" / "tasks")
    assert found.read_only is None, "the application sets it"


def test_variables_and_the_command_line_override_defaults(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWER_MAX_TASKS", "5")
    monkeypatch.setenv("FLOWER_MAX_WORKERS", "6")
    found = final(settings, "--max_workers=7", "--read_only=False")
    assert (found.max_tasks, found.max_workers, found.read_only) == (5, 7, False)


@pytest.mark.parametrize(
    "option",
    [
        *("--basic_auth=me:sesame", "--basic-auth=me:sesame", "-basic_auth=x", "--basic_auth"),
        *("--oauth2_secret=x", "--cookie-secret=x", "--broker_api=http://u:p@h/api/"),
    ],
)
def test_no_option_takes_a_secret(option: str) -> None:
    with pytest.raises(UsageError, match="every user of this host can see: set FLOWER_") as refused:
        refuse_unsafe(["--port=1", option])
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("value", ["true", "1", "yes", "on", "nonsense"])
def test_an_api_without_log_in_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_UNAUTHENTICATED_API", value)
    with pytest.raises(UsageError, match="every web site"):
        refuse_unsafe([])


@pytest.mark.parametrize("value", ["", "false", "0", "No"])
def test_an_api_with_log_in_is_fine(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_UNAUTHENTICATED_API", value)
    refuse_unsafe(["--port=5555", "--persistent=True"])


def test_log_ins_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("ops:open, sesame\n\nguest:peekaboo-1\n")
    settings = Settings(state_dir=tmp_path, web=WebSettings(basic_auth_file=file))
    assert final(settings).basic_auth == ["ops:open, sesame", "guest:peekaboo-1"]
    assert hide("peekaboo-1 and open, sesame") == "*** and ***"


@pytest.mark.parametrize("text", ["", "nobody\n", "ops:\n", ":secret\n", "ops:s\u00e9same\n"])
def test_a_file_without_log_ins_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    settings = Settings(state_dir=tmp_path, web=WebSettings(basic_auth_file=file))
    with pytest.raises(ConfigError, match=r"web\.basic_auth_file: .*users") as refused:
        prepare(settings, [])
    assert not text or text.strip() not in str(refused.value)


def test_secrets_of_variables_are_hidden_in_logs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWER_BASIC_AUTH", "a:first-secret,b:second-secret")
    monkeypatch.setenv("FLOWER_OAUTH2_SECRET", "third-secret")
    monkeypatch.setenv("FLOWER_COOKIE_SECRET", "fourth-secret")
    prepare(settings, [])
    assert "secret" not in hide("first-secret second-secret third-secret fourth-secret")


def application(settings: Settings) -> None:
    flower.command.Flower(capp=None, options=options)


@pytest.mark.parametrize(
    ("where", "why"),
    [("shared/db", "other users can change it"), ("shared/own/db", "other users can replace it")],
)
def test_a_folder_that_others_can_write_to_holds_no_pickles(
    settings: Settings, tmp_path: Path, where: str, why: str
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    db = tmp_path / where
    final(settings, "--persistent=True", f"--db={db}")
    with pytest.raises(UsageError, match=f"what others put into {db.parent}, and {why}"):
        application(settings)


def test_a_flower_that_cannot_be_guarded_serves_its_own_pages_on_loopback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # 1. A Flower whose command creates its application in another way.
    monkeypatch.delattr(flower.command, "Flower")
    # 2. Whatever the user says, the safe options are the last.
    monkeypatch.setenv("FLOWER_READ_ONLY", "false")
    found = final(settings, "--address=0.0.0.0", "--unix_socket=/tmp/s", "--port=7")
    assert (found.address, found.unix_socket) == ("127.0.0.1", "")
    assert (found.read_only, found.port) == (True, 7)
    assert "cannot be guarded" in capsys.readouterr().err

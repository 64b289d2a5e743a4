"""Flags are settings. They reach workers through the environment that these are started with."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
import rich_click as click

from config.broker import broker_url
from config.errors import ConfigError
from config.sections import BrokerSettings
from config.settings import Loaded, load_settings
from producer.cli import cli
from producer.commands.options import ledger_options
from producer.options.connection import LedgerPlace
from producer.request.settings import CONNECTION_FLAGS, connection_flags, settle
from producer.request.values import comma_list
from producer.services.embedded import enter_broker
from producer.services.ledger import settings_of
from ringhaul.errors import UsageError
from tasks.settings import process_settings
from tests.options import parse_options


def in_a_worker(loaded: Loaded, monkeypatch: pytest.MonkeyPatch, folder: Path = Path()) -> Loaded:
    """The settings that a child process with the environment of these reads in this folder."""
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        environment = loaded.environment()
        for name in os.environ.keys() - environment:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        return load_settings()


def test_flags_win_and_reach_workers_and_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    os.environ["RINGHAUL_CLUSTER_PORT"] = "9999"
    before = dict(os.environ)
    # When flags are settled
    loaded = settle(
        {"cluster.contact_points": "a,b", "cluster.port": 9043, "cluster.local_dc": None}, None
    )
    # Then they are the settings
    assert loaded.settings.cluster.contact_points == ("a", "b")
    assert loaded.settings.cluster.port == 9043
    assert loaded.origins["cluster.port"] == "flag"
    # And a worker that starts with this environment has them too, and only those
    environment = loaded.environment()
    assert environment["RINGHAUL_CLUSTER_CONTACT_POINTS"] == "a,b"
    assert "RINGHAUL_CLUSTER_LOCAL_DC" not in environment
    assert in_a_worker(loaded, monkeypatch).settings.cluster == loaded.settings.cluster
    # And this process's own environment is unchanged
    assert dict(os.environ) == before


def test_a_bad_flag_is_named_as_it_was_written() -> None:
    flags = {"cluster.port": 0, "load.unit_bytes": "1X"}
    with pytest.raises(ConfigError) as refusal:
        settle(flags, None)
    assert [line.partition("):")[0] for line in str(refusal.value).splitlines()] == [
        "cluster.port = 0 (--port",
        'load.unit_bytes = "1X" (--unit-size',
    ]


def test_a_list_reaches_the_workers_as_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = settle({"cluster.contact_points": ("a", "b")}, None)
    assert in_a_worker(loaded, monkeypatch).settings.cluster.contact_points == ("a", "b")


def test_the_settings_file_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a settings file named by a relative path
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text("[cluster]\nport = 9044\n")
    loaded = settle({}, Path("my.toml"))
    assert loaded.settings.cluster.port == 9044
    # Then a worker in another folder reads the same
    (tmp_path / "else").mkdir()
    assert in_a_worker(loaded, monkeypatch, tmp_path / "else").settings.cluster.port == 9044


def test_a_file_that_no_flag_names_is_left_to_the_search_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ringhaul.toml").write_text("[cluster]\nport = 9044\n")
    loaded = settle({}, None)
    assert loaded.settings.cluster.port == 9044
    assert "RINGHAUL_CONFIG" not in loaded.environment()


@pytest.mark.parametrize("url", ["redis://:hush@host/0", "rediss://me:hush@host:6380/1"])
def test_a_password_on_the_command_line_is_refused_and_not_stored(url: str) -> None:
    with pytest.raises(UsageError) as refusal:
        settle({"broker.url": url}, None)
    assert "RINGHAUL_BROKER_URL" in str(refusal.value)
    assert "hush" not in str(refusal.value)


FILE_OF_ANOTHER = """
[broker]
url = "rediss://broker.example:6380/0"
password_file = "password"
tls_ca = "ca.pem"
[cluster]
local_dc = "dc1"
user = "me"
password_file = "password"
"""


def test_broker_none_replaces_the_configured_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its password and certificates are dropped too, also for the workers of this command."""
    path = tmp_path / "ringhaul.toml"
    path.write_text(FILE_OF_ANOTHER)
    os.environ["RINGHAUL_BROKER_TLS_CERT"] = os.environ["RINGHAUL_BROKER_TLS_KEY"] = "own.pem"
    os.environ["RINGHAUL_STATE_DIR"] = str(tmp_path / "state")
    assert not settle({}, path).is_embedded

    loaded = settle({"broker.url": "none"}, path)

    assert loaded.is_embedded
    worker = in_a_worker(loaded, monkeypatch)
    assert worker.is_embedded
    assert loaded.settings.broker == worker.settings.broker == BrokerSettings()
    # And while the embedded broker runs, workers and this process's Celery use it
    with ExitStack() as stack:
        with_it, broker = enter_broker(stack, loaded)
        assert broker is not None
        for one in (with_it, in_a_worker(with_it, monkeypatch)):
            assert not one.is_embedded
            assert one.settings.broker == process_settings().broker
            assert one.settings.broker.url.startswith("redis://127.0.0.1:")
            assert one.settings.broker.tls_ca is None
            assert broker_url(one.settings.broker)


def test_a_configured_broker_is_handed_to_celery_as_it_is() -> None:
    loaded = settle({"broker.url": "redis://host/0"}, None)
    with ExitStack() as stack:
        assert enter_broker(stack, loaded) == (loaded, None)
    assert process_settings() is loaded.settings


def test_an_empty_url_in_a_file_means_no_broker(tmp_path: Path) -> None:
    path = tmp_path / "ringhaul.toml"
    path.write_text('[broker]\nurl = ""\n')
    assert settle({}, path).is_embedded


def test_an_empty_broker_is_refused() -> None:
    with pytest.raises(UsageError, match="--broker is empty: "):
        settle({"broker.url": ""}, None)


def test_an_empty_flag_overrides_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ringhaul.toml"
    path.write_text(FILE_OF_ANOTHER)
    os.environ["RINGHAUL_CLUSTER_LOCAL_DC"] = "dc2"
    flags = {"cluster.local_dc": "", "cluster.user": "", "cluster.password_file": ""}
    loaded = settle(flags, path)
    found = loaded.settings.cluster
    assert (found.local_dc, found.user, found.password_file) == ("", "", None)
    # A worker has the same settings
    assert in_a_worker(loaded, monkeypatch).settings.cluster == found
    # And so has a command that it starts, unless that one gets another flag
    for name, value in loaded.environment().items():
        os.environ[name] = value
    assert settle({}, config_file=None).settings.cluster == found
    again = settle({"cluster.local_dc": "dc3"}, None)
    assert again.settings.cluster.local_dc == "dc3"
    assert in_a_worker(again, monkeypatch).settings.cluster.local_dc == "dc3"
    assert in_a_worker(again, monkeypatch).settings.cluster.user == ""


def test_flags_that_are_added_later_reach_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = settle({"load.batch_rows_max": 7, "cluster.port": 9043}, None)
    added = loaded.with_flags({"load.batch_rows_max": 0, "query.spill_dir": Path("/p")})
    for one in (added, in_a_worker(added, monkeypatch)):
        assert one.settings.load.batch_rows_max == 0
        assert one.settings.query.spill_dir == Path("/p")
        assert one.settings.cluster.port == 9043
    assert added.origins["query.spill_dir"] == "flag"
    assert loaded.settings.load.batch_rows_max == 7
    assert in_a_worker(loaded, monkeypatch).settings.load.batch_rows_max == 7


def test_commands_that_inspect_a_job_use_its_broker(tmp_path: Path) -> None:
    seen: list[str] = []

    @click.command()
    @ledger_options
    def look(place: LedgerPlace) -> None:
        seen.append(settings_of(place).settings.broker.url)

    path = tmp_path / "ringhaul.toml"
    path.write_text(FILE_OF_ANOTHER.replace("rediss", "redis").replace('tls_ca = "ca.pem"', ""))
    for broker in ([], ["--broker", "redis://host/1"], ["--broker", "none"]):
        look.main(["--config", str(path), *broker], standalone_mode=False)
    assert seen == ["redis://broker.example:6380/0", "redis://host/1", ""]
    with pytest.raises(UsageError, match="--broker holds a password"):
        look.main(["--broker", "redis://:hush@host/0"], standalone_mode=False)


@pytest.mark.parametrize("words", ["status", "errors", "top", "pause", "throttle", "cancel"])
def test_each_such_command_uses_the_broker_of_the_job(words: str) -> None:
    command = cli.get_command(click.Context(cli), words)
    assert command is not None
    assert {"broker", "config_file"} <= {param.name for param in command.params}


def test_a_broker_without_a_password_may_be_a_flag() -> None:
    assert settle({"broker.url": "redis://host/0"}, None).settings.broker.url == "redis://host/0"


def test_every_connection_flag_is_a_setting() -> None:
    origins = load_settings().origins
    assert set(CONNECTION_FLAGS.values()) <= set(origins)
    given = parse_options("count", "-t", "k.t", "--port", "9045", "--local-dc", "dc2")
    assert connection_flags(given)["cluster.port"] == 9045
    assert connection_flags(given)["cluster.local_dc"] == "dc2"


@pytest.mark.parametrize(
    ("text", "parts"),
    [(None, []), ("", []), ("a", ["a"]), (" a, b ,,c ", ["a", "b", "c"]), (",", [])],
)
def test_comma_lists(text: str | None, parts: list[str]) -> None:
    assert comma_list(text) == parts

"""Flags are settings, and reach the workers through the environment like all settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import rich_click as click

from config.broker import broker_url
from config.errors import ConfigError
from config.sections import BrokerSettings
from config.settings import load_settings
from producer.cli import cli
from producer.commands.options import ledger_options
from producer.request.settings import CONNECTION_FLAGS, connection_flags, is_embedded, settle
from producer.request.values import comma_list
from producer.services.embedded import EmbeddedBroker
from ringhaul.errors import UsageError
from tests.options import parse_options


def test_flags_win_and_are_left_in_the_environment_for_workers() -> None:
    os.environ["RINGHAUL_CLUSTER_PORT"] = "9999"
    # When flags are settled
    loaded = settle(
        {"cluster.contact_points": "a,b", "cluster.port": 9043, "cluster.local_dc": None}, None
    )
    # Then they are the settings
    assert loaded.settings.cluster.contact_points == ("a", "b")
    assert loaded.settings.cluster.port == 9043
    assert loaded.origins["cluster.port"] == "flag"
    # And a worker that starts with this environment has them too, and only those
    assert os.environ["RINGHAUL_CLUSTER_CONTACT_POINTS"] == "a,b"
    assert "RINGHAUL_CLUSTER_LOCAL_DC" not in os.environ
    assert load_settings().settings.cluster == loaded.settings.cluster


def test_a_bad_flag_is_named_as_it_was_written() -> None:
    flags = {"cluster.port": 0, "load.unit_bytes": "1X"}
    with pytest.raises(ConfigError) as refusal:
        settle(flags, None)
    assert [line.partition("):")[0] for line in str(refusal.value).splitlines()] == [
        "cluster.port = 0 (--port",
        'load.unit_bytes = "1X" (--unit-size',
    ]


def test_a_list_reaches_the_workers_as_a_list() -> None:
    settle({"cluster.contact_points": ("a", "b")}, None)
    assert load_settings().settings.cluster.contact_points == ("a", "b")


def test_the_settings_file_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a settings file named by a relative path
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text("[cluster]\nport = 9044\n")
    assert settle({}, Path("my.toml")).settings.cluster.port == 9044
    # Then a worker in another folder reads the same
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert load_settings().settings.cluster.port == 9044


@pytest.mark.parametrize("url", ["redis://:hush@host/0", "rediss://me:hush@host:6380/1"])
def test_a_password_on_the_command_line_is_refused_and_not_stored(url: str) -> None:
    with pytest.raises(UsageError) as refusal:
        settle({"broker.url": url}, None)
    assert "RINGHAUL_BROKER_URL" in str(refusal.value)
    assert "hush" not in str(refusal.value)
    assert "RINGHAUL_BROKER_URL" not in os.environ


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


def test_broker_none_replaces_the_configured_broker(tmp_path: Path) -> None:
    """Its password and certificates are dropped too, also for the workers of this command."""
    path = tmp_path / "ringhaul.toml"
    path.write_text(FILE_OF_ANOTHER)
    os.environ["RINGHAUL_BROKER_TLS_CERT"] = os.environ["RINGHAUL_BROKER_TLS_KEY"] = "own.pem"
    os.environ["RINGHAUL_STATE_DIR"] = str(tmp_path / "state")
    assert not is_embedded(settle({}, path))

    loaded = settle({"broker.url": "none"}, path)

    assert is_embedded(loaded)
    assert is_embedded(load_settings()), "a worker that starts with this environment"
    assert loaded.settings.broker == load_settings().settings.broker == BrokerSettings()
    # And while the embedded broker runs, all settings use it
    with EmbeddedBroker(loaded.settings.state_dir):
        embedded = load_settings()
        assert embedded.settings.broker.url.startswith("redis://127.0.0.1:")
        assert embedded.settings.broker.tls_ca is None
        assert broker_url(embedded.settings.broker)
    assert is_embedded(load_settings())
    # until another broker is given
    assert not is_embedded(settle({"broker.url": "redis://host/0"}, None))
    assert load_settings().settings.broker.url == "redis://host/0"


def test_an_empty_url_in_a_file_means_no_broker(tmp_path: Path) -> None:
    path = tmp_path / "ringhaul.toml"
    path.write_text('[broker]\nurl = ""\n')
    assert is_embedded(settle({}, path))


def test_an_empty_broker_is_refused() -> None:
    with pytest.raises(UsageError, match="--broker is empty: "):
        settle({"broker.url": ""}, None)


def test_an_empty_flag_overrides_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "ringhaul.toml"
    path.write_text(FILE_OF_ANOTHER)
    os.environ["RINGHAUL_CLUSTER_LOCAL_DC"] = "dc2"
    flags = {"cluster.local_dc": "", "cluster.user": "", "cluster.password_file": ""}
    loaded = settle(flags, path)
    found = loaded.settings.cluster
    assert (found.local_dc, found.user, found.password_file) == ("", "", None)
    # A worker that starts with this environment has the same
    assert load_settings().settings.cluster == found
    # and another flag, or no flag, works as before
    assert settle({}, config_file=None).settings.cluster == found
    assert settle({"cluster.local_dc": "dc3"}, None).settings.cluster.local_dc == "dc3"
    assert load_settings().settings.cluster.local_dc == "dc3"


def test_commands_that_inspect_a_job_use_its_broker(tmp_path: Path) -> None:
    seen: list[tuple[Path | None, str]] = []

    @click.command()
    @ledger_options
    def look(config_file: Path | None) -> None:
        seen.append((config_file, settle({}, config_file).settings.broker.url))

    path = tmp_path / "ringhaul.toml"
    path.write_text(FILE_OF_ANOTHER.replace("rediss", "redis").replace('tls_ca = "ca.pem"', ""))
    for broker in ([], ["--broker", "redis://host/1"], ["--broker", "none"]):
        look.main(["--config", str(path), *broker], standalone_mode=False)
    urls = ["redis://broker.example:6380/0", "redis://host/1", ""]
    assert seen == [(path, url) for url in urls]
    with pytest.raises(UsageError, match="--broker holds a password"):
        look.main(["--broker", "redis://:hush@host/0"], standalone_mode=False)


@pytest.mark.parametrize("words", ["status", "errors", "top", "pause", "throttle", "cancel"])
def test_each_such_command_uses_the_broker_of_the_job(words: str) -> None:
    command = cli.get_command(click.Context(cli), words)
    assert command is not None
    assert {"broker", "config_file"} <= {param.name for param in command.params}


def test_a_broker_without_a_password_may_be_a_flag() -> None:
    assert settle({"broker.url": "redis://host/0"}, None).settings.broker.url == "redis://host/0"


def test_an_unusable_flag_leaves_the_environment_unchanged() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.port"):
        settle({"cluster.contact_points": "a", "cluster.port": 0}, None)
    assert "RINGHAUL_CLUSTER_CONTACT_POINTS" not in os.environ


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

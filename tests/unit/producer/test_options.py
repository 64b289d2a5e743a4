"""Flags are settings, and reach the workers by the same road as every setting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.errors import ConfigError
from config.settings import load_settings
from producer.options import CONNECTION_FLAGS, comma_list, connection_flags, settle
from ringhaul.errors import UsageError


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
    # And a worker that starts with this environment has them too; what was not given is not there
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
    # Given a file that is named from the folder it is in
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text("[cluster]\nport = 9044\n")
    assert settle({}, Path("my.toml")).settings.cluster.port == 9044
    # Then a worker in another folder reads the same
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert load_settings().settings.cluster.port == 9044


@pytest.mark.parametrize("url", ["redis://:hush@host/0", "rediss://me:hush@host:6380/1"])
def test_a_password_on_the_command_line_is_refused_and_goes_nowhere(url: str) -> None:
    with pytest.raises(UsageError) as refusal:
        settle({"broker.url": url}, None)
    assert "RINGHAUL_BROKER_URL" in str(refusal.value)
    assert "hush" not in str(refusal.value)
    assert "RINGHAUL_BROKER_URL" not in os.environ


def test_a_broker_without_a_password_may_be_a_flag() -> None:
    assert settle({"broker.url": "redis://host/0"}, None).settings.broker.url == "redis://host/0"


def test_a_flag_that_cannot_be_used_leaves_the_environment_as_it_was() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.port"):
        settle({"cluster.contact_points": "a", "cluster.port": 0}, None)
    assert "RINGHAUL_CLUSTER_CONTACT_POINTS" not in os.environ


def test_every_connection_flag_is_a_setting() -> None:
    origins = load_settings().origins
    assert set(CONNECTION_FLAGS.values()) <= set(origins)
    given = dict.fromkeys(CONNECTION_FLAGS) | {"port": 9045, "local_dc": "dc2"}
    assert connection_flags(given)["cluster.port"] == 9045
    assert connection_flags(given)["cluster.local_dc"] == "dc2"


@pytest.mark.parametrize(
    ("text", "parts"),
    [(None, []), ("", []), ("a", ["a"]), (" a, b ,,c ", ["a", "b", "c"]), (",", [])],
)
def test_comma_lists(text: str | None, parts: list[str]) -> None:
    assert comma_list(text) == parts

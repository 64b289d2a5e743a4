import json
import stat
from pathlib import Path
from typing import Any

import pytest

from config.names import env_name
from config.sections import Settings, setting_keys
from config.settings import load_settings
from tests.cases import each
from tests.unit.config.refusals import refused


def write_stack(state_dir: Path, **values: Any) -> None:
    state_dir.mkdir(parents=True, exist_ok=True)
    stack = {
        "contact_points": ["127.0.1.1", "127.0.1.2"],
        "port": 9043,
        "local_dc": "datacenter1",
        "broker_url": "redis://:local@127.0.0.1:6380/0",
    }
    (state_dir / "local.json").write_text(json.dumps(stack | values))


# --- precedence


def test_nothing_configured_gives_the_defaults(clean: Path) -> None:
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.config_file is None
    assert loaded.settings.state_dir == clean / "home/.local/state/ringhaul"
    assert loaded.settings.cache_dir == clean / "home/.cache/ringhaul"


def test_each_layer_wins_over_the_one_below(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stack(clean / "home/.local/state/ringhaul")
    steps: list[tuple[int, str]] = []

    def look() -> None:
        loaded = load_settings(flags)
        steps.append((loaded.settings.cluster.port, loaded.origins["cluster.port"]))

    flags: dict[str, Any] = {"cluster.port": None}
    look()
    (clean / "ringhaul.toml").write_text("[cluster]\nport = 3\n")
    look()
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", "2")
    look()
    flags = {"cluster.port": 1}
    look()
    assert steps == [
        (9043, "local stack"),
        (3, f"file {clean / 'ringhaul.toml'}"),
        (2, "env RINGHAUL_CLUSTER_PORT"),
        (1, "flag"),
    ]


def test_every_setting_can_be_given_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # Values that differ from every default and agree with each other.
    values = {
        "cluster.contact_points": "10.0.0.1, ::1",
        "cluster.host_ids": "9f2c1d3e-8b4a-4c5d-9e6f-7a8b9c0d1e2f",
        "cluster.allowed_nodes": "10.0.0.0/24, ::1",
        "cluster.denied_nodes": "10.0.0.7",
        "cluster.tls": "true",
        "cluster.tls_verify_hostname": "false",
        "cluster.compression": "LZ4",
        "cluster.consistency": "local_one",
        "broker.url": "rediss://broker.example:6380/3",
        "load.strategy": "token-batch",
        "load.max_errors": "2.5%",
        "metrics.jobs": "true",
        "tracing.endpoint": "http://collector.example:4318",
        "logging.level": "debug",
        "logging.format": "json",
        "broker.visibility_timeout_s": "7777",
        "worker.time_limit_hard_s": "2000",
        "worker.sweep_s": "3",
        "load.block_bytes": "64KiB",
        "load.in_flight_bytes_max": "1MB",
        "query.partial_bytes_max": "64KiB",
        "sstables.size_bytes": "2 GiB",
        "sstables.sort_bytes": "1 MiB",
        "sstables.spill_bytes_max": "3 GiB",
        "imports.folder": "/mnt/imports/{node}",
        "imports.node_folder": "/imports",
        "imports.input_bytes_min": "1 MiB",
        "streaming.tls": "true",
        "streaming.tls_verify_hostname": "true",
        "storage.schemes": "s3, https",
        "storage.s3_endpoint_url": "https://minio.example:9000",
        "storage.private_addresses": "true",
        "storage.allowed_roots": "/data, s3://bucket",
        "transform.allowed": "etl:mask, acme.people:*",
        "web.read_only": "false",
        "web.show_data": "true",
        "web.hosts": "etl.example.com, flower",
        "web.authentication": "proxy",
    }
    keys = dict(setting_keys())
    del keys["cluster.secure_connect_bundle"]  # excludes some of the others
    for key, field in keys.items():
        plain = "33" if field.annotation in (int, float) else "a text"
        monkeypatch.setenv(env_name(key), values.get(key, plain))
    loaded = load_settings()
    of_a_bundle = {"cluster.secure_connect_bundle": "default"}
    assert loaded.origins == {key: f"env {env_name(key)}" for key in keys} | of_a_bundle
    defaults = {row.key: row.value for row in load_defaults(monkeypatch).describe()}
    for row in loaded.describe():
        assert row.key not in keys or row.value != defaults[row.key], row.key
    assert loaded.settings.cluster.contact_points == ("10.0.0.1", "::1")
    assert loaded.settings.load.block_bytes == 65536
    assert loaded.settings.load.in_flight_bytes_max == 1_000_000
    assert loaded.settings.cluster.consistency == "LOCAL_ONE"


def load_defaults(monkeypatch: pytest.MonkeyPatch) -> Any:
    for key in setting_keys():
        monkeypatch.delenv(env_name(key), raising=False)
    return load_settings()


def test_settings_made_directly_read_the_same_layers(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stack(clean / "home/.local/state/ringhaul")
    (clean / "ringhaul.toml").write_text("[worker]\nlease_s = 7\nsweep_s = 1\n")
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", "2")
    monkeypatch.setenv("RINGHAUL_WORKER_LEASE_S", "8")
    settings = Settings(cluster={"port": 1})  # type: ignore[arg-type]
    assert settings == load_settings({"cluster.port": 1}).settings
    assert (settings.cluster.port, settings.cluster.local_dc) == (1, "datacenter1")
    assert (settings.worker.lease_s, settings.worker.sweep_s) == (8, 1)


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", "")
    assert load_settings().origins["cluster.port"] == "default"


# --- names and values


def test_unknown_names_are_errors_that_suggest_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (
        refused({"broker.ulr": "x"}) == "there is no setting broker.ulr; did you mean broker.url?"
    )
    monkeypatch.setenv("RINGHAUL_BROKER_ULR", "x")
    assert refused() == (
        "the environment variable RINGHAUL_BROKER_ULR is not a setting of ringhaul;"
        " did you mean RINGHAUL_BROKER_URL?"
    )


def test_a_section_alone_is_not_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_CLUSTER", '{"port": 1}')
    assert refused().startswith("the environment variable RINGHAUL_CLUSTER is not a setting")


def test_a_variable_counts_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ringhaul_cluster_port", "1")
    assert load_settings().settings.cluster.port == 1
    monkeypatch.setenv("ringhaul_cluster_prot", "1")
    assert refused() == (
        "the environment variable ringhaul_cluster_prot is not a setting of ringhaul;"
        " did you mean RINGHAUL_CLUSTER_PORT?"
    )


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("cluster.port", "0", "expected greater than or equal to 1"),
        ("cluster.port", "65536", "expected less than or equal to 65535"),
        ("cluster.port", "9042.5", "expected a whole number"),
        ("cluster.contact_points", "a,,b", "expected host names or addresses"),
        ("cluster.contact_points", "a:9042", "without a port"),
        ("cluster.contact_points", "redis://a", "expected host names or addresses"),
        ("cluster.consistency", "SERIAL", "expected 'ANY', 'ONE'"),
        ("cluster.request_timeout_s", "nan", "expected less than or equal to 600"),
        ("broker.url", "amqp://host", "expected redis://"),
        ("broker.url", "redis://", "expected redis://"),
        ("broker.url", "redis://host:port", "expected redis://"),
        ("broker.url", "redis://host/db", "expected redis://"),
        ("broker.url", "REDISS://host", "expected redis://"),
        ("broker.url", "redis://host/99999999999", "expected redis://"),
        ("load.unit_bytes", "5 parsecs", 'expected a size such as 65536, "64 KiB" or "1.5 MB"'),
        ("load.block_bytes", "1 KiB", "expected greater than or equal to 65536"),
        ("load.strategy", "fast", "expected 'pipeline', 'single' or 'token-batch'"),
        ("load.max_errors", "-2", "expected a number of records such as 1000"),
        ("load.max_errors", "100.1%", "expected a number of records such as 1000"),
        ("transform.allowed", "etl", "expected functions as module:function"),
        ("transform.allowed", "etl:mask,os;rm:x", "expected functions as module:function"),
        ("imports.command", "ssh 'x", "expected words as in a shell"),
        ("web.hosts", "https://etl.example.com", "expected names of hosts"),
        ("web.hosts", "etl.example.com:5555", "expected names of hosts"),
        ("web.authentication", "none", "expected 'flower' or 'proxy'"),
        ("worker.lease_s", "soon", "expected a number"),
        ("logging.level", "LOUD", "expected 'DEBUG', 'INFO'"),
    ],
)
def test_a_bad_value_is_reported_with_key_value_and_origin(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(env_name(key), value)
    message = refused()
    assert message.startswith(f'{key} = "{value}" (env {env_name(key)}): expected ')
    assert expected in message


@pytest.mark.parametrize(
    ("key", "value", "taken"),
    [
        ("load.unit_bytes", "16M", 16 * 2**20),
        ("load.unit_bytes", "64 KiB", 64 * 2**10),
        ("load.unit_bytes", "1.5 MB", 1_500_000),
        ("load.unit_bytes", "1g", 2**30),
        ("load.max_errors", "-1", "-1"),
        ("load.max_errors", -1, "-1"),
        ("load.max_errors", "0.5%", "0.5%"),
    ],
)
def test_sizes_and_limits_have_several_spellings(key: str, value: str, taken: int | str) -> None:
    section, _, name = key.partition(".")
    settings = load_settings({key: value}).settings
    assert getattr(getattr(settings, section), name) == taken


def test_all_bad_values_are_reported_at_once() -> None:
    lines = refused({"cluster.port": 0, "worker.concurrency": -1}).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["cluster.port", "worker.concurrency"]


def test_bad_names_and_values_of_all_layers_are_reported_at_once(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = clean / "ringhaul.toml"
    file.write_text("frobnicate = 1\n[cluster]\nport = 9042\n[worker]\nleases = 1\n")
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", "x")
    assert refused({"worker.sweep_s": "y"}).splitlines() == [
        'cluster.port = "x" (env RINGHAUL_CLUSTER_PORT): expected a whole number',
        'worker.sweep_s = "y" (flag): expected a number',
        f"{file}, line 5: there is no setting worker.leases; did you mean worker.lease_s?",
        f"{file}, line 1: there is no setting frobnicate",
    ]


@each(
    ("flags", "message"),
    [
        ({"cluster.user": "u"}, "cluster.user needs cluster.password_file"),
        ({"cluster.password_file": "p"}, "cluster.password_file needs cluster.user"),
        ({"cluster.tls": True, "cluster.tls_cert": "c"}, "cluster.tls_cert and cluster.tls_key"),
        ({"cluster.tls_ca": "c"}, "need cluster.tls = true"),
        ({"broker.url": "rediss://h", "broker.tls_key": "k"}, "broker.tls_cert and broker.tls_key"),
        ({"broker.url": "redis://h", "broker.tls_ca": "c"}, "need a broker.url with rediss://"),
        ({"broker.password_file": "p"}, "broker.password_file needs broker.url"),
        ({"broker.visibility_timeout_s": 1800}, "must be above worker.time_limit_hard_s"),
        ({"worker.time_limit_soft_s": 1800}, "must be below worker.time_limit_hard_s"),
        ({"worker.sweep_s": 60}, "worker.sweep_s must be below worker.lease_s"),
        ({"imports.jmx_user": "u"}, "imports.jmx_user and imports.jmx_password_file go together"),
        ({"imports.node_folder": "/a b"}, "imports.node_folder: nodetool takes no folder with a"),
    ],
)
def test_conflicting_settings_are_refused(flags: dict[str, Any], message: str) -> None:
    assert message in refused(flags)


# --- the local stack


def test_the_local_stack_is_used_when_nothing_else_is_configured(clean: Path) -> None:
    write_stack(clean / "state")
    loaded = load_settings({"state_dir": "state"})
    assert loaded.settings.cluster.contact_points == ("127.0.1.1", "127.0.1.2")
    assert loaded.settings.cluster.port == 9043
    assert loaded.settings.cluster.local_dc == "datacenter1"
    assert loaded.settings.broker.url == "redis://:local@127.0.0.1:6380/0"
    assert {key for key, origin in loaded.origins.items() if origin == "local stack"} == {
        "cluster.contact_points",
        "cluster.port",
        "cluster.local_dc",
        "broker.url",
    }


def test_the_local_stack_does_not_mix_with_another_cluster(clean: Path) -> None:
    write_stack(clean / "state", user="u", password_file="/p")
    loaded = load_settings({"state_dir": "state", "cluster.contact_points": "10.0.0.1"})
    assert (
        loaded.settings.cluster
        == Settings(
            cluster={"contact_points": "10.0.0.1"}  # type: ignore[arg-type]
        ).cluster
    )
    assert loaded.origins["broker.url"] == "local stack"
    loaded = load_settings({"state_dir": "state", "broker.url": "redis://h"})
    assert loaded.settings.broker.url == "redis://h"
    assert loaded.settings.cluster.user == "u"
    assert loaded.settings.cluster.password_file == Path("/p")


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_damaged_local_stack_file_is_reported(clean: Path, content: str) -> None:
    (clean / "local.json").write_text(content)
    assert str(clean / "local.json") in refused({"state_dir": clean})


# --- secrets


def test_describe_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_BROKER_URL", "redis://me:S3cret@host:6379/0")
    rows = load_settings().describe()
    assert [row.key for row in rows] == list(setting_keys())
    assert "S3cret" not in repr(rows)
    assert ("broker.url", "redis://me:***@host:6379/0", "env RINGHAUL_BROKER_URL") in rows
    json.dumps([row._asdict() for row in rows])


def test_describe_shows_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_STORAGE_S3_ENDPOINT_URL", "https://s3.example/?sv=1&sig=S3cret")
    rows = {row.key: row.value for row in load_settings().describe()}
    assert rows["storage.s3_endpoint_url"] == "https://s3.example/?sv=***&sig=***"


@pytest.mark.parametrize(
    "url", ["amqp://:S3cret@h", "redis://u:S3c/ret@h", "redis://u:S3c@ret@h:x", "redis://:S3cret@"]
)
def test_a_refused_url_is_shown_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("RINGHAUL_BROKER_URL", url)
    message = refused()
    assert message.startswith("broker.url = ")
    assert "S3c" not in message and "ret@" not in message


def test_messages_of_the_settings_library_hold_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_BROKER_URL", "amqp://:S3cret@h")
    with pytest.raises(ValueError, match=r"broker\.url") as error:
        Settings()
    assert "S3cret" not in str(error.value)


def test_settings_cannot_be_changed_once_read() -> None:
    settings = load_settings().settings
    with pytest.raises(ValueError, match="frozen"):
        settings.cluster.port = 1
    for key in setting_keys():
        section, _, name = key.rpartition(".")
        with pytest.raises(ValueError, match="frozen"):
            setattr(getattr(settings, section) if section else settings, name, None)


def test_reading_settings_creates_no_files(clean: Path) -> None:
    load_settings()
    assert list(clean.iterdir()) == []
    assert stat.S_ISDIR(clean.stat().st_mode)

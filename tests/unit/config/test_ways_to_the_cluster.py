"""Contact points, or a secure connect bundle: which of them counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.settings import load_settings
from producer.request.settings import settle
from tests.unit.config.refusals import refused
from tests.unit.config.test_settings import write_stack

BUNDLE, POINTS = "RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE", "RINGHAUL_CLUSTER_CONTACT_POINTS"


def way(flags: dict[str, object] | None = None) -> tuple[Path | None, tuple[str, ...]]:
    cluster = load_settings(flags).settings.cluster
    return cluster.secure_connect_bundle, cluster.contact_points


def test_the_higher_layers_way_counts(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clean / "ringhaul.toml"
    file.write_text('[cluster]\nsecure_connect_bundle = "b.zip"\n')
    assert way() == (clean / "b.zip", ("127.0.0.1",))
    monkeypatch.setenv(POINTS, "db1")
    assert way() == (None, ("db1",))
    assert way({"cluster.secure_connect_bundle": "c.zip"}) == (clean / "c.zip", ("127.0.0.1",))
    file.write_text('[cluster]\ncontact_points = ["db2"]\n')
    monkeypatch.delenv(POINTS)
    monkeypatch.setenv(BUNDLE, "b.zip")
    assert way() == (clean / "b.zip", ("127.0.0.1",))
    assert way({"cluster.contact_points": "db3"}) == (None, ("db3",))
    # An empty flag turns the bundle off, and leaves the file's contact points
    assert way({"cluster.secure_connect_bundle": ""}) == (None, ("db2",))


def test_both_in_one_layer_are_refused(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clean / "ringhaul.toml"
    file.write_text('[cluster]\nsecure_connect_bundle = "b.zip"\ncontact_points = ["a"]\n')
    both = "cluster.contact_points and cluster.secure_connect_bundle"
    places = f"file {file}, line 3, file {file}, line 2"
    assert refused() == f"{both} ({places}): give one of them"
    file.write_text("")
    monkeypatch.setenv(POINTS, "db1")
    monkeypatch.setenv(BUNDLE, "b.zip")
    assert refused() == f"{both} (env {POINTS}, env {BUNDLE}): give one of them"


def test_workers_take_the_way_of_the_flags(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the environment only."""
    monkeypatch.setenv(POINTS, "db1")
    monkeypatch.setenv(BUNDLE, "")
    for flags, found in (
        ({"cluster.secure_connect_bundle": "c.zip"}, (clean / "c.zip", ("127.0.0.1",))),
        ({"cluster.contact_points": "db2"}, (None, ("db2",))),
    ):
        environment = settle(flags, None).environment()
        for name in (POINTS, BUNDLE):
            monkeypatch.delenv(name, raising=False)
            if name in environment:
                monkeypatch.setenv(name, environment[name])
        assert way() == found


def test_a_bundle_leaves_the_local_stack_alone(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stack(clean / "home/.local/state/ringhaul")
    assert load_settings().settings.cluster.local_dc == "datacenter1"
    monkeypatch.setenv(BUNDLE, "b.zip")
    cluster = load_settings().settings.cluster
    assert (cluster.local_dc, cluster.host_ids, cluster.user) == ("", (), "")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "TLS",
            "true",
            "cluster.secure_connect_bundle has the certificates: leave out cluster.tls",
        ),
        ("ALLOWED_NODES", "10.0.0.1", "no effect on nodes behind the proxy"),
        ("DENIED_NODES", "10.0.0.1", "no effect on nodes behind the proxy"),
    ],
)
def test_what_does_not_go_with_a_bundle(
    clean: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(f"RINGHAUL_CLUSTER_{name}", value)
    load_settings()
    monkeypatch.setenv(BUNDLE, "b.zip")
    assert words in refused()


def test_compressions(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_CLUSTER_COMPRESSION", "LZ4")
    assert load_settings().settings.cluster.compression == "lz4"
    monkeypatch.setenv("RINGHAUL_CLUSTER_COMPRESSION", "snappy")
    assert refused().startswith('cluster.compression = "snappy" (env RINGHAUL_CLUSTER_COMPRESSION)')

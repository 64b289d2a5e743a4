"""Configuration and command line of a node."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from producer.local.java import Java
from producer.local.node_files import cassandra_yaml, logback_xml, node_command, storage_argument

FOLDER = Path("/state of mine/local/127.0.0.1")
JARS = [Path("/jars/org.apache.cassandra.cassandra-all.jar"), Path("/jars/jamm-0.4.jar")]


def settings(*, auth: bool = False, **extra: object) -> dict[str, object]:
    text = cassandra_yaml(
        FOLDER,
        "127.0.1.2",
        cql_port=9042,
        storage_port=7000,
        seed="127.0.1.1",
        auth=auth,
        extra=extra,
    )
    loaded: dict[str, object] = json.loads(text)
    return loaded


def test_addresses_and_folders() -> None:
    found = settings()
    assert found["listen_address"] == found["rpc_address"] == "127.0.1.2"
    assert "127.0.1.1:7000" in json.dumps(found["seed_provider"])
    assert found["commitlog_directory"] == f"{FOLDER}/commitlog"


def test_settings_that_users_tune_stay_at_the_default() -> None:
    assert not [name for name in settings() if "batch" in name or "timeout" in name]


@pytest.mark.parametrize("auth", [True, False])
def test_passwords_are_required_only_with_auth(auth: bool) -> None:
    assert ("authenticator" in settings(auth=auth)) is auth


def test_settings_of_a_test_take_precedence() -> None:
    found = settings(rpc_address="127.0.2.2", native_transport_allow_older_protocols=False)
    assert (found["listen_address"], found["rpc_address"]) == ("127.0.1.2", "127.0.2.2")
    assert found["native_transport_allow_older_protocols"] is False


@pytest.mark.parametrize(("nodes_count", "delay"), [(1, "100"), (3, "3000")])
def test_command(nodes_count: int, delay: str) -> None:
    command = node_command(
        Java(Path("/jdk/bin/java"), 17), JARS, FOLDER, heap="512M", nodes_count=nodes_count
    )
    assert command[:3] == ["/jdk/bin/java", "-Xms512M", "-Xmx512M"]
    assert "-javaagent:/jars/jamm-0.4.jar" in command
    assert f"-Dcassandra.ring_delay_ms={delay}" in command
    assert storage_argument(FOLDER) in command
    assert f"-Djava.io.tmpdir={FOLDER}/tmp" in command
    assert "-Dcassandra.config=file:///state%20of%20mine/local/127.0.0.1/cassandra.yaml" in command
    assert command[-2:] == [
        f"{JARS[0]}:{JARS[1]}",
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def test_logging_is_xml_and_bounded() -> None:
    root = ElementTree.fromstring(logback_xml(FOLDER / "system.log"))
    assert root.findtext(".//file") == f"{FOLDER}/system.log"
    assert root.findtext(".//maxFileSize") == "20MB"
    assert root.findtext(".//maxIndex") == "3"

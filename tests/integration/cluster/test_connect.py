"""Sessions on a real cluster: opened, closed, and refused with a clear message."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, ProtocolVersion
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Session

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import (
    ClusterConfig,
    close_session,
    consistency_level,
    open_session,
)
from ringhaul.errors import EXIT_FATAL, ClusterError, ClusterUnavailable, UsageError
from tests.certificates import Authority, protect


@contextmanager
def opened(config: ClusterConfig) -> Iterator[Session]:
    session = open_session(config)
    try:
        yield session
    finally:
        assert close_session(session, 20)


def test_a_session_has_the_configured_settings(config: ClusterConfig) -> None:
    configured = replace(config, consistency="local_one", request_timeout_s=7.5)
    with opened(configured) as session:
        row = session.execute("SELECT cluster_name, data_center FROM system.local").one()
        assert row.data_center == "datacenter1"
        assert row.cluster_name == session.cluster.metadata.cluster_name
        profile = session.cluster.profile_manager.profiles[EXEC_PROFILE_DEFAULT]
        assert profile.consistency_level == ConsistencyLevel.LOCAL_ONE
        assert profile.request_timeout == 7.5


def test_a_session_without_a_data_centre_uses_that_of_its_contact_point(
    config: ClusterConfig,
) -> None:
    with opened(replace(config, local_dc="")) as session:
        assert session.execute("SELECT release_version FROM system.local").one() is not None


def test_an_invalid_statement_is_not_retried(config: ClusterConfig) -> None:
    with opened(config) as session, pytest.raises(InvalidRequest):
        session.execute("SELECT nothing FROM system.local")


def test_closing_ends_the_drivers_threads(config: ClusterConfig) -> None:
    before = threading.active_count()
    session = open_session(config)
    assert threading.active_count() > before
    assert close_session(session, 20)
    assert session.is_shutdown
    assert session.cluster.is_shutdown


def test_a_closed_port(config: ClusterConfig) -> None:
    with pytest.raises(ClusterUnavailable) as raised:
        open_session(replace(config, port=1))
    assert str(raised.value) == (
        "no node answers at 127.0.0.1:1: Connection refused. Is it the right address "
        "(--contact-points, cluster.contact_points) and is the node up? `ringhaul local up` "
        "starts one to try with"
    )
    assert raised.value.exit_code == EXIT_FATAL


def test_one_of_two_contact_points_is_enough(config: ClusterConfig) -> None:
    # 127.0.0.9 has no node.
    points = ("127.0.0.9", *config.contact_points)
    with opened(replace(config, contact_points=points)) as session:
        assert session.execute("SELECT release_version FROM system.local").one() is not None


def test_an_unknown_host(config: ClusterConfig) -> None:
    with pytest.raises(ClusterUnavailable) as raised:
        open_session(replace(config, contact_points=("no-host.invalid",)))
    assert str(raised.value) == (
        f"no host name in no-host.invalid:{config.port} can be resolved; check the spelling "
        "(--contact-points, cluster.contact_points)"
    )


def test_a_silent_server(config: ClusterConfig, silent_port: int) -> None:
    started = time.monotonic()
    with pytest.raises(ClusterUnavailable) as raised:
        open_session(replace(config, port=silent_port, connect_timeout_s=1.0))
    assert time.monotonic() - started < 15
    assert str(raised.value).startswith(f"no node answers at 127.0.0.1:{silent_port}: ")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_missing_data_centre(config: ClusterConfig) -> None:
    with pytest.raises(ClusterError) as raised:
        open_session(replace(config, local_dc="dc9"))
    assert str(raised.value) == (
        "no data centre 'dc9' in this cluster; it has datacenter1 (--local-dc, cluster.local_dc)"
    )
    assert raised.value.exit_code == EXIT_FATAL


# Authentication


def refusal(login: Endpoints, user: str, password: str) -> ClusterError:
    config = ClusterConfig(
        contact_points=tuple(login.contact_points),
        port=login.port,
        local_dc="datacenter1",
        user=user,
        password=password,
    )
    with pytest.raises(ClusterError) as raised:
        open_session(config)
    assert raised.value.exit_code == EXIT_FATAL
    assert "sesame" not in str(raised.value)
    return raised.value


def test_a_wrong_password(login: Endpoints) -> None:
    where = f"127.0.0.1:{login.port}"
    assert str(refusal(login, "cassandra", "sesame")) == (
        f"the cluster at {where} refused user 'cassandra': Provided username cassandra "
        "and/or password are incorrect. Check the user and the password"
    )


def test_a_missing_password(login: Endpoints) -> None:
    assert str(refusal(login, "", "")) == (
        f"the cluster at 127.0.0.1:{login.port} asks for a user and none is set "
        "(--user with -p or --password-file, or cluster.user and cluster.password_file)"
    )


def test_the_right_password(login: Endpoints) -> None:
    assert login.user is not None and login.password_file is not None
    config = ClusterConfig(
        contact_points=tuple(login.contact_points),
        port=login.port,
        user=login.user,
        password=login.password_file.read_text().strip(),
    )
    with opened(config) as session:
        assert session.execute("SELECT release_version FROM system.local").one() is not None
    assert "cassandra" not in repr(config), "a logged config must not contain a secret"


# TLS


def test_missing_tls_files(config: ClusterConfig, tmp_path: Path) -> None:
    for option in ("tls_ca", "tls_cert", "tls_key"):
        path = str(tmp_path / "no.pem")
        with pytest.raises(UsageError) as raised:
            open_session(replace(config, tls=True, **{option: path}))
        assert str(raised.value) == f"cluster.{option}: no such file {path}"


def test_tls_files_with_other_content(config: ClusterConfig, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("no certificate\n")
    with pytest.raises(UsageError) as ca:
        open_session(replace(config, tls=True, tls_ca=str(path)))
    assert str(ca.value).startswith(f"cluster.tls_ca: {path} cannot be used: ")
    with pytest.raises(UsageError) as cert:
        open_session(replace(config, tls=True, tls_cert=str(path), tls_key=str(path)))
    message = f"cluster.tls_cert {path} with cluster.tls_key {path} cannot be used: "
    assert str(cert.value).startswith(message)


def test_a_key_with_a_password_is_refused(config: ClusterConfig, tmp_path: Path) -> None:
    """OpenSSL would wait for someone to type it."""
    key, certificate = Authority("authority").issue("client")
    cert_path, key_path = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert_path.write_text(certificate)
    key_path.write_text(protect(key))
    with pytest.raises(UsageError) as raised:
        open_session(replace(config, tls=True, tls_cert=str(cert_path), tls_key=str(key_path)))
    assert str(raised.value).startswith(f"cluster.tls_key: {key_path} is protected by a password")


def test_tls_with_a_server_without_tls(config: ClusterConfig) -> None:
    with pytest.raises(ClusterUnavailable) as raised:
        open_session(replace(config, tls=True, connect_timeout_s=2.0))
    assert str(raised.value).startswith(f"no node answers at {config.where}: ")


@pytest.mark.parametrize("name", ["LOCAL_QUORUM", "local_one", "Each_Quorum"])
def test_consistency_levels_by_name(name: str) -> None:
    assert ConsistencyLevel.value_to_name[consistency_level(name)] == name.upper()


def test_an_unknown_consistency_level() -> None:
    with pytest.raises(UsageError) as raised:
        consistency_level("LOCAL_QUORM")
    assert str(raised.value).startswith("no consistency level 'LOCAL_QUORM'; one of ANY, ONE, ")


@contextmanager
def old_server(config: ClusterConfig) -> Iterator[int]:
    """A port of a proxy that refuses protocol versions above 3."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept_old, args=(listener, config.port), daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _accept_old(listener: socket.socket, port: int) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve_old, args=(client, port), daemon=True).start()


def _serve_old(client: socket.socket, port: int) -> None:
    header = client.recv(9, socket.MSG_WAITALL)
    if header[0] > ProtocolVersion.V3:
        words = b"Invalid or unsupported protocol version (4); the greatest supported is 3"
        body = struct.pack(">iH", 0x000A, len(words)) + words
        client.sendall(
            struct.pack(">BBhBi", 0x83, 0, *struct.unpack(">h", header[2:4]), 0, len(body)) + body
        )
        client.close()
        return
    with client, suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as server:
        server.sendall(header)
        back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
        back.start()
        _pass_on(client, server)
        back.join(10)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Forward all bytes of one connection to another, until the first one ends."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def test_the_protocol_version_is_negotiated_without_foreign_versions(
    config: ClusterConfig, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(config) as session:
        assert session.cluster.protocol_version == ProtocolVersion.V4
    assert "Downgrading" not in caplog.text


def test_a_server_with_an_older_protocol_is_used_with_that_version(
    config: ClusterConfig,
) -> None:
    # Given a proxy to the server that refuses version 4, as Cassandra 2.1 does
    with old_server(config) as port, opened(replace(config, port=port)) as session:
        assert session.cluster.protocol_version == ProtocolVersion.V3
        assert session.execute("SELECT cluster_name FROM system.local").one() is not None

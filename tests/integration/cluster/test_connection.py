"""A connection that the server closes in the middle of an answer fails at once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from cassandra.connection import ConnectionShutdown

from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.errors import ClusterUnavailable
from tests.integration.cluster.conftest import GuardedNode
from tests.proxy import proxied

#: How long the client would wait for the answer if the connection stayed open.
PATIENCE_S = 200.0


def check_cut(config: ClusterConfig) -> None:
    """Cut an answer, which must fail soon; then the session uses another connection."""
    with proxied(("127.0.0.1", config.port)) as (proxy, port):
        session = open_session(replace(config, port=port, request_timeout_s=PATIENCE_S))
        try:
            large = session.prepare("SELECT * FROM system_schema.columns")
            proxy.cut_answers()
            started = time.monotonic()
            with pytest.raises(ConnectionShutdown, match="has closed the connection"):
                session.execute(large)
            assert time.monotonic() - started < PATIENCE_S / 4
            assert proxy.cut >= 1
            # The driver reconnects after a second or more; only this session marks the node down.
            until = time.monotonic() + PATIENCE_S / 4
            while not any(state["open_count"] for state in session.get_pool_state().values()):
                assert time.monotonic() < until
                time.sleep(0.05)
            assert len(list(session.execute(large))) > 100
        finally:
            assert close_session(session, 20)


def test_a_cut_answer_fails_at_once(config: ClusterConfig) -> None:
    check_cut(config)


def test_a_cut_answer_with_tls_fails_at_once(guarded: GuardedNode) -> None:
    check_cut(guarded.tls_config)


def test_a_connection_that_the_server_closes_at_once_fails_at_once(
    config: ClusterConfig,
) -> None:
    with proxied(("127.0.0.1", 1)) as (_, port):  # a closed port
        started = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=r"closed the connection|reset by peer"):
            open_session(replace(config, port=port, connect_timeout_s=PATIENCE_S))
        assert time.monotonic() - started < PATIENCE_S / 4

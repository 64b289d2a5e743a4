"""A connection that the other side ends in the middle of an answer is over at once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from cassandra.connection import ConnectionShutdown

from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.errors import ClusterUnavailable
from tests.integration.cluster.conftest import GuardedNode
from tests.proxy import proxied

#: Without an end to the connection this is how long an answer would be waited for.
PATIENCE_S = 200.0


def check_cut(config: ClusterConfig) -> None:
    """Cut an answer, which is told soon; the session goes on with another connection."""
    with proxied(("127.0.0.1", config.port)) as (proxy, port):
        session = open_session(replace(config, port=port, request_timeout_s=PATIENCE_S))
        try:
            large = session.prepare("SELECT * FROM system_schema.columns")
            proxy.cut_answers()
            begun = time.monotonic()
            with pytest.raises(ConnectionShutdown, match="has closed the connection"):
                session.execute(large)
            assert time.monotonic() - begun < PATIENCE_S / 4
            assert proxy.cut >= 1
            # The driver tries again after a second and longer, and nobody else has the node down.
            until = time.monotonic() + PATIENCE_S / 4
            while not any(state["open_count"] for state in session.get_pool_state().values()):
                assert time.monotonic() < until
                time.sleep(0.05)
            assert len(list(session.execute(large))) > 100
        finally:
            assert close_session(session, 20)


def test_an_answer_that_is_cut(config: ClusterConfig) -> None:
    check_cut(config)


def test_an_answer_that_is_cut_within_tls(guarded: GuardedNode) -> None:
    check_cut(guarded.tls_config)


def test_a_server_that_closes_the_connection_at_once_is_not_waited_for(
    config: ClusterConfig,
) -> None:
    with proxied(("127.0.0.1", 1)) as (_, port):  # nobody listens there
        begun = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=r"closed the connection|reset by peer"):
            open_session(replace(config, port=port, connect_timeout_s=PATIENCE_S))
        assert time.monotonic() - begun < PATIENCE_S / 4

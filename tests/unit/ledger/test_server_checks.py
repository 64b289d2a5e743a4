"""Checks of a Redis server's settings."""

from dataclasses import replace
from typing import Any

from ringhaul.ledger.server_checks import Level, ServerFacts, check_server, warnings_of
from tests.cases import each

GOOD = ServerFacts(
    address="h:6379",
    version="7.2.4",
    policy="noeviction",
    appendonly=True,
    appendfsync="everysec",
    role="master",
    clustered=False,
    used_bytes=1 << 20,
    maxmemory_bytes=0,
    latency_ms=0.2,
)


def test_a_good_server_is_ok_and_unknown_settings_are_skipped() -> None:
    assert {check.level for check in check_server(GOOD)} == {Level.OK}
    assert check_server(ServerFacts(address="h:6379")) == []


@each(
    ("changes", "level", "words"),
    [
        ({"version": "6.2.14"}, Level.FAIL, "use Redis 7.2"),
        ({"policy": "allkeys-lru"}, Level.WARN, "set noeviction"),
        ({"policy": "volatile-ttl"}, Level.WARN, "set noeviction"),
        ({"appendonly": False}, Level.WARN, "appendonly no"),
        ({"appendfsync": "no"}, Level.WARN, "everysec"),
        ({"persisted": False}, Level.FAIL, "make room on its disk"),
        ({"role": "slave"}, Level.FAIL, "primary"),
        ({"clustered": True}, Level.FAIL, "not part of a cluster"),
        ({"maxmemory_bytes": 1 << 20}, Level.WARN, "raise maxmemory"),
        ({"latency_ms": 80.0}, Level.WARN, "closer"),
    ],
)
def test_a_problem_is_reported_with_what_to_do(
    changes: dict[str, Any], level: Level, words: str
) -> None:
    checks = check_server(replace(GOOD, **changes))
    assert [check.level for check in checks if check.level is not Level.OK] == [level]
    (line,) = warnings_of(checks)
    assert words in line

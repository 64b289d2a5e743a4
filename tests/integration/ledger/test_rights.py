"""Which commands the broker refuses to a user, without running any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.connection import Caller, connect
from ringhaul.ledger.rights import refused_commands, user_of

ACL = Path(__file__).parents[3] / "deploy" / "redis-users.acl"
PREFIX = "ringhaul:mq:"


@contextmanager
def user(broker: EmbeddedValkey, *rules: str) -> Iterator[Caller]:
    with redis.Redis.from_url(broker.url) as admin:
        admin.execute_command("ACL", "SETUSER", "someone", "reset", "on", ">word", *rules)
        client = connect(f"redis://someone:word@127.0.0.1:{broker.port}/0")
        try:
            yield Caller(client, patience_ms=1000)
        finally:
            client.close()
            admin.execute_command("ACL", "DELUSER", "someone")


def test_the_shipped_users_may_do_all(broker: EmbeddedValkey, broker_url: str) -> None:
    lines = [line.split() for line in ACL.read_text().splitlines() if line.startswith("user ")]
    rules = {name: words for _, name, *words in lines}
    for name in ("ringhaul-worker", "ringhaul-command"):
        with user(broker, *rules[name]) as caller:
            assert refused_commands(caller, PREFIX) == []
            assert user_of(caller) == "someone"


@pytest.mark.parametrize(
    ("rules", "commands", "reasons"),
    [
        ("~ringhaul:* &* +@all -brpop -eval", {"BRPOP", "EVAL"}, {"command"}),
        ("~ringhaul:* +@all", {"PUBLISH", "SUBSCRIBE", "PSUBSCRIBE"}, {"channels"}),
        ("~ringhaul:* &* +@all -multi", {"MULTI"}, {"command"}),
    ],
)
def test_what_is_refused_is_found(
    broker: EmbeddedValkey, broker_url: str, rules: str, commands: set[str], reasons: set[str]
) -> None:
    with user(broker, *rules.split()) as caller:
        refused = refused_commands(caller, PREFIX)
    with redis.Redis.from_url(broker_url) as client:
        assert client.keys("*") == [], "without a transaction, they would run at once"
    assert {one.command for one in refused} == commands
    assert {one.reason for one in refused} == reasons


@pytest.mark.parametrize("rules", ["~ringhaul:mq:* &* +@all", "%R~ringhaul:* &* +@all"])
def test_keys_that_may_not_be_used_are_found(
    broker: EmbeddedValkey, broker_url: str, rules: str
) -> None:
    with user(broker, *rules.split()) as caller:
        refused = refused_commands(caller, PREFIX)
    assert "HSET" in {one.command for one in refused}
    assert {one.reason for one in refused} == {"keys"}


def test_nothing_is_run(broker_url: str) -> None:
    client = connect(broker_url)
    try:
        caller = Caller(client, patience_ms=1000)
        client.set("ringhaul:mq:doctor", "kept")
        client.config_resetstat()
        assert refused_commands(caller, PREFIX) == []
        stats = client.info("commandstats")
        assert "cmdstat_hset" not in stats and "cmdstat_set" not in stats
        assert client.keys("*") == [b"ringhaul:mq:doctor"]
        # The connection works as before.
        assert client.get("ringhaul:mq:doctor") == b"kept"
    finally:
        client.close()

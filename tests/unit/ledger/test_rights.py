"""The commands whose rights are checked are those that the sources use."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import kombu.transport.redis
import pytest

from ringhaul.ledger.rights import CELERY, LEDGER, Refused, describe_refused

ROOT = Path(__file__).parents[3]
_LUA = re.compile(r"redis\.p?call\(\s*'(\w+)'")
_PYTHON = re.compile(r"\.command\(\s*\"([A-Z]+)\"")
#: Only `doctor` and reports ask for it, and work without.
OPTIONAL = {"INFO"}
#: Methods of redis-py in kombu's transport, where they differ from the command.
KOMBU = {"delete": "DEL", "brpop": "BRPOP"}


def test_every_command_of_the_ledger_is_checked() -> None:
    scripts = "".join(path.read_text() for path in (ROOT / "ringhaul" / "ledger").glob("*.lua"))
    used = {name.upper() for name in _LUA.findall(scripts)}
    for package in ("ringhaul", "tasks", "producer"):
        for path in (ROOT / package).rglob("*.py"):
            used |= set(_PYTHON.findall(path.read_text()))
    assert len(used) > 40
    assert used - LEDGER.keys() - OPTIONAL == set(), "add them to ringhaul.ledger.rights"
    named = set(re.findall(r"'([A-Z]{3,})'", scripts))
    assert {name for name in LEDGER if name not in used | named} == set(), "no longer used"


def test_every_command_of_the_transport_is_checked() -> None:
    source = inspect.getsource(kombu.transport.redis)
    known = "brpop|rpop|lpush|rpush|llen|sadd|srem|smembers|zadd|zrem|zrange|hset|hget|hdel|delete"
    used = set(re.findall(rf"\.({known}|exists|pexpire|zrevrangebyscore)\(", source))
    names = {KOMBU.get(name, name.upper()) for name in used} | {"BRPOP"}
    assert len(names) > 12
    assert names - CELERY.keys() == set(), "add them to ringhaul.ledger.rights"


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        ([], ""),
        ([Refused("HSET", "command")], "user u may not run HSET"),
        (
            [Refused("HSET", "keys"), Refused("GET", "keys"), Refused("PUBLISH", "channels")],
            "user u may not use the keys, and may not use the channels",
        ),
        (
            [Refused(f"C{n}", "command") for n in range(9)],
            "user u may not run C0, C1, C2, C3, C4, C5 and 3 more",
        ),
    ],
)
def test_refusals_are_described(refused: list[Refused], text: str) -> None:
    assert describe_refused(refused, "u") == text

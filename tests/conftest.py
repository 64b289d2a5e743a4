"""Fixtures of real services, started once per pytest session, when a test first needs one."""

import builtins
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import redis
from cassandra.cluster import Session
from hypothesis import settings

from producer.local.stack import Endpoints, Stack
from producer.local.valkey import EmbeddedValkey
from tasks.command_line import spell_as, spelled_as
from tests.rooms import ByRoom, end_processes, put_first, remove_locks, turn
from tests.scale import FULL
from tests.services import (
    ProxiedRing,
    connected,
    fresh_keyspace,
    running_ring,
    running_stack,
    running_valkey,
    user_cache_dir,
)

#: Removed from the environment, where ringhaul would refuse it as an unknown setting.
KEPT_STATE_DIR = os.environ.pop("RINGHAUL_TEST_STATE_DIR", "")

# A time limit for each generated example means nothing on shared cores.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# Read by `java`. Test nodes run for minutes, in which Java's second compiler costs more than
# its code saves: loading 250,000 rows into a new node took 44 s with it, 23 s without.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


_BEFORE = pytest.StashKey[dict[str, object]]()
#: The turn of the test that runs, if one does.
_turns: list[ExitStack] = []


def pytest_configure() -> None:
    """End on SIGTERM like on Ctrl-C: tear down fixtures, leave no server behind.

    In the background of a script, pytest and every command that the tests start ignore Ctrl-C.
    Restore its handler, because some tests end a command by it.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByRoom:
    """Used with `-n`, as in `make test`."""
    return ByRoom(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    put_first(items)
    left_out = [item for item in items if not FULL and item.get_closest_marker("complete")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_unconfigure() -> None:
    remove_locks()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Outside of a test's time limit: it may have to wait for its turn."""
    alone = _is_alone(item)
    if not _turns:
        _turns.append(ExitStack())
        _turns[0].enter_context(turn(alone=alone))
    try:
        return (yield)
    finally:
        # One that is followed by others of its kind keeps the room: the wait for it is paid once.
        if not (alone and _is_alone(nextitem)):
            _turns.pop().close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[_BEFORE] = _inherited()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail a test that changes what the commands of later ones inherit, such as their home."""
    result = yield
    now, before = _inherited(), item.stash[_BEFORE]
    changed = {name for name in now.keys() | before if now.get(name) != before.get(name)}
    assert not changed, changed
    return result


def _inherited() -> dict[str, object]:
    """What the commands of a test inherit from this process."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    ignored = {number.name: signal.getsignal(number) is signal.SIG_IGN for number in numbers}
    return ignored | {n: v for n, v in os.environ.items() if n != "PYTEST_CURRENT_TEST"}


def _is_alone(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("alone") is not None


def _interrupt(number: int, frame: FrameType | None) -> None:
    end_processes()
    raise KeyboardInterrupt


# Messages spell options as the command line does; also while tests are collected.
spell_as(None)


@pytest.fixture(autouse=True)
def options_of_the_command_line() -> Iterator[None]:
    """End the spelling of options by a test's command with the test."""
    with spelled_as(None):
        yield


@pytest.fixture(autouse=True)
def no_known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget known secrets: one test's password may be an ordinary word in another's messages."""
    monkeypatch.setattr("config.known_secrets._known", {})


@pytest.fixture(autouse=True)
def no_settings_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the settings that a command of another test handed over to Celery."""
    monkeypatch.setattr("tasks.settings._loaded", None)
    monkeypatch.setattr("config.known_secrets._pattern", None)


@pytest.fixture(autouse=True)
def imports_of_this_process() -> Iterator[None]:
    """Take back what loading a transform does to the imports of modules that are not ours."""
    before = builtins.__import__
    yield
    builtins.__import__ = before


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """One Cassandra node and a Valkey, as started by `ringhaul local up`.

    RINGHAUL_TEST_STATE_DIR names the state folder of a running stack, which saves a developer
    the start of a node in each pytest run.
    """
    if KEPT_STATE_DIR:
        yield Stack(Path(KEPT_STATE_DIR), user_cache_dir())
        return
    with running_stack() as running:
        yield running


@pytest.fixture(scope="session")
def endpoints(stack: Stack) -> Endpoints:
    """Addresses and ports of `stack`."""
    return stack.endpoints()


@pytest.fixture(scope="session")
def cassandra_session(endpoints: Endpoints) -> Iterator[Session]:
    """A driver session on `stack`."""
    with connected(endpoints) as session:
        yield session


@pytest.fixture
def keyspace(cassandra_session: Session) -> Iterator[str]:
    """A fresh keyspace on `stack` for one test."""
    with fresh_keyspace(cassandra_session) as name:
        yield name


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedValkey]:
    """A Valkey separate from that of `stack`."""
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture
def broker_url(broker: EmbeddedValkey) -> str:
    """The URL of `broker`, emptied for this test."""
    with redis.Redis.from_url(broker.url) as client:
        client.flushall()
    return broker.url


@pytest.fixture(scope="session")
def proxied_ring() -> Iterator[ProxiedRing]:
    """`three_nodes` with a proxy in front of the third."""
    with running_ring() as running:
        yield running


@pytest.fixture(scope="session")
def three_nodes(proxied_ring: ProxiedRing) -> Stack:
    """Three Cassandra nodes on 127.0.1.1 to 3: replication factor 3 works."""
    proxied_ring.stack.up(any_port=True)  # restart a node that a fault test has killed
    return proxied_ring.stack

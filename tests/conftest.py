"""Fixtures of real services, started once per pytest session, when a test first needs one."""

import builtins
import os
import signal
import sys
import tempfile
import time
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
from tests.costs import Costs, Run, own_core_seconds
from tests.rooms import ByRoom, end_processes, put_first, turn
from tests.scale import FULL
from tests.servers import RUN_VARIABLE, STRICT, SharedNode, SharedServers
from tests.services import (
    ProxiedRing,
    connected,
    fresh_keyspace,
    running_ring,
    running_valkey,
    user_cache_dir,
)
from tests.tiers import TIERS, Tier

#: Removed from the environment, where ringhaul would refuse it as an unknown setting.
KEPT_STATE_DIR = os.environ.pop("RINGHAUL_TEST_STATE_DIR", "")

# A time limit for each generated example means nothing on shared cores.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

# Read by `java`. Test nodes run for minutes, in which Java's second compiler costs more than
# its code saves: loading 250,000 rows into a new node took 44 s with it, 23 s without.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


_BEFORE = pytest.StashKey[dict[str, object]]()
_SERVERS = pytest.StashKey[SharedServers]()
_KEPT = pytest.StashKey[str]()
_TIER = pytest.StashKey[Tier]()
_COSTS = pytest.StashKey[Costs]()
_RUN = pytest.StashKey[Run]()
#: The turn of the test that runs, if one does.
_turns: list[ExitStack] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tier",
        choices=TIERS,
        default="all",
        help="which tests to run: the quick ones, or the slow ones of tests/proofs.toml",
    )
    parser.addoption("--costs", metavar="FILE", help="write what each test file cost, as CSV")


def pytest_configure(config: pytest.Config) -> None:
    """End on SIGTERM like on Ctrl-C: tear down fixtures, leave no server behind.

    In the background of a script, pytest and every command that the tests start ignore Ctrl-C.
    Restore its handler, because some tests end a command by it.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_TIER] = Tier(config.getoption("tier"))
    if (given := _given(config)) is not None:
        folder, kept = given["run_folder"], given["kept_state_dir"]
    else:
        folder, kept = tempfile.mkdtemp(prefix="rh-tests-"), KEPT_STATE_DIR
        os.environ[RUN_VARIABLE] = folder
        config.stash[_RUN] = Run()
    config.stash[_SERVERS] = servers = SharedServers(Path(folder))
    config.stash[_KEPT] = kept
    config.stash[_COSTS] = Costs(servers.pids)


def _given(config: pytest.Config) -> dict[str, str] | None:
    """What this process has from the one that xdist started it for; None if there is no such."""
    return getattr(config, "workerinput", None)


def pytest_configure_node(node: Any) -> None:
    """Used with `-n`: what a process that xdist starts needs to know."""
    node.workerinput["run_folder"] = str(node.config.stash[_SERVERS].folder)
    node.workerinput["kept_state_dir"] = node.config.stash[_KEPT]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByRoom:
    """Used with `-n`, as in `make test`."""
    return ByRoom(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file of which no test runs."""
    left_out = collection_path.is_file() and config.stash[_TIER].leaves_out(collection_path)
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    put_first(items)
    tier = config.stash[_TIER]
    left_out = [
        item
        for item in items
        if (not FULL and item.get_closest_marker("complete")) or not tier.has(item.nodeid)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what this process has used."""
    config = session.config
    costs = config.stash[_COSTS]
    costs.close()
    if _given(config) is not None:
        files = {name: list(cost) for name, cost in costs.files.items()}
        config.workeroutput["costs"] = [files, costs.total_s()]  # type: ignore[attr-defined]
    elif config.getoption("numprocesses", None):
        # The processes that run the tests are children of this one, and hand over what they used.
        config.stash[_RUN].add({}, own_core_seconds())
    else:
        config.stash[_RUN].add(costs.files, costs.total_s())


def pytest_testnodedown(node: Any, error: object) -> None:
    """Used with `-n`: a process has ended, without a word if it crashed."""
    if found := getattr(node, "workeroutput", {}).get("costs"):
        node.config.stash[_RUN].add(*found)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    run = config.stash[_RUN]
    if not run.files:
        return
    terminalreporter.section("cost")
    for line in run.lines(config.stash[_SERVERS].core_s()):
        terminalreporter.line(line)
    if path := config.getoption("costs"):
        Path(path).write_text(run.table())


def pytest_unconfigure(config: pytest.Config) -> None:
    if _given(config) is None and _SERVERS in config.stash:
        for process in config.stash[_SERVERS].stop():
            print(f"left behind, and killed: {process}", file=sys.stderr)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Outside of a test's time limit: it may have to wait for its turn."""
    alone = _is_alone(item)
    waits_s = time.monotonic()
    if not _turns:
        _turns.append(ExitStack())
        _turns[0].enter_context(turn(item.config.stash[_SERVERS].folder, alone=alone))
    item.config.stash[_COSTS].enter(item.location[0], time.monotonic() - waits_s)
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
def shared_servers(pytestconfig: pytest.Config) -> SharedServers:
    """The servers that all test processes of this run share."""
    return pytestconfig.stash[_SERVERS]


@pytest.fixture(scope="session")
def shared_node(shared_servers: SharedServers) -> SharedNode:
    """The ordinary node, with nodetool."""
    return shared_servers.node()


@pytest.fixture(scope="session")
def strict_node(shared_servers: SharedServers) -> SharedNode:
    """The node with low limits. Files that use it run in one process: see `tests/rooms.py`."""
    return shared_servers.node(STRICT)


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Stack:
    """One Cassandra node, which other test processes use, too, and a Valkey.

    RINGHAUL_TEST_STATE_DIR names the state folder of a running stack, which saves a developer
    the start of a node in each pytest run.
    """
    if kept := pytestconfig.stash[_KEPT]:
        return Stack(Path(kept), user_cache_dir())
    node: SharedNode = request.getfixturevalue("shared_node")
    return node.stack


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
    """A Valkey of this process, which its tests may empty: others use that of `stack`, too."""
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

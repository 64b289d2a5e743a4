"""Fixtures of the command with a real cluster: in front of a fleet, and embedded."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session
from playwright.sync_api import Browser

from producer.local.stack import Endpoints
from producer.local.valkey import EmbeddedValkey
from tests.acceptance.browser import Tab, open_tab, running_browser
from tests.acceptance.command import STATE_FOLDERS, Ringhaul, share_kinds
from tests.acceptance.hold import Hold
from tests.acceptance.inventory import entries, lasting_keys, left_behind
from tests.acceptance.mounts import mount_namespace
from tests.acceptance.running import running_worker
from tests.services import fresh_keyspace, running_valkey

#: Settings of workers that may run the tests' transforms.
TRANSFORMS = {
    "RINGHAUL_TRANSFORM_ALLOWED": "rh_etl:*",
    "RINGHAUL_TRANSFORM_PATH": str(Path(__file__).parent / "transforms"),
}
#: The temporary folder of this pytest process, once it has run a test of this folder.
_temporary: list[Path] = []
#: URL of the fleet's broker, while there is one.
_fleet_brokers: list[str] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Give this process a TMPDIR of its own, since others leave and remove things in the user's."""
    if not _temporary:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # of `tmp_path`
        _temporary.append(Path(tempfile.mkdtemp(prefix="rh-")))
        os.environ["TMPDIR"] = tempfile.tempdir = str(_temporary[0])
    return (yield)


def pytest_unconfigure() -> None:
    for folder in _temporary:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def kinds_of_commands(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have each kind of command started as a user does once a run, not once a test process."""
    base = tmp_path_factory.getbasetemp()
    share_kinds((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kinds")


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test after which something is left in the temporary folder, in a state folder in a
    place where nothing survives, or in the fleet's Redis without a TTL. It comes first, so that the
    test's own services have ended."""
    before = entries(_temporary[0], STATE_FOLDERS)
    yield
    found = left_behind(before, _temporary[0], STATE_FOLDERS)
    assert not found, f"left behind: {sorted(map(str, found))}"
    kept = {key for url in _fleet_brokers for key in lasting_keys(url)}
    assert not kept, f"left behind in Redis: {sorted(kept)}"


def cluster_env(endpoints: Endpoints, state_dir: Path) -> dict[str, str]:
    """Return settings that name the cluster and a private state folder."""
    return {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": ",".join(endpoints.contact_points),
        "RINGHAUL_CLUSTER_PORT": str(endpoints.port),
        "RINGHAUL_STATE_DIR": str(state_dir),
    }


def fleet_settings(endpoints: Endpoints, state_dir: Path, broker_url: str) -> dict[str, str]:
    """Return settings for a fleet: those of the cluster, plus a broker."""
    return cluster_env(endpoints, state_dir) | {
        "RINGHAUL_BROKER_URL": broker_url,
        "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
        "RINGHAUL_WORKER_SWEEP_S": "1",
    }


@pytest.fixture
def embedded(endpoints: Endpoints, tmp_path: Path) -> Ringhaul:
    """`ringhaul` without a broker: it starts embedded workers (a few seconds)."""
    return Ringhaul(cluster_env(endpoints, tmp_path / "state"), tmp_path)


@pytest.fixture
def mounts() -> Iterator[int]:
    """The pid of a process with a mount namespace: see `Namespaced`."""
    with mount_namespace() as pid:
        yield pid


@pytest.fixture(scope="module")
def module_keyspace(cassandra_session: Session) -> Iterator[str]:
    """A fresh keyspace for the tests of one module, for tables that take long to fill."""
    with fresh_keyspace(cassandra_session) as name:
        yield name


@pytest.fixture(scope="session")
def fleet_broker() -> Iterator[EmbeddedValkey]:
    """The broker that `fleet` uses."""
    with running_valkey() as valkey:
        _fleet_brokers.append(valkey.url)
        yield valkey
        _fleet_brokers.clear()


@pytest.fixture(scope="session")
def fleet_env(
    endpoints: Endpoints, fleet_broker: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The settings of one `ringhaul worker` with two processes, up for the whole session."""
    folder = tmp_path_factory.mktemp("fleet")
    env = fleet_settings(endpoints, folder / "state", fleet_broker.url) | {
        "RINGHAUL_WORKER_LEASE_S": "10",
        **TRANSFORMS,
        **Hold(folder / "held").env,
    }
    with running_worker(Ringhaul(env, folder)):
        yield env


@pytest.fixture
def hold(fleet_env: dict[str, str]) -> Iterator[Hold]:
    """The switch that holds units of `fleet`'s jobs; they go on at the end of the test."""
    hold = Hold.of(fleet_env)
    yield hold
    hold.release()


@pytest.fixture
def fleet(fleet_env: dict[str, str], tmp_path: Path) -> Ringhaul:
    """`ringhaul` with the session's running worker, so that a load starts quickly."""
    return Ringhaul(fleet_env, tmp_path)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless chromium. For one module only: as long as it runs, tests cannot run an event loop
    of their own."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    """A tab of `browser`; at the end, its console must have reported no error."""
    with open_tab(browser) as tab:
        yield tab
        assert tab.errors == []

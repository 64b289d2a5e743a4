"""Follow docs/how-to/hosts.md step by step, on separate hosts.

The namespaces have the section's addresses, every host gets its settings file, and a shell runs
each command on its host. Only `pip install` is replaced: it installs the package built from this
checkout into a fresh environment; the dependencies are those of the tests, since a namespace has no
index.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.acceptance.command import wait_until
from tests.acceptance.oracle import assert_table
from tests.hosts.conftest import ADDRESSES
from tests.hosts.fleet import Fleet
from tests.installation import build, install, site_packages
from tests.kernels import bring_to_package

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "hosts.md"
SECTION = re.search(r"^## Step by step\n(.*?)^## ", PAGE.read_text(), re.M | re.S)
INSTALL = "pip install"
EXPORT = "export "


def section() -> str:
    assert SECTION is not None
    return SECTION[1]


def settings_file() -> str:
    (text,) = re.findall(r"^```toml\n(.*?)^```", section(), re.M | re.S)
    return str(text)


def commands() -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", section(), re.M | re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def test_the_section_has_the_expected_commands() -> None:
    named = set(re.findall(r"\b10(?:\.\d+){3}\b", section()))
    assert named == {ADDRESSES[n] for n in ("cassandra1", "cassandra2", "broker", "store")}
    kinds = [" ".join(line.split()[:2]) for line in commands()]
    assert [kind for kind in kinds if kind.startswith("ringhaul ")] == [
        "ringhaul worker",
        "ringhaul load",
        "ringhaul unload",
        "ringhaul status",
    ]
    assert sum(INSTALL in line for line in commands()) == 1
    assert sum(line.startswith(EXPORT) for line in commands()) == 1


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a fresh environment with the built package, and compiled kernels."""
    folder = tmp_path_factory.mktemp("package")
    scripts = install(build(folder).wheel, folder / "venv")
    bring_to_package(site_packages(folder / "venv"))
    return scripts


def test_the_section_s_commands_work(fleet: Fleet, environment: Path) -> None:
    """
    1. Every host gets the settings file, the password, and the environment.
    2. Three hosts run the worker command.
    3. A fourth runs the load, unload and status commands.
    """
    if not fleet.network["A"].namespace:
        return  # the section's addresses do not exist: `running_network` has warned
    fleet.workers()
    rows = [(f"r{n % 7}", n, f"note {n}") for n in range(9000)]
    days = 20  # files, of which each host must get one, although the last may only just be up
    for day in range(days):
        text = "region,id,note\n" + "".join(
            f"{region},{number},{note}\n" for region, number, note in rows[day::days]
        )
        fleet.store.put(f"days/{day}.csv.gz", gzip.compress(text.encode()))
    fleet.session.execute(
        "CREATE TABLE shop.orders (region text, id int, note text, PRIMARY KEY (region, id))"
    )
    password = Path(fleet.env["RINGHAUL_BROKER_PASSWORD_FILE"]).read_text()
    homes = {name: fleet.home(f"page-{name}") for name in ("A", "B", "C", "ops")}
    for home in homes.values():
        (home / "ringhaul.toml").write_text(settings_file())
        (home / "redis_password").write_text(password)
        (home / "venv").mkdir()
        (home / "venv" / "bin").symlink_to(environment)
    (export,) = (line for line in commands() if line.startswith(EXPORT))
    lines = {line.split()[1]: line for line in commands() if line.startswith("ringhaul ")}
    bare = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RINGHAUL_", "AWS_", "PYTHON", "VIRTUAL_ENV"))
    }

    def typed(verb: str) -> list[str]:
        return ["bash", "-c", f"{export}\n{lines[verb]}"]

    with ExitStack() as stack:
        for name in "ABC":
            home = homes[name]
            env = bare | {"HOME": str(home)}
            stack.enter_context(
                fleet.network[name].running(typed("worker"), home / "log", env, home)
            )
            # In sequence: the first one compiles missing kernels, and the others find them.
            # On a machine with other work that takes over a minute.
            what = f"the worker on {name}; see {home / 'log'}"
            wait_until(partial(fleet.is_alive, name), what, timeout_s=240)
        output = {}
        for verb in ("load", "unload", "status"):
            done = subprocess.run(
                [*fleet.network["ops"].enter, *typed(verb)],
                capture_output=True,
                text=True,
                env=bare | {"HOME": str(homes["ops"])},
                cwd=homes["ops"],
                timeout=120,
            )
            assert done.returncode == 0, done
            output[verb] = done.stdout + done.stderr
        assert_table(fleet.session, "shop.orders", "region, id, note", rows)
        newest = fleet.ledger.jobs(2)
        jobs = {status.labels.get("kind"): status.job for status in newest}
        assert set(fleet.units_by_host(jobs["load"])) == set("ABC")
        assert "9,000" in output["load"] and "9,000" in output["unload"]
        assert jobs["load"] in output["status"] and jobs["unload"] in output["status"]
        found = []
        for key in fleet.store.keys("dump/"):
            if key.endswith(".parquet"):
                part = pq.read_table(io.BytesIO(fleet.store.get(f"dump/{key}")))
                found += [tuple(row.values()) for row in part.to_pylist()]
        assert sorted(found) == sorted(rows)

"""The wheel works beside a project with packages of the names `config`, `tasks` and `producer`.

The project is the current folder and stands first on Python's path; the environment's
site-packages have three more, and one of them is imported by each Python that starts.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from email.parser import Parser
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints, Stack
from ringhaul import __version__
from tests.acceptance.command import Finished, Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import assert_report, assert_table, create_table, read_rows
from tests.acceptance.running import Running, answers, free_port, get, running, wait_for_worker
from tests.arrows import ROOT
from tests.installation import Built, build, checkout_files, install, site_packages

OWN = ("config", "tasks", "producer")
ROWS = [(number, f"name {number}") for number in range(400)]
MASKED = [(number, f"theirs theirs theirs {name}") for number, name in ROWS]

#: A transform that imports all three of the project's packages.
ETL = """
import pyarrow as pa
from config.settings import NAME
import tasks.names

def mark(batch):
    import producer
    words = f"{NAME} {tasks.names.NAME} {producer.NAME} "
    named = pa.array([words + name for name in batch["name"].to_pylist()])
    return pa.RecordBatch.from_arrays([batch["id"], named], names=["id", "name"])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def scripts(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment with the wheel and other software of our names."""
    folder = tmp_path_factory.mktemp("environment")
    scripts = install(built.wheel, folder)
    packages = site_packages(folder)
    for name in OWN:
        (packages / name).mkdir()  # were it ours, this would fail
        (packages / name / "__init__.py").write_text(f"PLACE = {str(packages)!r}\n")
    (packages / "start.pth").write_text("import config\n")
    return scripts


class Installed(Ringhaul):
    """The installed command, in the project's folder."""

    def __init__(self, scripts: Path, env: dict[str, str], project: Path) -> None:
        super().__init__(env | {"PYTHONPATH": str(project)}, project, fresh=True)
        self.scripts = scripts

    def argv(self, *args: object) -> list[str]:
        return [str(self.scripts / "ringhaul"), *map(str, args)]

    def python(self, *args: object) -> Finished:
        """Run the environment's Python. Without -P: the project comes first."""
        argv = [str(self.scripts / "python"), *map(str, args)]
        done = subprocess.run(argv, env=self.env, cwd=self.cwd, capture_output=True, text=True)
        return Finished(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def installed(scripts: Path, endpoints: Endpoints, broker_url: str, tmp_path: Path) -> Installed:
    """The command in the folder of a project, with a broker that has no worker."""
    project = tmp_path / "project"
    files = {
        "etl.py": ETL,
        "config/__init__.py": "",
        "config/settings.py": "NAME = 'theirs'\n",
        "tasks/__init__.py": "",
        "tasks/names.py": "from config.settings import NAME\n",
        "producer.py": "NAME = 'theirs'\n",
        "rows.csv": "id,name\n" + "".join(f"{number},{name}\n" for number, name in ROWS),
    }
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    env = fleet_settings(endpoints, tmp_path / "state", broker_url) | {
        "RINGHAUL_TRANSFORM_ALLOWED": "etl:*",
        "NUMBA_DISABLE_JIT": "1",  # other tests compile kernels, which takes seconds
    }
    return Installed(scripts, env, project)


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> Iterator[str]:
    yield create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text")


def test_the_wheel_has_every_file_and_adds_one_name(built: Built) -> None:
    """All modules and data files of the four packages; only `ringhaul` is at the top."""
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = Parser().parsestr(_one(wheel, "METADATA"))
        entry_points = _one(wheel, "entry_points.txt")
    wanted = {str(path) for path in checkout_files("ringhaul")} | {
        f"ringhaul/_packages/{path}" for path in checkout_files(*OWN)
    }
    assert names == wanted
    assert "ringhaul = ringhaul.__main__:main" in entry_points
    assert metadata["Version"] == __version__ and metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE" and metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata["Summary"] and metadata["Keywords"]
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    assert set(metadata.get_all("Provides-Extra")) >= {"local", "s3", "gcs", "profile"}
    versions = [
        found[1]
        for classifier in metadata.get_all("Classifier")
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", classifier))
    ]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]


def _one(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (one for one in wheel.namelist() if one.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


def test_the_command_is_ours_in_every_way_to_start_it(installed: Installed) -> None:
    version = f"ringhaul, version {__version__}\n"
    assert installed.run("--version").out == version
    assert installed.python("-m", "ringhaul", "--version").out == version
    shown = installed.run("config", "show")
    assert shown.code == 0 and "transform.allowed" in shown.out, shown
    # A program of the project still has its own.
    program = "import ringhaul.transform.loading, config.settings as one; print(one.NAME)"
    assert installed.python("-c", program).out == "theirs\n"


def test_embedded_workers_are_ours_and_transforms_find_theirs(
    installed: Installed, cassandra_session: Session, table: str
) -> None:
    load = ("load", "rows.csv", "-t", table, "--transform", "etl:mark")
    assert_report(installed.run(*load, "--broker", "none", "--json"), rows=len(ROWS))
    assert_table(cassandra_session, table, "id, name", MASKED)


def test_workers_beat_and_flower_are_ours(
    installed: Installed, cassandra_session: Session, table: str, broker_url: str, tmp_path: Path
) -> None:
    schedule = installed.cwd / "schedule.toml"
    step = f'["load", "rows.csv", "-t", "{table}", "--transform", "etl:mark"]'
    schedule.write_text(f'[schedule.soon]\nevery = "2s"\nsteps = [{step}]\n')
    env = installed.env | {"RINGHAUL_SCHEDULE_FILE": str(schedule)}
    port = free_port()

    def started(*arguments: str) -> AbstractContextManager[Running]:
        return running(installed.argv(*arguments), env, installed.cwd, tmp_path / arguments[0])

    with (
        started("worker", "-c", "1") as worker,
        started("beat") as beat,
        started("flower", f"--port={port}") as flower,
    ):
        wait_for_worker(broker_url, worker.log)
        # Beat starts a command for the step, and a forked process of the worker runs it.
        beat.says(": step 1, try 1: soon-")
        wait_until(lambda: len(read_rows(cassandra_session, table, "id")) == len(ROWS), "all rows")
        assert_table(cassandra_session, table, "id, name", MASKED)
        # The worker starts a script that reports about its host.
        report = json.loads(installed.run("doctor", "--json").out)
        checks = {(one["about"], one["check"]): one["level"] for one in report["checks"]}
        assert checks["workers", "versions"] == "ok", report
        wait_until(lambda: flower.read() and answers(port), f"Flower; see {flower.log}")
        assert "soon-" in get(f"http://127.0.0.1:{port}/jobs")[1]
        # Celery's own commands find our application under a name that nothing hides.
        # It waits a second for answers: on a busy machine one may come later.
        inspect = ("-m", "celery", "-A", "ringhaul.celery_app", "inspect", "ping")
        inspected: list[Finished] = []

        def has_answered() -> bool:
            inspected[:] = [installed.python(*inspect)]
            return inspected[0].code == 0 and "pong" in inspected[0].out

        with contextlib.suppress(AssertionError):  # the next line says more
            wait_until(has_answered, "the worker's answer")
        assert inspected[0].code == 0 and "pong" in inspected[0].out, inspected
        refused = installed.python("-m", "celery", "-A", "tasks", "inspect", "ping")
        assert refused.code == 2 and "Unable to load celery application" in refused.err, refused


def test_the_local_stack_s_commands_are_ours(
    installed: Installed, stack: Stack, cassandra_session: Session, table: str
) -> None:
    """`local up` of a stack that is running, and the script that runs cqlsh."""
    cassandra_session.execute(f"INSERT INTO {table} (id, name) VALUES (7, 'seven')")
    env = {"RINGHAUL_STATE_DIR": str(stack.valkey.password_file.parents[1])}
    up = installed.run("local", "up", **env)
    assert up.code == 0 and "cassandra" in up.out + up.err, up
    asked = installed.run("local", "cql", "-e", f"SELECT name FROM {table}", **env)
    assert asked.code == 0 and "seven" in asked.out, asked


#: A program of the project: `config` is the project's, and the client's command has ours.
WITH_CLIENT = """
import sys
import pyarrow as pa
import config.settings
from ringhaul.client import Client

assert config.settings.NAME == "theirs"
client = Client(broker="none")
given = pa.table({"id": range(400), "name": [f"name {number}" for number in range(400)]})
assert client.load(given, sys.argv[1]).check().rows == 400
assert client.read(sys.argv[1]).sort_by("id").to_pylist() == given.to_pylist()
assert not [name for name in sys.modules if name.split(".")[0] in ("tasks", "producer", "celery")]
"""


def test_the_client_works_in_a_program_of_the_project(
    installed: Installed, cassandra_session: Session, table: str
) -> None:
    done = installed.python("-c", WITH_CLIENT, table)
    assert done.code == 0, done
    assert_table(cassandra_session, table, "id, name", ROWS)


def test_the_client_s_tests_pass_with_the_wheel(
    installed: Installed, stack: Stack, tmp_path: Path
) -> None:
    """Those without services, and of the others one that takes tables in and out."""
    state = str(stack.valkey.password_file.parents[1])
    # The plugin is imported first, so that what the tests import of ours is the wheel's.
    pytest_ = ("-P", "-m", "pytest", "-q", "-p", "ringhaul.__main__", "-p", "no:cacheprovider")
    chosen = "unit or reads_and_statements"
    tests = ("tests/unit/client", "tests/acceptance/test_client.py", "-k", chosen)
    ours = {name: text for name, text in installed.env.items() if not name.startswith("RINGHAUL_")}
    env = ours | {"RINGHAUL_TEST_STATE_DIR": state}
    argv = [str(installed.scripts / "python"), *pytest_, *tests, f"--basetemp={tmp_path}/base"]
    done = subprocess.run(argv, env=env, cwd=ROOT, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    origin = "import ringhaul.__main__ as m, config; print(m.__file__, config.__file__)"
    said = installed.python("-P", "-c", origin).out
    assert said.count(str(installed.scripts.parent)) == 2, said

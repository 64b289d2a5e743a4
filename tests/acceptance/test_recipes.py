"""The recipes in docs/recipes do what they say: two days of orders, every row compared.

Those for Airflow, Dagster and Prefect need their packages, which are not among the tests' own: they
run where the package can be imported. `RECIPES_PYTHON=/opt/{}/bin/python` names other environments,
in which `{}` stands for airflow, dagster or prefect.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from ringhaul.client import Client
from tests.acceptance.oracle import create_table

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
ROWS = 200
DAY, NEXT_DAY = "2026-01-31", "2026-02-01"


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    columns = "id int PRIMARY KEY, region text, total double"
    return create_table(cassandra_session, keyspace, columns, "orders")


@pytest.fixture
def env(fleet_env: dict[str, str], tmp_path: Path, table: str, keyspace: str) -> dict[str, str]:
    """The environment of a recipe: a folder with two days, and one bad record in the second."""
    folder = tmp_path / "orders"
    folder.mkdir()
    for number, day in enumerate((DAY, NEXT_DAY)):
        ids = range(number * ROWS, (number + 1) * ROWS)
        lines = [f"{n},{'north' if n % 3 else 'south'},{n / 4}" for n in ids]
        lines += ["x,north,1"] * number
        (folder / f"{day}.csv").write_text("\n".join(["id,region,total", *lines, ""]))
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "ringhaul").symlink_to(Path(__file__).parents[2] / "ringhaul")
    return fleet_env | {
        "ETL_FOLDER": str(folder),
        "ETL_TABLE": table,
        "ETL_COMMAND": str(Path(sys.executable).with_name("ringhaul")),
        "PYTHONPATH": str(packages),
        "HOME": str(tmp_path),
    }


def run(argv: Sequence[str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(argv), env=os.environ | env, cwd=cwd, capture_output=True, text=True, timeout=200
    )


def ids(session: Session, table: str) -> list[int]:
    return sorted(row.id for row in session.execute(f"SELECT id FROM {table}"))


def jobs(env: dict[str, str], table: str) -> dict[str, str]:
    """Id -> state of the jobs of a recipe; other tests name theirs after other years."""
    listed = Client(environment=env).jobs(limit=100)
    return {one.job: one.state for one in listed if one.job.startswith("orders-2026-")}


@pytest.fixture(autouse=True)
def no_job_of_a_recipe(fleet_env: dict[str, str], fleet_broker: Any) -> None:
    """Each test uses the same days, which are the ids of the jobs."""
    import redis

    with redis.Redis.from_url(fleet_broker.url) as client:
        for key in client.scan_iter("*orders-2026-*"):
            client.delete(key)


def test_the_cron_script(
    env: dict[str, str], table: str, cassandra_session: Session, tmp_path: Path
) -> None:
    script = str(RECIPES / "nightly.sh")
    env = env | {"TMPDIR": str(tmp_path)}  # its lock of each day stays there
    first, again = run([script, DAY], env, tmp_path), run([script, DAY], env, tmp_path)
    assert (first.returncode, again.returncode) == (0, 0), (first, again)
    assert ids(cassandra_session, table) == list(range(ROWS))
    second = run([script, NEXT_DAY], env, tmp_path)
    assert second.returncode == 1, second
    assert ids(cassandra_session, table) == list(range(2 * ROWS))
    folder = Path(env["ETL_FOLDER"])
    rejects = (folder / f"orders-{NEXT_DAY}-rejects.csv").read_text()
    assert rejects == "id,region,total\nx,north,1\n"
    assert json.loads((folder / f"orders-{DAY}.json").read_text())["rows"] == ROWS
    assert jobs(env, table) == {f"orders-{DAY}": "COMPLETE", f"orders-{NEXT_DAY}": "PARTIAL"}
    missing = run([script, "2020-01-01"], env, tmp_path)
    assert missing.returncode == 2 and "exit code 2" in missing.stderr


def cells() -> list[str]:
    notebook = json.loads((RECIPES / "notebook.ipynb").read_text())
    return ["".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell like a notebook: its value is that of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        tree.body.append(last)
        last = ast.Expr(ast.Constant(None, lineno=1, col_offset=0))
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_cells_of_the_notebook(
    env: dict[str, str],
    table: str,
    cassandra_session: Session,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    names: dict[str, Any] = {}
    values = [run_cell(cell, names) for cell in cells()]
    assert ids(cassandra_session, table) == list(range(1, 1001))
    _, loaded, verified, regions, found, _, rows = values
    assert (loaded.rows, verified, rows) == (1000, 1000, 1000)
    assert dict(zip(regions["region"], regions["orders"], strict=True)) == {
        "north": 667,
        "south": 333,
    }
    assert found["id"].tolist() == [7, 8, 9]
    assert names["back"]["total"].sum() == sum(n / 4 for n in range(3, 1001, 3))


def python_of(name: str) -> str:
    """The Python that can import a package; skips the test if there is none."""
    if template := os.environ.get("RECIPES_PYTHON"):
        return template.replace("{}", name)
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return sys.executable


def run_airflow(python: str, day: str, env: dict[str, str], folder: Path) -> None:
    home = {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(RECIPES),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    for words in (["db", "migrate"], ["dags", "test", "orders", day]):
        done = run([python, "-m", "airflow", *words], env | home, folder)
        assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"


DAGSTER = """
import sys, dagster as dg
sys.path.insert(0, sys.argv[1])
import dagster_assets as recipe
with dg.DagsterInstance.ephemeral() as instance:
    for asset, key in ((recipe.orders, sys.argv[2]), (recipe.orders_by_region, None)):
        done = dg.materialize(
            [recipe.orders, asset] if key is None else [asset],
            selection=[asset], partition_key=key, instance=instance,
        )
        assert done.success
        print(done.asset_materializations_for_node(asset.op.name)[0].metadata)
"""


def run_dagster(python: str, day: str, env: dict[str, str], folder: Path) -> None:
    done = run([python, "-c", DAGSTER, str(RECIPES), day], env, folder)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"


def run_prefect(python: str, day: str, env: dict[str, str], folder: Path) -> None:
    home = {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }
    done = run([python, str(RECIPES / "prefect_flow.py"), day], env | home, folder)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"


Runner = Callable[[str, str, dict[str, str], Path], None]


@pytest.mark.timeout(900)  # Airflow and Prefect start servers for each run
@pytest.mark.parametrize(
    ("name", "runner"),
    [("airflow", run_airflow), ("dagster", run_dagster), ("prefect", run_prefect)],
)
def test_a_recipe_of_an_orchestrator(
    name: str,
    runner: Runner,
    env: dict[str, str],
    table: str,
    cassandra_session: Session,
    tmp_path: Path,
) -> None:
    python = python_of(name)
    for day in (DAY, DAY, NEXT_DAY):  # a day that runs twice is one job
        runner(python, day, env, tmp_path)
    assert ids(cassandra_session, table) == list(range(2 * ROWS))
    loads = jobs(env, table)
    assert loads == {f"orders-{DAY}": "COMPLETE", f"orders-{NEXT_DAY}": "PARTIAL"}

"""Users' modules import their own `config`, `tasks` and `producer`; ours keep theirs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from setuptools.command.editable_wheel import _finder_template

import config
import config.settings
import tasks
from ringhaul.transform.errors import TransformError
from ringhaul.transform.loading import load_transforms
from ringhaul.transform.namesakes import USERS
from tasks.names import TaskNames


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of users' modules, which are unloaded after the test."""
    before, finders = set(sys.modules), list(sys.meta_path)
    yield tmp_path
    sys.meta_path[:] = finders
    for name in set(sys.modules) - before:
        if name.startswith(("rh_", USERS)):
            del sys.modules[name]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


#: Every way in which an import statement names a package or what is in it.
ETL = """
import config
import config.deep.settings
import config.deep.settings as settings
from config import NAME, deep
from config.deep.settings import URL
import tasks as jobs

def run(batch):
    import producer
    from config.late import LATE
    return [
        config.NAME, NAME, config.deep.settings.URL, settings.URL, deep.settings.URL, URL,
        jobs.NAME, producer.NAME, LATE,
    ]
"""


def test_an_import_of_a_users_module_finds_the_users_package(folder: Path) -> None:
    write(
        folder,
        {
            "rh_etl.py": ETL,
            "config/__init__.py": "NAME = 'config'\n",
            "config/deep/__init__.py": "",
            # Their packages import each other, by relative and by full names.
            "config/deep/settings.py": "from .. import NAME\nimport tasks\nURL = tasks.NAME\n",
            "config/late.py": "from config.deep.settings import URL as LATE\n",
            "tasks.py": "NAME = 'tasks'\n",
            "producer.py": "NAME = 'producer'\n",
        },
    )
    (found,) = load_transforms(["rh_etl:run"], ["*:*"], folder)
    names = ["config", "config", *["tasks"] * 4, "tasks", "producer", "tasks"]
    assert found.function(None) == names
    # What is ours stays what it was, in modules that know nothing of this.
    ours = {"__name__": "tasks.other"}
    exec("import config.settings, tasks", ours)
    assert ours["config"] is config and ours["tasks"] is tasks
    assert hasattr(config, "settings") and not hasattr(config, "NAME")


def test_a_transform_may_be_in_a_package_of_such_a_name(folder: Path) -> None:
    write(folder, {"tasks/__init__.py": "", "tasks/mask.py": "def run(batch): return 'theirs'\n"})
    (found,) = load_transforms(["tasks.mask:run"], ["tasks.*:*"], folder)
    assert found.function(None) == "theirs"
    with pytest.raises(TransformError, match="no module named producer"):
        load_transforms(["producer:run"], ["*:*"], folder)


def test_ours_are_not_for_users_modules(folder: Path) -> None:
    """Without a package of theirs, such an import fails instead of finding ours."""
    write(folder, {"rh_lost.py": "from config import settings\ndef run(batch): return batch\n"})
    with pytest.raises(TransformError, match="ringhaul's own config is not for transforms"):
        load_transforms(["rh_lost:run"], ["*:*"], folder)


def test_what_celery_and_its_pool_name_is_ours(folder: Path) -> None:
    """They unpickle what processes send each other, which imports by name."""
    write(folder, {"tasks.py": "def run(batch): return batch\n"})
    load_transforms(["tasks:run"], ["*:*"], folder)
    scope = {"__name__": "billiard.pool", "kind": TaskNames, "pickle": pickle}
    exec("import tasks.names\nfound = pickle.loads(pickle.dumps(kind))", scope)
    assert scope["found"] is TaskNames and scope["tasks"] is tasks
    scope["__name__"] = "rh_users"
    exec("import tasks", scope)
    assert scope["tasks"].run("a batch") == "a batch"


def test_projects_installed_as_editable_are_found(folder: Path, tmp_path: Path) -> None:
    """setuptools gives such a project a finder, and puts no folder on the path."""
    project = tmp_path / "project"
    write(
        project,
        {
            "rh_app/__init__.py": "from config import NAME\ndef run(batch): return NAME\n",
            "config/__init__.py": "from tasks import NAME\n",
            "tasks.py": "NAME = 'of the project'\n",
        },
    )
    places = {"rh_app": "rh_app", "config": "config", "tasks": "tasks"}
    text = _finder_template("rh", {name: str(project / at) for name, at in places.items()}, {})
    scope: dict[str, Any] = {"__name__": "__editable___rh_finder"}
    exec(text, scope)
    scope["install"]()
    hooks = list(sys.path_hooks)
    try:
        (found,) = load_transforms(["rh_app:run"], ["*:*"], None)
        assert found.function(None) == "of the project"
    finally:
        sys.path_hooks[:] = [hook for hook in hooks if hook.__module__ != scope["__name__"]]
        sys.path[:] = [entry for entry in sys.path if not entry.startswith("rh")]


def test_packages_on_pythons_path_are_found_without_a_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "project/rh_etl.py": "import config\ndef run(batch): return config.NAME\n",
            "project/config.py": "NAME = 'theirs'\n",
        },
    )
    code = (
        "from ringhaul.celery_app import app\n"
        "from ringhaul.transform.loading import load_transforms\n"
        "(found,) = load_transforms(['rh_etl:run'], ['*:*'], None)\n"
        "print(found.function(None))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "project")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "theirs\n", done
    assert config.__doc__

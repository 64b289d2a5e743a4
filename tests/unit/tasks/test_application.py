"""The Celery application as a worker gets it: from the environment, with every setting that counts.

Each test of settings starts a separate process: the application reads them once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tasks import app
from tasks.names import TaskNames

ASK = """
import json, os, sys
from tasks import app
names = json.loads(sys.argv[1])
found = {name: app.conf[name] for name in names}
found["$REMAP_SIGTERM"] = os.environ.get("REMAP_SIGTERM")
found["$CELERY_WORKER_REVOKES_MAX"] = os.environ.get("CELERY_WORKER_REVOKES_MAX")
from celery.worker import state
found["revokes_max"] = state.REVOKES_MAX
app.loader.import_default_modules()
found["tasks"] = {
    name: {"Request": task.Request, "acks_late": task.acks_late}
    for name, task in app.tasks.items()
    if not name.startswith("celery.")
}
print(json.dumps(found))
"""

#: Every row of the reliability table in the design, by its Celery setting. The time limits
#: are our own: see ADR 0014 and `test_time_limits.py`.
RELIABILITY: dict[str, Any] = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": False,
    "task_retry_on_worker_lost": False,
    "task_acks_on_failure": True,
    "task_acks_on_timeout": True,
    "worker_prefetch_multiplier": 1,
    "task_time_limit": None,
    "task_soft_time_limit": None,
    "broker_transport_options": {
        "visibility_timeout": 21600,
        "socket_timeout": 15,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "global_keyprefix": "ringhaul:mq:",
    },
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "worker_soft_shutdown_timeout": 30,
    "task_ignore_result": True,
    "result_backend": None,
    "worker_proc_alive_timeout": 60,
    "worker_max_tasks_per_child": 500,
    "worker_max_memory_per_child": 600_000,
    # Flower is part of the product, and a unit lasts seconds.
    "worker_send_task_events": True,
    "task_send_sent_event": True,
    "task_serializer": "json",
    "accept_content": ["json"],
    "result_accept_content": ["json"],
}


def ask(names: list[str], **env: str) -> dict[str, Any]:
    """The settings of an application in a process with this environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("RINGHAUL_", "CELERY_"))}
    clean.pop("REMAP_SIGTERM", None)
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(names)],
        env=clean | env,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_row_of_the_reliability_table_holds(tmp_path: Path) -> None:
    found = ask(
        list(RELIABILITY),
        RINGHAUL_BROKER_URL="redis://host:6379/0",
        RINGHAUL_STATE_DIR=str(tmp_path),
    )
    assert {name: found[name] for name in RELIABILITY} == RELIABILITY
    # And variables that Celery reads when it is imported were set before
    assert found["$REMAP_SIGTERM"] == "SIGQUIT"
    assert found["revokes_max"] == 1000


def test_settings_of_the_environment_reach_the_application(tmp_path: Path) -> None:
    found = ask(
        ["broker_url", "worker_concurrency", "worker_max_tasks_per_child"],
        RINGHAUL_BROKER_URL="redis://host:7000/3",
        RINGHAUL_WORKER_CONCURRENCY="7",
        RINGHAUL_WORKER_MAX_TASKS_PER_CHILD="9",
        RINGHAUL_STATE_DIR=str(tmp_path),
    )
    assert found["broker_url"] == "redis://host:7000/3"
    assert found["worker_concurrency"] == 7
    assert found["worker_max_tasks_per_child"] == 9


def test_celery_variables_of_the_environment_are_kept(tmp_path: Path) -> None:
    found = ask(
        [],
        RINGHAUL_BROKER_URL="redis://host/0",
        RINGHAUL_STATE_DIR=str(tmp_path),
        CELERY_WORKER_REVOKES_MAX="77",
    )
    assert found["$CELERY_WORKER_REVOKES_MAX"] == "77"
    assert found["revokes_max"] == 77


def test_importing_the_application_reads_no_settings(tmp_path: Path) -> None:
    # Given an invalid setting
    done = subprocess.run(
        [sys.executable, "-c", "import tasks; print(tasks.app.main)"],
        env=os.environ | {"RINGHAUL_CLUSTER_PORT": "no number", "HOME": str(tmp_path)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    # Then the import succeeds: the error is reported when settings are read
    assert (done.returncode, done.stdout) == (0, "ringhaul\n"), done.stderr


def test_task_names_match_those_in_messages() -> None:
    # A message of an older release must find its task: a name never changes
    assert TaskNames.LOAD_UNIT == "ringhaul.records.unit"
    assert TaskNames.VERIFY_UNIT == "ringhaul.verify.unit"
    assert TaskNames.READ_UNIT == "ringhaul.read.unit"
    assert TaskNames.ASK_UNIT == "ringhaul.ask.unit"


def test_the_application_has_the_tasks_that_messages_name(tmp_path: Path) -> None:
    found = ask([], RINGHAUL_BROKER_URL="redis://host/0", RINGHAUL_STATE_DIR=str(tmp_path))
    # Lost processes are reported to the ledger, and messages are acknowledged when done
    kept = {"Request": "tasks.base:UnitRequest", "acks_late": True}
    names = (
        *(TaskNames.LOAD_UNIT, TaskNames.VERIFY_UNIT),
        *(TaskNames.READ_UNIT, TaskNames.ASK_UNIT),
    )
    assert found["tasks"] == dict.fromkeys(names, kept)


def test_every_worker_runs_the_housekeeping() -> None:
    from celery.utils.imports import symbol_by_name

    from tasks.parent.housekeeping import Keeper

    assert Keeper in map(symbol_by_name, app.steps["worker"])

"""A real Prometheus scrapes a fleet that works: every query of dashboards and alerts has data."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from cassandra.cluster import Session

from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.oracle import create_table
from tests.acceptance.running import answers, free_port, get, running
from tests.debian_tools import find_program
from tests.deployment import DEPLOY, alert_rules, board_queries

RULES = DEPLOY / "prometheus" / "rules.yml"
#: A load that runs until Prometheus has what it needs, at most for two minutes.
ROWS, ROWS_S = 60_000, 500
SECRET = "Kx9-secret"


def test_promtool_accepts_the_configuration_and_each_alert_fires(tmp_path: Path) -> None:
    promtool = find_program("promtool")
    tests = tmp_path / "alerts.yml"
    text = (Path(__file__).parent / "alerts.yml").read_text()
    tests.write_text(text.replace("RULES", str(RULES)))
    for words in (
        ("check", "rules", RULES),
        ("check", "config", DEPLOY / "prometheus" / "prometheus.yml"),
        ("test", "rules", tests),
    ):
        done = subprocess.run(
            [promtool, *map(str, words)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    fires = [
        sample
        for test in yaml.safe_load(text)["tests"]
        for one in test.get("promql_expr_test", [])
        if "firing" in one["expr"]
        for sample in one["exp_samples"]
    ]
    fired = {re.findall(r'"(\w+)"', sample["labels"])[0] for sample in fires}
    assert fired == {rule["alert"] for rule in alert_rules()}, "each is tested"


class Prometheus:
    """A Prometheus with the configuration of deploy/, on loopback and in seconds."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self.port = free_port()
        conf = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        conf["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        conf["rule_files"] = [str(DEPLOY / "prometheus" / name) for name in conf["rule_files"]]
        (job,) = conf["scrape_configs"]
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(conf))
        self.argv = [
            str(find_program("prometheus")),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def ask(self, path: str, **words: str) -> Any:
        """Return the data of an answer of its API; None while it is not up."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{words}: {error.read().decode()}") from error
        except OSError:
            return None

    def has_data(self, query: str) -> bool:
        found = self.ask("query", query=query.replace("$job_id", ".+"))
        return found is not None and bool(found["result"])


@pytest.fixture
def limited(fleet_broker: EmbeddedValkey) -> Iterator[Ledger]:
    """The fleet's ledger, in a Redis with a maxmemory, as in production."""
    with redis.Redis.from_url(fleet_broker.url) as client:
        client.config_set("maxmemory", "2gb")
        yield Ledger(client)
        client.config_set("maxmemory", "0")


def test_every_query_has_data_during_a_load(
    fleet: Ringhaul, limited: Ledger, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text", name="orders")
    file = tmp_path / "orders.csv"
    file.write_text("id,name\n" + "".join(f"{n},{SECRET}\n" for n in range(ROWS)) + f"{SECRET},x\n")
    fleet.env |= {
        "RINGHAUL_METRICS_JOBS": "true",
        "RINGHAUL_SCHEDULE_FILE": str(tmp_path / "schedule.toml"),
    }
    (tmp_path / "schedule.toml").write_text(
        f'[schedule.hourly]\nevery = "1h"\nsteps = [["count", "-t", "{keyspace}.orders"]]\n'
        f'[schedule.broken]\nevery = "1h"\nsteps = [["count", "-t", "{keyspace}.missing"]]\n'
    )
    flower, metrics = free_port(), free_port()
    prometheus = Prometheus(tmp_path, [flower, metrics])
    with ExitStack() as stack:
        for command in (("metrics", "--port", metrics), ("flower", f"--port={flower}"), ("beat",)):
            log = tmp_path / f"{command[0]}.log"
            stack.enter_context(running(fleet.argv(*command), fleet.env, tmp_path, log))
        stack.enter_context(
            running(prometheus.argv, dict(os.environ), tmp_path, tmp_path / "prometheus.log")
        )
        wait_until(lambda: answers(metrics) and answers(flower), "metrics")
        # 1. A schedule fails, another one works.
        assert fleet.run("schedule", "run", "broken").code != 0
        assert fleet.run("schedule", "run", "hourly").code == 0
        # 2. A load runs until every query has data.
        load = ("load", file, "-t", f"{keyspace}.orders", "--rate", ROWS_S, "--job-id", "ld-shown")
        process = stack.enter_context(
            fleet.started(*load, "--unit-size", "32KiB", log=tmp_path / "load.log")
        )
        wait_until(lambda: prometheus.ask("query", query="up") is not None, "Prometheus")
        missing = {query: panel for panel, query in board_queries()}

        def is_shown() -> bool:
            for query in list(missing):
                if prometheus.has_data(query):
                    del missing[query]
            return not missing

        with contextlib.suppress(AssertionError):  # says below which have none
            wait_until(is_shown, "data", timeout_s=50)
        assert not missing
        assert process.poll() is None, "all of it while the load runs"
        # 3. The alerts can be evaluated, know their metrics, and one that has to fire does.
        groups = prometheus.ask("rules")["groups"]
        states = {rule["name"]: rule for group in groups for rule in group["rules"]}
        assert set(states) == {rule["alert"] for rule in alert_rules()}
        assert {rule["health"] for rule in states.values()} == {"ok"}
        used = {
            (rule["alert"], name)
            for rule in alert_rules()
            for name in re.findall(r"\bringhaul_\w+", rule["expr"])
        }
        for alert, name in sorted(used):  # a scrape that failed leaves a gap
            asked = partial(prometheus.has_data, f"count({name})")
            wait_until(asked, f"data of {name}, for {alert}", timeout_s=20)
        firing = 'ALERTS{alertname="RinghaulScheduleFailed",alertstate="firing"}'
        wait_until(lambda: prometheus.has_data(firing), "the alert")
        labels = prometheus.ask("query", query=firing)["result"][0]["metric"]
        assert labels["schedule"] == "broken"
        # 4. What a scrape has is what `status` says.
        assert fleet.run("throttle", "ld-shown", "--off").code == 0
        assert process.wait(60) == 1, "a record is rejected"
        status = json.loads(fleet.run("status", "ld-shown", "--json").out)
        assert (status["rows"], status["rejected"]) == (ROWS, 1)
        increase = 'max(increase(ringhaul_rows_total{kind="load"}[5m]))'
        wait_until(
            lambda: float(prometheus.ask("query", query=increase)["result"][0]["value"][1]) > 0,
            "the rows",
        )
        # 5. Nothing of a row, and no password, is in a metric.
        password = fleet.env["RINGHAUL_BROKER_URL"].partition("://:")[2].partition("@")[0]
        assert len(password) > 10
        for port in (metrics, flower):
            code, text = get(f"http://127.0.0.1:{port}/metrics")
            assert code == 200 and SECRET not in text and password not in text


def test_the_command(fleet: Ringhaul, tmp_path: Path) -> None:
    """It listens on loopback, says where, and ends on SIGTERM."""
    log = tmp_path / "metrics.log"
    with running(fleet.argv("metrics", "--port", 0), fleet.env, tmp_path, log) as one:
        one.says("metrics are at http://127.0.0.1:")
        ((address, port),) = one.addresses()
        assert address == "127.0.0.1"
        page = f"http://127.0.0.1:{port}"
        code, text = get(f"{page}/metrics")
        assert code == 200
        assert re.search(r"^ringhaul_up 1\.0$", text, re.MULTILINE)
        assert re.search(r"^ringhaul_worker_slots 2\.0$", text, re.MULTILINE)
        assert "job_id=" not in text
        checked = subprocess.run(
            [find_program("promtool"), "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (checked.returncode, checked.stderr) == (0, "")
        assert get(f"{page}/healthcheck") == (200, "OK")
        assert get(f"{page}/etc/passwd")[0] == 404
        taken = fleet.run("metrics", "--port", port)
        assert taken.code == 2
        assert f"cannot listen on 127.0.0.1 port {port}" in taken.err
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(10) == 0
    assert "Traceback" not in log.read_text()

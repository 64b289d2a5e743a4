"""Prometheus' and Grafana's files agree with the metrics, the services and the docs.

tests/acceptance/test_prometheus.py runs the queries in a real Prometheus. Grafana is not installed,
so its files are parsed.
"""

import json
import re
from pathlib import Path

import yaml
from flower.events import get_prometheus_metrics

from config.settings import load_settings
from producer.metrics.exposition import JOB_GAUGES, metrics_of
from producer.metrics.figures import Figures, ScheduleFigures
from ringhaul.ledger.schedules import Health
from ringhaul.ledger.server_checks import ServerFacts
from ringhaul.ledger.workers import Worker
from ringhaul.schedule.runs import Run
from tests.deployment import BOARDS, DEPLOY, ROOT, alert_rules, board_queries, services

SERVICES = services()


def test_prometheus_scrapes_existing_services() -> None:
    conf = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    assert set(conf) == {"global", "rule_files", "scrape_configs"}
    assert all((DEPLOY / "prometheus" / name).is_file() for name in conf["rule_files"])
    (job,) = conf["scrape_configs"]
    assert set(job) == {"job_name", "static_configs"}
    assert job["job_name"] == "ringhaul", "rules name it"
    targets = [target for group in job["static_configs"] for target in group["targets"]]
    assert targets == ["flower:5555"]
    # Flower refuses requests for other names, and addresses other than loopback without a log-in.
    web = load_settings(config_file=DEPLOY / "etc" / "ringhaul.toml").settings.web
    assert (web.hosts, web.authentication) == (("flower",), "proxy")
    assert set(SERVICES["prometheus"]["profiles"]) <= set(SERVICES["flower"]["profiles"])
    assert "--config.file=/etc/prometheus/prometheus.yml" in SERVICES["prometheus"]["command"]
    assert "./deploy/prometheus:/etc/prometheus:ro" in SERVICES["prometheus"]["volumes"]


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioning / "dashboards/ringhaul.yml").read_text())[
        "providers"
    ]
    folder = provider["options"]["path"]
    assert f"./deploy/grafana/dashboards:{folder}:ro" in SERVICES["grafana"]["volumes"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(home).parent == Path(folder)
    assert Path(home).name in [board.name for board in BOARDS]
    assert len({json.loads(board.read_text())["uid"] for board in BOARDS}) == len(BOARDS) == 2
    for board in BOARDS:
        document = json.loads(board.read_text())
        # A Grafana that is there already chooses its Prometheus by the variable.
        chosen = document["templating"]["list"][0]
        assert (chosen["type"], chosen["query"]) == ("datasource", "prometheus")
        assert chosen["current"]["value"] == source["uid"]
        panels = document["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        cells = set()
        for panel in panels:
            assert panel["title"] and panel["targets"]
            for queried in (panel, *panel["targets"]):
                assert queried["datasource"]["uid"] == f"${{{chosen['name']}}}"
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    assert (x, y) not in cells, f"{board.name}: {panel['title']} overlaps"
                    cells.add((x, y))


def known_metrics() -> dict[str, set[str]]:
    """Sample -> its labels, of Flower and of ringhaul."""
    figures = Figures(
        server=ServerFacts(address="", used_bytes=1, maxmemory_bytes=1, appendonly=True),
        unended=[],
        totals={},
        queues={"q": 0},
        schedules=[
            ScheduleFigures(
                name="a",
                next_due_ms=1,
                last=Run(schedule="a", due_ms=1, started_ms=1),
                health=Health(success_ms=1),
            )
        ],
        workers=[Worker("h", 1, 1)],
        beats={"h:1": ""},
    )
    job = ("job_id", "kind")
    has = {f"ringhaul_job_{name}": set(job) for name in JOB_GAUGES} | {
        "ringhaul_job_units": {*job, "state"},
        "ringhaul_request_latency_seconds_bucket": {"kind", "le"},
        "ringhaul_up": set(),
        "up": {"job", "instance"},
    }
    for metric in metrics_of(figures, {}, jobs=True):
        for sample in metric.samples:
            has[sample.name] = set(sample.labels)
    for metric in vars(get_prometheus_metrics()).values():
        for described in metric.describe():
            for end in ("", "_total", "_bucket"):
                has[f"{described.name}{end}"] = {*metric._labelnames, *(["le"] if end else [])}
    return has


def test_queries_use_metrics_and_labels_that_exist() -> None:
    has = known_metrics()
    used = set()
    expressions = [rule["expr"] for rule in alert_rules()]
    for expression in (*expressions, *(query for _, query in board_queries())):
        names = re.findall(r"\b((?:flower|ringhaul)_\w+|up)\b(?:\{([^}]*)\})?", expression)
        labels = set()
        for name, matchers in names:
            assert name in has, expression
            used.add(name)
            labels |= has[name]
            wanted = set(re.findall(r"(\w+)(?:=~?|!=)\"", matchers))
            assert wanted <= has[name] | {"job", "instance"}, expression
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            assert set(re.split(r",\s*", grouped)) <= labels | {"job", "instance"}, expression
        assert expression.count("(") == expression.count(")")
    ours = {name for name in has if name.startswith("ringhaul_")}
    assert len(used & ours) > 35


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    page = (ROOT / "docs" / "how-to" / "monitoring.md").read_text()
    assert len({rule["alert"] for rule in alert_rules()}) == len(alert_rules()) >= 10
    for rule in alert_rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"] and rule["annotations"]["action"]
        assert f"`{rule['alert']}`" in page, f"docs/how-to/monitoring.md lacks {rule['alert']}"


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    for name in known_metrics():
        if name.startswith("ringhaul_") and not name.endswith(("_sum", "_count", "_bucket")):
            assert f"`{name}`" in page, f"docs/reference/metrics.md lacks {name}"

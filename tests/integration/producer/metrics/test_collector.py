"""Metrics equal the ledger; a scrape is bounded, and answers while Redis is away."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from config.celery_config import QUEUE_LOAD
from config.settings import Settings, load_settings
from producer.figures.speed import recent_snapshot
from producer.local.valkey import EmbeddedValkey
from producer.metrics import scrape as scrape_module
from producer.metrics.collector import register
from producer.schedule.scheduler import Beat
from ringhaul.ledger import keys
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from tasks.private_queues import private_queue
from tests.integration.producer.rig import Rig, look_until
from tests.services import restart_valkey, running_valkey

SECRET = "Kx9-secret"


def settings_for(url: str, tmp_path: Path, *, jobs: bool = False) -> Settings:
    given = {"broker.url": url, "metrics.jobs": jobs, "state_dir": tmp_path}
    return load_settings(given).settings


@pytest.fixture
def registry(broker_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CollectorRegistry:
    monkeypatch.chdir(tmp_path)  # no schedule file
    found = CollectorRegistry()
    register(settings_for(broker_url, tmp_path, jobs=True), found)
    return found


def scrape(registry: CollectorRegistry) -> dict[str, Metric]:
    return {metric.name: metric for metric in registry.collect()}


def value(metrics: dict[str, Metric], name: str, **labels: str) -> float:
    (sample,) = (one for one in metrics[name].samples if labels.items() <= one.labels.items())
    return float(sample.value)


def create(ledger: Ledger, job: str, units: int, kind: str = "load") -> None:
    labels = {"kind": kind, "table": SECRET, "command": SECRET, "bytes_total": "1000"}
    ledger.create(job, labels, json.dumps({"secret": SECRET}))
    ledger.add_units(job, 1, 0, [SECRET] * units)
    ledger.seal(job, 1, units)


def commit(ledger: Ledger, job: str, unit: int, rows: int, rejected: int = 0) -> None:
    token = f"t{unit}@celery@host1:7"
    ledger.issue(job, 1000)
    ledger.claim(job, unit, 1, token, 60_000)
    totals = {"rows": rows, "rejected": rejected, "bytes": 100, "retries": 2}
    ledger.commit(job, unit, 1, token, SECRET, totals, {"60": 5}, SECRET.encode())


def test_the_figures_are_those_of_the_ledger(
    ledger: Ledger, registry: CollectorRegistry, broker_url: str
) -> None:
    # Given a load that is running, one that ended with rejects, and an unload that is paused
    Workers(ledger.caller).heartbeat(Worker("host1", 1, 4, (QUEUE_LOAD,)), 60_000)
    create(ledger, "ld-1", 5)
    commit(ledger, "ld-1", 0, 70)
    ledger.claim("ld-1", 1, 1, "t1@celery@host1:7", 60_000)
    ledger.renew("ld-1", 1, "t1@celery@host1:7", 60_000, Live(rows=9, rejected=1, in_flight=4))
    create(ledger, "ld-2", 1)
    commit(ledger, "ld-2", 0, 30, rejected=3)
    create(ledger, "un-3", 2, kind="unload")
    ledger.pause("un-3")
    client, prefix = ledger.caller.client, "ringhaul:mq:"
    client.rpush(prefix + QUEUE_LOAD, "a", "b")
    metrics = scrape(registry)
    # Then jobs and units are those that `status` lists
    statuses = {status.job: status for status in ledger.jobs()}
    for state in ("RUNNING", "PAUSED", "PARTIAL", "COMPLETE"):
        jobs = [one for one in statuses.values() if one.state_name == state]
        assert value(metrics, "ringhaul_jobs", state=state) == len(jobs), state
    unended = [one for one in statuses.values() if not one.finished]
    assert value(metrics, "ringhaul_units", state="done") == sum(one.done for one in unended) == 1
    assert value(metrics, "ringhaul_units", state="running") == 1
    # Counters are the sums over all jobs
    loads = [statuses["ld-1"], statuses["ld-2"]]
    for name, figure in (
        ("rows", "rows"),
        ("rejected_records", "rejected"),
        ("bytes", "bytes"),
        ("request_retries", "retries"),
    ):
        total = sum(one.totals[figure] for one in loads)
        assert value(metrics, f"ringhaul_{name}", kind="load") == total, name
    assert value(metrics, "ringhaul_rows", kind="load") == 100
    assert value(metrics, "ringhaul_uncommitted_rows") == 9
    latencies = metrics["ringhaul_request_latency_seconds"].samples
    (count,) = (
        one.value
        for one in latencies
        if one.name.endswith("_count") and one.labels["kind"] == "load"
    )
    assert count == sum(sum(ledger.latencies(job).values()) for job in ("ld-1", "ld-2"))
    assert value(metrics, "ringhaul_jobs_ended", kind="load", state="PARTIAL") == 1
    # Those of the running job are what `status --json` shows
    snapshot = recent_snapshot(statuses["ld-1"], [])
    assert value(metrics, "ringhaul_job_rows", job_id="ld-1") == snapshot.rows == 79
    assert value(metrics, "ringhaul_job_progress_ratio", job_id="ld-1") == snapshot.share
    assert value(metrics, "ringhaul_job_paused", job_id="un-3") == 1
    assert not [
        one for one in metrics["ringhaul_job_rows"].samples if one.labels["job_id"] == "ld-2"
    ]
    # And the fleet is the one that `top` shows
    assert value(metrics, "ringhaul_worker_slots") == 4
    assert value(metrics, "ringhaul_queue_messages", queue=QUEUE_LOAD) == 2
    assert value(metrics, "ringhaul_redis_used_bytes") > 0
    assert value(metrics, "ringhaul_up") == 1
    # Nothing of a row, a path or a command is in a metric, nor is a password
    text = str(metrics)
    password = broker_url.partition("://:")[2].partition("@")[0]
    assert len(password) > 10
    assert SECRET not in text and password not in text and "127.0.0.1" not in text


def test_a_forgotten_job_leaves_its_counts(ledger: Ledger, registry: CollectorRegistry) -> None:
    create(ledger, "ld-1", 1)
    commit(ledger, "ld-1", 0, 70)
    before = scrape(registry)
    client = ledger.caller.client
    client.delete(*client.keys("ringhaul:{ld-1}:*"))
    after = scrape(registry)
    assert value(after, "ringhaul_jobs", state="COMPLETE") == 0
    for name in ("ringhaul_rows", "ringhaul_units_committed"):
        assert value(after, name, kind="load") == value(before, name, kind="load") > 0


def test_queues_of_single_jobs_are_no_label(ledger: Ledger, registry: CollectorRegistry) -> None:
    own = [private_queue("ld-1"), private_queue("ld-2")]
    for number, queue in enumerate(own):
        Workers(ledger.caller).heartbeat(Worker("host1", number, 1, (queue,)), 60_000)
        ledger.caller.client.rpush(f"ringhaul:mq:{queue}", "a")
    queues = scrape(registry)["ringhaul_queue_messages"].samples
    found = {one.labels["queue"]: one.value for one in queues}
    assert found == {QUEUE_LOAD: 0, "own": 2}


def test_queues_and_schedules_are_bounded(
    rig: Rig, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = tuple(f"{QUEUE_LOAD}.dc{number}" for number in range(10))
    Workers(rig.ledger.caller).heartbeat(Worker("host1", 1, 1, queues), 60_000)
    step = 'every = "1h"\nsteps = [["count", "-t", "k.t"]]'
    rig.file.write_text("".join(f"[schedule.s{n}]\n{step}\n" for n in range(10)))
    monkeypatch.setattr(scrape_module, "QUEUES_MAX", 4)
    monkeypatch.setattr(scrape_module, "SCHEDULES_MAX", 3)
    registry = CollectorRegistry()
    register(load_settings().settings, registry)
    metrics = scrape(registry)
    assert len(metrics["ringhaul_queue_messages"].samples) == 4
    assert len(metrics["ringhaul_schedule_paused"].samples) == 3


def test_a_damaged_job_is_counted_as_that(ledger: Ledger, registry: CollectorRegistry) -> None:
    create(ledger, "ld-1", 3)
    ledger.caller.client.delete(keys.bucket_key("ld-1", "units", 0))
    metrics = scrape(registry)
    assert value(metrics, "ringhaul_jobs", state="DAMAGED") == 1
    assert value(metrics, "ringhaul_jobs", state="RUNNING") == 0
    assert value(metrics, "ringhaul_units", state="waiting") == 0


@pytest.fixture
def own_valkey() -> Iterator[EmbeddedValkey]:
    with running_valkey() as valkey:
        yield valkey


def test_without_redis_a_scrape_says_so_and_recovers(
    own_valkey: EmbeddedValkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = settings_for(own_valkey.url, tmp_path)
    registry = CollectorRegistry()
    register(settings, registry)
    assert value(scrape(registry), "ringhaul_up") == 1
    pid = own_valkey.pid
    assert pid is not None
    # It hangs: the scrape gives up, and shows no old figures
    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        metrics = scrape(registry)
        assert time.monotonic() - began < 5
    finally:
        os.kill(pid, signal.SIGCONT)
    assert value(metrics, "ringhaul_up") == 0
    assert set(metrics) == {"ringhaul_up", "ringhaul_scrape_duration_seconds"}
    # It disappears, and returns
    restart_valkey(own_valkey)
    assert value(scrape(registry), "ringhaul_up") == 1


def test_a_server_that_answers_too_slowly_is_not_up(
    ledger: Ledger, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape_module, "BUDGET_S", 0.0)
    assert value(scrape(registry), "ringhaul_up") == 0
    monkeypatch.undo()
    assert value(scrape(registry), "ringhaul_up") == 1


def test_a_server_that_refuses_the_user_is_not_up(
    broker_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    url = "redis://:wrong-" + broker_url.partition("://:")[2]
    register(settings_for(url, tmp_path), registry)
    for _ in range(2):
        assert value(scrape(registry), "ringhaul_up") == 0
    assert caplog.text.count("refuses") == 1, "said once"
    assert "wrong-" not in caplog.text


def test_schedules_from_the_file_and_the_ledger(
    rig: Rig, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 'steps = [["count", "-t", "k.t"]]'
    rig.file.write_text(
        f'[schedule.a]\ncron = "17 3 * * *"\n{steps}\n[schedule.b]\nevery = "1h"\n{steps}\n'
    )
    registry = CollectorRegistry()
    register(load_settings().settings, registry)
    name = "ringhaul_schedule_next_due_timestamp_seconds"
    metrics = scrape(registry)
    assert value(metrics, "ringhaul_schedules") == 2
    assert metrics[name].samples == [], "no beat has looked at them"
    assert value(metrics, "ringhaul_beats") == 0
    beat: Beat = rig.beat()
    beat.look()
    metrics = scrape(registry)
    assert value(metrics, "ringhaul_beats") == 1
    assert 0 < value(metrics, name, schedule="b") - time.time() <= 3600
    # No beat looks for two days: the due time is in the past
    rig.set_back("a", 2)
    metrics = scrape(registry)
    assert value(metrics, name, schedule="a") < time.time() - 86_000
    # A beat looks again and runs it, which fails
    look_until(beat, rig.run, "the run")
    assert value(scrape(registry), "ringhaul_schedule_running", schedule="a") == 1
    look_until(beat, lambda: rig.book.standing("a").run is None, "the end of the run")
    metrics = scrape(registry)
    assert value(metrics, "ringhaul_schedule_last_outcome", schedule="a", outcome="failed") == 1
    assert value(metrics, "ringhaul_schedule_last_outcome", schedule="a", outcome="done") == 0
    assert value(metrics, name, schedule="a") > time.time()
    run = rig.run()
    assert run is not None and run.started_ms is not None
    dispatch = value(metrics, "ringhaul_beat_last_dispatch_timestamp_seconds")
    assert dispatch == run.started_ms / 1000
    # A file that is broken later: the schedules stay as they were
    rig.file.write_text("[schedule.a")
    assert value(scrape(registry), "ringhaul_schedules") == 2
    beat.close()


@pytest.mark.alone
def test_a_scrape_of_many_jobs_is_bounded(
    ledger: Ledger, registry: CollectorRegistry, capsys: pytest.CaptureFixture[str]
) -> None:
    """5,000 ended jobs, and a running one of 50,000 units."""
    client = ledger.caller.client
    pipeline = client.pipeline(transaction=False)
    for number in range(5000):
        job = f"ld-{number:05}"
        meta = {"state": "COMPLETE", "kind": "load", "units": 1, "left": 0, "created_ms": number}
        pipeline.hset(keys.job_key(job, "meta"), mapping=meta)
        pipeline.zadd(keys.JOBS, {job: number})
    pipeline.execute()
    ledger.create("ld-large", {"kind": "load", "table": "shop.orders"}, "{}")
    for first in range(0, 50_000, 5000):
        ledger.add_units("ld-large", 1, first, ["0,0,8388608"] * 5000)
    ledger.seal("ld-large", 1, 50_000)
    for unit in ledger.issue("ld-large", 200).units:
        ledger.claim("ld-large", unit, 1, f"t{unit}@celery@host1:7", 600_000)
    scrape(registry)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        metrics = scrape(registry)
        took.append(time.perf_counter() - began)
    assert value(metrics, "ringhaul_jobs", state="COMPLETE") == 5000
    assert value(metrics, "ringhaul_units", state="waiting") == 49_800
    with capsys.disabled():
        print(f"\na scrape beside 5,000 jobs and 50,000 units: {min(took) * 1000:.0f} ms")
    assert min(took) < 0.3


def test_another_user_of_redis_adds_no_label(
    ledger: Ledger, registry: CollectorRegistry, broker_url: str
) -> None:
    """Who can write to Redis cannot fill Prometheus with series."""
    client: redis.Redis = ledger.caller.client
    before = sum(len(one.samples) for one in registry.collect())
    client.hset(keys.TOTALS, mapping={f"kind{n}:rows": 1 for n in range(50)})
    client.hset(keys.TOTALS, mapping={f"load:figure{n}": 1 for n in range(50)})
    client.hset(keys.TOTALS, mapping={f"load:ended:STATE{n}": 1 for n in range(50)})
    client.hset(keys.TOTALS, mapping={f"load:latency:{n}": 1 for n in range(100, 400)})
    for number in range(50):
        client.hset(keys.job_key(f"x-{number}", "meta"), "state", f"STATE{number}")
        client.zadd(keys.JOBS, {f"x-{number}": number})
    more = sum(len(one.samples) for one in registry.collect()) - before
    assert more == 20, "the histogram of loads alone"

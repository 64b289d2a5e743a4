"""Pages and JSON about jobs: a real Flower, a real Redis, and jobs written into its ledger."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from bench.made_jobs import REJECTED, age, make_load
from config.celery_config import QUEUE_LOAD
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger import keys
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.flower_site import Answer, FlowerSite, flower_site
from tests.acceptance.test_report import Attributes
from tests.services import running_valkey

#: In a rejected record: data, markup, and what a terminal obeys.
SENTINEL = "Kx9-top-secret-value"
RECORD = f"EMEA,17,{SENTINEL}<script>alert(1)</script>\x1b[31mred\u202e".encode()
JOBS = 60  # more than a page


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedValkey]:
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture(scope="module")
def ledger(broker: EmbeddedValkey) -> Iterator[Ledger]:
    with redis.Redis.from_url(broker.url) as client:
        yield Ledger(client)


@pytest.fixture(scope="module")
def ringhaul(
    broker: EmbeddedValkey, ledger: Ledger, tmp_path_factory: pytest.TempPathFactory
) -> Ringhaul:
    """The command, with a ledger of many jobs."""
    folder = tmp_path_factory.mktemp("pages")
    for number in range(JOBS):
        make_load(ledger, f"ld-old{number:02}", 1, table=f"orders_{number % 2}")
    make_load(ledger, "nightly-20261120T013000Z-1", 2)
    rejected = replace(REJECTED, reason=f'"{SENTINEL}" is not a decimal number', data=RECORD)
    make_load(ledger, "ld-rejects", 3, rejects=2, rejected=rejected)
    make_load(ledger, "ld-run", 10, done=4)
    age(ledger, "ld-run", 20)
    make_load(ledger, "ld-damaged", 4)
    ledger.caller.command("DEL", keys.job_key("ld-damaged", "done"))
    # Without a live worker, a job that runs is stalled.
    Workers(ledger.caller).heartbeat(Worker("host1", 1, 2, (QUEUE_LOAD,)), 3_600_000)
    env = {"RINGHAUL_BROKER_URL": broker.url, "RINGHAUL_STATE_DIR": str(folder / "state")}
    return Ringhaul(env, folder)


@pytest.fixture(scope="module")
def site(ringhaul: Ringhaul) -> Iterator[FlowerSite]:
    """Flower on loopback, where it shows data."""
    with flower_site(ringhaul, log=ringhaul.cwd / "flower.log") as site:
        yield site


@pytest.fixture(scope="module")
def discreet(ringhaul: Ringhaul) -> Iterator[FlowerSite]:
    """Flower behind a prefix, without data of rows."""
    log = ringhaul.cwd / "discreet.log"
    with flower_site(
        ringhaul, "--url_prefix=flower", log=log, RINGHAUL_WEB_SHOW_DATA="false"
    ) as site:
        yield site


def listed(site: FlowerSite, query: str = "") -> list[str]:
    """The jobs on a page of the list, in its order."""
    answer = site.get(f"/jobs{query}")
    assert answer.status == 200, answer
    return re.findall(r'<tr data-key="([^"]+)"', answer.text)


def document(answer: Answer) -> dict[str, object]:
    assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"
    found: dict[str, object] = json.loads(answer.text)
    return found


def test_the_navigation_of_every_page_of_flower_leads_to_the_jobs(site: FlowerSite) -> None:
    for path in ("/", "/workers", "/tasks", "/broker", "/jobs", "/jobs/ld-run"):
        links = re.findall(r'href="([^"]+)"', site.get(path).text)
        assert {"/workers", "/tasks", "/broker", "/jobs"} <= set(links), path


def test_a_list_over_many_jobs_has_pages_and_filters(site: FlowerSite) -> None:
    total = JOBS + 4
    first, second = listed(site), listed(site, "?page=2")
    assert first[0] == "ld-run"  # it runs
    assert (len(first), len(second)) == (50, total - 50)
    assert not set(first) & set(second)
    assert second == sorted(second, reverse=True)  # the newest first
    assert listed(site, "?page=3") == []
    assert listed(site, "?state=open") == ["ld-run"]
    assert listed(site, "?state=PARTIAL") == ["ld-rejects"]
    assert set(listed(site, "?q=ORDERS_1")) == {f"ld-old{n:02}" for n in range(1, JOBS, 2)}
    assert listed(site, "?schedule=nightly") == ["nightly-20261120T013000Z-1"]
    assert listed(site, "?kind=unload") == []
    text = site.get("/jobs?q=orders_1").text
    assert f"{JOBS // 2} of {total} jobs" in text
    assert 'href="/jobs?schedule=nightly"' in site.get("/jobs?q=nightly").text
    # The entered values stay in the form, as text
    evil = site.get("/jobs?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert evil.status == 200 and "<script>alert" not in evil.text
    refused = site.get("/jobs?state=x%3Cb%3E")
    assert refused.status == 400 and "no state &quot;x&lt;b&gt;&quot;" in refused.text


def test_a_job_that_ends_is_resumed_or_is_new_is_listed_so(
    site: FlowerSite, ledger: Ledger
) -> None:
    def state(job: str) -> str:
        rows = json.loads(site.get(f"/api/jobs?q={job}").text)["jobs"]
        return str(rows[0]["state"])

    make_load(ledger, "ld-turn", 3, done=1)
    wait_until(lambda: listed(site, "?q=ld-turn") == ["ld-turn"], "the new job")
    ledger.cancel("ld-turn")
    wait_until(lambda: state("ld-turn") == "CANCELLED", "it to be cancelled")
    wait_until(lambda: listed(site, "?state=CANCELLED") == ["ld-turn"], "the filter to see it")
    ledger.resume("ld-turn")
    wait_until(lambda: listed(site, "?state=open&q=turn") == ["ld-turn"], "it to run again")
    ledger.pause("ld-turn")
    wait_until(lambda: listed(site, "?state=PAUSED") == ["ld-turn"], "its pause")
    ledger.cancel("ld-turn")
    for key in ledger.caller.command("KEYS", "ringhaul:{ld-turn}:*"):
        ledger.caller.command("DEL", key)
    wait_until(lambda: listed(site, "?q=ld-turn") == [], "it to be forgotten")
    missing = site.get("/jobs/ld-turn")
    assert (missing.status, "there is no job ld-turn" in missing.text) == (404, True)


def test_a_page_of_a_job_says_what_the_command_says(
    site: FlowerSite, ringhaul: Ringhaul, ledger: Ledger
) -> None:
    # A job without progress for a minute has no estimate
    seconds, _ = ledger.caller.command("TIME")
    ledger.caller.command(
        "HSET", keys.job_key("ld-run", "meta"), "progress_ms", int(seconds) * 1000
    )
    page = Attributes(site.get("/jobs/ld-rejects").text)
    summary = ringhaul.run("status", "ld-rejects", "--json").summary
    assert page.figures == {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in summary.items()
        if value is None or isinstance(value, (int, float, str))
        if name != "message_type"
    }
    assert page.data["data-state"] == ["PARTIAL"]
    assert page.data["data-rows"] == [str(summary["rows"])]
    assert page.data["data-rejects"] == ["2"]
    assert "ringhaul load /data/orders/orders.csv -t shop.orders" in page.text  # what made it
    assert "ringhaul errors ld-rejects --export" in page.text  # what is next
    running = Attributes(site.get("/jobs/ld-run").text)
    assert (running.data["data-state"], running.data["data-share"]) == (["RUNNING"], ["0.4000"])
    assert float(running.data["data-eta-s"][0]) > 0
    assert "ringhaul status -f ld-run" in running.text
    assert running.data["data-live"] == ["/jobs/ld-run/events"]


def test_json_has_the_fields_of_the_commands(site: FlowerSite, ringhaul: Ringhaul) -> None:
    of_command = json.loads(ringhaul.run("status", "ld-rejects", "--events", "--json").out)
    assert document(site.get("/api/jobs/ld-rejects")) == of_command
    listed = json.loads(ringhaul.run("status", "--json", "--limit", 10_000).out)
    rows = {row["job"]: row for row in listed}
    answer = document(site.get("/api/jobs?limit=10&offset=1"))
    shown = answer["jobs"]
    assert isinstance(shown, list) and len(shown) == 10
    assert (answer["limit"], answer["offset"]) == (10, 1)
    for row in shown:
        of_job = rows[row["job"]]
        if row["state"] in ("RUNNING", "PAUSED"):  # speed and ETA depend on the moment
            moving = {"rows_per_s": of_job["rows_per_s"], "eta_s": of_job["eta_s"]}
            assert row | moving == of_job
        else:
            assert row == of_job
    running = document(site.get("/api/jobs/ld-run"))
    assert (running["state"], running["units_done"], len(running["samples"])) == (  # type: ignore
        "RUNNING",
        4,
        20,
    )


def test_a_dead_fleet_looks_dead_everywhere(
    site: FlowerSite, ringhaul: Ringhaul, ledger: Ledger
) -> None:
    workers = Workers(ledger.caller)
    (worker,) = workers.alive()
    assert "no worker" not in site.get("/jobs").text
    # When the only worker dies: its heartbeat expires
    workers.heartbeat(worker, 1)
    try:
        wait_until(lambda: not workers.alive(), "the heartbeat to expire")
        line = re.compile(r"no worker has been alive for 0:\d\d: start one with `ringhaul worker`")

        # Then list and page say so, instead of an estimate, and a program is told, too
        page = site.get("/jobs/ld-run").text
        assert line.search(page) and ">! STALLED<" in page and "data-eta-s" not in page
        listed = site.get("/jobs?state=open").text
        assert line.search(listed) and ">! STALLED<" in listed
        row = document(site.get("/api/jobs?q=ld-run"))["jobs"][0]  # type: ignore[index]
        assert (row["state"], row["condition"], row["eta_s"]) == ("RUNNING", "stalled", None)
        assert line.fullmatch(row["standing"])
        # and the commands
        said = ringhaul.run("status", "--limit", 1000)
        (shown,) = [one.split() for one in said.out.splitlines() if "ld-run" in one]
        assert shown[3] == "STALLED" and line.search(said.err)
        top = ringhaul.run("top", "--once")
        assert line.search(top.out) and "STALLED" in top.out
        metrics = site.get("/metrics").text
        assert 'ringhaul_jobs_without_work{condition="stalled"} 1.0' in metrics
    finally:
        workers.heartbeat(worker, 3_600_000)


@pytest.mark.parametrize("name", ["ld-never", "a" * 65, "..%2F..%2Fetc", "%00", "ld-%1b[31m"])
def test_a_job_that_does_not_exist_is_not_found(site: FlowerSite, name: str) -> None:
    for path in (f"/jobs/{name}", f"/api/jobs/{name}"):
        answer = site.get(path)
        assert answer.status == 404, path
        assert "\x1b" not in answer.text
    text = site.get(f"/jobs/{name}").text
    assert "All jobs" in text and "Traceback" not in text
    error = document(site.get(f"/api/jobs/{name}"))
    assert error["status"] == 404 and "job" in str(error["error"])


def test_a_damaged_job_is_shown_as_damaged(site: FlowerSite) -> None:
    assert "DAMAGED" in site.get("/jobs?q=ld-damaged").text
    page = site.get("/jobs/ld-damaged")
    assert (page.status, "0 units are marked done and 4 should be" in page.text) == (200, True)
    api = document(site.get("/api/jobs/ld-damaged"))
    assert (api["state"], "rows" in api) == ("DAMAGED", False)


def stream(site: FlowerSite, path: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the events of a stream, until the caller stops."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    connection.request("GET", path, headers={"Accept": "text/event-stream"})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream; charset=UTF-8"
    try:
        kind = ""
        while line := answer.readline().decode():
            if line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:])
    finally:
        connection.close()


@contextmanager
def events(site: FlowerSite, path: str) -> Iterator[Callable[[str], dict[str, str]]]:
    """Open a stream, and get its next event of a kind."""
    found = stream(site, path)
    try:
        yield lambda kind: next(news for name, news in found if name == kind)
    finally:
        found.close()  # type: ignore[attr-defined]


def test_a_stream_sends_what_changes_until_the_job_is_forgotten(
    site: FlowerSite, ledger: Ledger
) -> None:
    make_load(ledger, "ld-moves", 4, done=1)
    with events(site, "/jobs/ld-moves/events") as next_event:
        view = next_event("view")
        assert Attributes(view["html"]).data["data-share"] == ["0.2500"]
        assert view["title"] == "ld-moves RUNNING"
        ledger.cancel("ld-moves")
        view = next_event("view")
        while "CANCELLED" not in view["title"]:
            view = next_event("view")
    make_load(ledger, "ld-gone", 4, done=1)
    with events(site, "/jobs/ld-gone/events") as next_event:
        next_event("view")
        for key in ledger.caller.command("KEYS", "ringhaul:{ld-gone}:*"):
            ledger.caller.command("DEL", key)
        assert "there is no job ld-gone" in next_event("gone")["text"]


def test_a_stream_of_the_list_follows_its_filter(site: FlowerSite, ledger: Ledger) -> None:
    with events(site, "/events/jobs?q=ld-fresh") as next_event:
        assert "No job matches" in next_event("view")["html"]
        make_load(ledger, "ld-fresh", 4, done=1)
        assert 'data-key="ld-fresh"' in next_event("view")["html"]
    ledger.cancel("ld-fresh")


def test_a_large_job_shows_at_once_and_its_stream_brings_the_rest(
    site: FlowerSite, ledger: Ledger
) -> None:
    make_load(ledger, "ld-large", 5_100, rejects=3)
    page = site.get("/jobs/ld-large").text
    assert "are being read" in page and Attributes(page).data["data-state"] == ["PARTIAL"]
    with events(site, "/jobs/ld-large/events") as next_event:
        view = next_event("view")["html"]
    assert "are being read" not in view and Attributes(view).data["data-rejects"] == ["3"]
    assert "are being read" not in site.get("/jobs/ld-large").text


def test_data_of_rows_is_text_or_not_there_at_all(site: FlowerSite, discreet: FlowerSite) -> None:
    shown = site.get("/jobs/ld-rejects").text
    assert f"{SENTINEL}&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31mred\\u202e" in shown
    assert "<script>alert" not in shown and "\x1b" not in shown and "\u202e" not in shown
    with events(site, "/jobs/ld-rejects/events") as next_event:
        html = next_event("view")["html"]
    assert SENTINEL in html and "<script>" not in html and "\x1b" not in html
    # Where data is switched off
    with events(discreet, "/flower/jobs/ld-rejects/events") as next_event:
        texts = [next_event("view")["html"]]
    paths = ("/jobs", "/jobs/ld-rejects", "/api/jobs", "/api/jobs/ld-rejects", "/tasks", "/hosts")
    texts += [discreet.get(f"/flower{path}").text for path in paths]
    assert "is not a decimal number" in texts[0] and "is not a decimal number" in texts[2]
    for text in texts:
        assert SENTINEL not in text and "EMEA" not in text


def test_no_page_has_a_secret(site: FlowerSite, ringhaul: Ringhaul) -> None:
    password = urlsplit(ringhaul.env["RINGHAUL_BROKER_URL"]).password
    assert password
    for path in ("/jobs", "/jobs/ld-run", "/jobs/ld-x", "/api/jobs/ld-run", "/", "/broker"):
        assert password not in site.get(path).text, path
    assert password not in (ringhaul.cwd / "flower.log").read_text()


def test_links_have_the_prefix(discreet: FlowerSite) -> None:
    page = discreet.get("/flower/jobs/ld-run").text
    assert discreet.get("/jobs").status == 404
    paths = re.findall(r'(?:href|src|data-live)="(/[^"]*)"', page)
    assert "/flower/jobs/ld-run/events" in paths
    for path in paths:
        assert path.startswith("/flower/"), path
        if "events" not in path and "static" in path:
            assert discreet.get(path).status == 200, path


def test_a_silent_redis_does_not_stop_flower_and_pages_recover(tmp_path: Path) -> None:
    with running_valkey() as valkey:
        env = {"RINGHAUL_BROKER_URL": valkey.url, "RINGHAUL_STATE_DIR": str(tmp_path / "state")}
        ringhaul = Ringhaul(env, tmp_path)
        with redis.Redis.from_url(valkey.url) as client:
            make_load(Ledger(client), "ld-away", 4, done=1)
        pid = valkey.pid
        assert pid is not None
        with (
            flower_site(ringhaul, log=tmp_path / "flower.log") as site,
            events(site, "/jobs/ld-away/events") as next_event,
        ):
            assert "ld-away" in next_event("view")["html"]
            # It does not answer: more pages wait for it than there are threads
            os.kill(pid, signal.SIGSTOP)
            pages = [threading.Thread(target=site.get, args=("/jobs",)) for _ in range(8)]
            try:
                for page in pages:
                    page.start()
                time.sleep(0.5)
                began_s = time.monotonic()
                assert site.get("/healthcheck").status == 200
                # Soon, or on a busy machine at least before the pages that wait
                waiting = [page.is_alive() for page in pages]
                assert time.monotonic() - began_s < 2 or all(waiting)
            finally:
                os.kill(pid, signal.SIGCONT)
            for page in pages:
                page.join()
            # It disappears, and returns
            os.kill(pid, signal.SIGKILL)
            away = next_event("away")["text"]
            assert away.startswith("Redis at 127.0.0.1:") and urlsplit(valkey.url).password
            assert str(urlsplit(valkey.url).password) not in away
            answer = site.get("/jobs/ld-away")
            assert (answer.status, "Redis at 127.0.0.1:" in answer.text) == (503, True)
            assert 'data-live="/jobs/ld-away/events"' in answer.text
            assert document(site.get("/api/jobs"))["status"] == 503
            valkey.release()
            valkey.acquire()
            assert str(urlsplit(valkey.url).port) in away, "another process took its port"
            assert "ld-away" in next_event("view")["html"]
            assert site.get("/jobs/ld-away").status == 200

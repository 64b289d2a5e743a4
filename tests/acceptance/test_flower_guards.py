"""Who may see and do what in Flower: a real `ringhaul flower` with a real Redis.

Each test asks for what a guard refuses, so it fails when the guard is removed.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from flower.urls import handlers

from bench.made_jobs import make_load
from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger.history import History
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from tests.acceptance.command import Ringhaul
from tests.acceptance.flower_site import FlowerSite, flower_site
from tests.services import running_valkey

PASSWORD = "open sesame, please"
#: In a JSON document of Flower's API and in ours.
LOG_IN = "Basic " + base64.b64encode(f"ops:{PASSWORD}".encode()).decode()
#: Paths of Flower that anybody may read: they show no job, task or file name.
PUBLIC = {"/metrics", "/healthcheck", "/static/(.*)", "/login/?", "/logout", ".*"}
#: One of each kind: Flower's pages, its API, files, probes, ours, and what does not exist.
PATHS = (
    *("/", "/workers", "/tasks", "/broker", "/api/tasks", "/static/favicon.ico", "/healthcheck"),
    *("/metrics", "/jobs", "/jobs/ld-1", "/schedules", "/hosts", "/api/jobs", "/api/schedules"),
    *("/events/jobs", "/ringhaul/static/jobs.js", "/nowhere"),
)
SCHEDULES = """
[schedule.nightly]
cron = "30 1 * * *"
steps = [["count", "-t", "shop.orders"]]
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedValkey]:
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture(scope="module")
def ringhaul(broker: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory) -> Ringhaul:
    folder = tmp_path_factory.mktemp("flower")
    (folder / "schedule.toml").write_text(SCHEDULES)
    env = {
        "RINGHAUL_BROKER_URL": broker.url,
        "RINGHAUL_STATE_DIR": str(folder / "state"),
        "RINGHAUL_CLUSTER_PORT": "1",
        "RINGHAUL_SCHEDULE_FILE": str(folder / "schedule.toml"),
    }
    return Ringhaul(env, folder)


@pytest.fixture(scope="module")
def closed(ringhaul: Ringhaul) -> Iterator[FlowerSite]:
    """Flower as it is by default: on loopback, without a log-in, read-only."""
    with flower_site(ringhaul, log=ringhaul.cwd / "closed.log") as site:
        yield site


@pytest.fixture(scope="module")
def opened(ringhaul: Ringhaul) -> Iterator[FlowerSite]:
    """Flower with a log-in, in which everything can be changed, and which keeps its tasks."""
    users = ringhaul.cwd / "users"
    users.write_text(f"ops:{PASSWORD}\n")
    variables = {
        "RINGHAUL_WEB_BASIC_AUTH_FILE": str(users),
        "RINGHAUL_WEB_HOSTS": "etl.example.com",
    }
    arguments = ("--read_only=False", "--persistent=True")
    log = ringhaul.cwd / "opened.log"
    with flower_site(ringhaul, *arguments, log=log, **variables) as site:
        yield site


@pytest.fixture
def ledger(broker: EmbeddedValkey) -> Iterator[Ledger]:
    with redis.Redis.from_url(broker.url) as client:
        ledger = Ledger(client)
        Workers(ledger.caller).heartbeat(Worker("host1", 1, 2, ("ringhaul.load",)), 60_000)
        yield ledger


@pytest.fixture
def job(ledger: Ledger, request: pytest.FixtureRequest) -> str:
    """A running job of ten units."""
    name = f"ld-{abs(hash(request.node.name)) % 10**9}"
    make_load(ledger, name, 10, done=0)
    return name


# Names and other sites


@pytest.mark.parametrize("path", PATHS)
def test_another_name_of_this_site_is_refused(closed: FlowerSite, path: str) -> None:
    """DNS rebinding: a web site lets its own name lead to our address."""
    for host in ("rebound.example", f"rebound.example:{closed.port}", "localhost.example"):
        answer = closed.get(path, Host=host)
        assert answer.status == 421, (path, host, answer)
        assert "web.hosts" in answer.text


def test_our_names_are_served(closed: FlowerSite, opened: FlowerSite) -> None:
    for host in ("localhost", f"localhost:{closed.port}", "127.0.0.1", "10.9.8.7:80", "[::1]"):
        assert closed.get("/jobs", Host=host).status == 200, host
    assert closed.get("/jobs", Host="etl.example.com").status == 421
    assert opened.get("/jobs", Host="etl.example.com", Authorization=LOG_IN).status == 200


def test_every_answer_forbids_frames_scripts_and_caches(
    closed: FlowerSite, opened: FlowerSite
) -> None:
    answers = {path: closed.get(path) for path in PATHS if not path.startswith("/events/")}
    answers |= {
        "a refusal": closed.get("/jobs", Host="rebound.example"),
        "read-only": closed.ask("POST", "/jobs/ld-1/pause", {}),
        "no log-in": opened.get("/jobs"),
    }
    for name, answer in answers.items():
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self' 'sha256-"), name
        assert "unsafe-inline" not in policy.partition("style-src")[0], name
        assert "frame-ancestors 'none'" in policy, name
        assert answer.headers["X-Frame-Options"] == "DENY", name
        assert answer.headers["X-Content-Type-Options"] == "nosniff", name
        assert "Access-Control-Allow-Origin" not in answer.headers, name
        if "/static/" not in name:
            assert answer.headers["Cache-Control"] == "no-store", name
    assert {answer.status for answer in answers.values()} >= {200, 401, 403, 404, 421}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_another_site_cannot_change_anything(
    opened: FlowerSite, ledger: Ledger, job: str, headers: dict[str, str]
) -> None:
    """The browser of somebody who is logged in sends what a page of another site says."""
    headers = headers | {"Authorization": LOG_IN}
    for path in (f"/jobs/{job}/cancel", "/api/worker/shutdown/w@h", "/api/task/send-task/t"):
        answer = opened.ask("POST", path, {"seen": "RUNNING"}, **headers)
        assert answer.status == 403 and "another site" in answer.text, path
    # Even with the token: anyone who can read one of our pages knows it.
    answer = opened.send_form(f"/jobs/{job}/cancel", {"seen": "RUNNING"}, **headers)
    assert answer.status == 403
    assert ledger.status(job).state_name == "RUNNING"


def test_a_change_without_a_token_is_refused(opened: FlowerSite, ledger: Ledger, job: str) -> None:
    path = f"/jobs/{job}/pause"
    for headers in ({}, {"Cookie": "_xsrf=abc"}, {"Origin": opened.url}):
        form = {"seen": "RUNNING", "_xsrf": "2|00000000|00|1"}
        answer = opened.ask("POST", path, form, Authorization=LOG_IN, **headers)
        assert answer.status == 403, headers
    assert opened.ask("POST", "/schedules/nightly/pause", {}, Authorization=LOG_IN).status == 403
    assert ledger.status(job).state_name == "RUNNING"


# Log-in


def test_nothing_is_shown_without_a_log_in(opened: FlowerSite, job: str) -> None:
    ours = ("/jobs", f"/jobs/{job}", f"/jobs/{job}/pause", "/schedules", "/schedules/nightly")
    ours += ("/schedules/nightly/run", "/hosts", "/api/jobs", f"/api/jobs/{job}", "/api/schedules")
    ours += ("/events/jobs", f"/jobs/{job}/events", "/events/hosts", "/events/schedules")
    ours += ("/schedules/nightly/events",)
    patterns = [(one.regex.pattern if hasattr(one, "regex") else one[0]) for one in handlers]
    flowers = [
        re.sub(r"\(\.[+*]\)", "x", pattern.rstrip("$"))
        for pattern in patterns
        if pattern.rstrip("$") not in PUBLIC
    ]
    assert len(flowers) > 20
    for path in (*ours, *flowers):
        method = "POST" if path.startswith("/api/worker/") else "GET"
        answer = opened.ask(method, path)
        # A handler that knows no GET answers so before it asks who it is, and shows nothing.
        assert answer.status in (401, 405), (path, answer)
        assert job not in answer.text and "nightly" not in answer.text
        wrong = "Basic " + base64.b64encode(b"ops:wrong").decode()
        assert opened.ask(method, path, Authorization=wrong).status in (401, 405), path
    assert opened.get("/jobs", Authorization=LOG_IN).status == 200


def test_the_password_is_in_no_command_line_log_or_page(
    opened: FlowerSite, ringhaul: Ringhaul
) -> None:
    me = psutil.Process(opened.process.process.pid)
    lines = [process.cmdline() for process in (me, *me.children(recursive=True))]
    assert any("flower" in line for line in lines)
    assert PASSWORD not in str(lines)
    assert PASSWORD not in str([process.environ() for process in (me, *me.children())])
    pages = [opened.get(path, Authorization=LOG_IN).text for path in ("/", "/broker", "/nowhere")]
    assert PASSWORD not in "".join(pages) + opened.process.read()


@pytest.mark.parametrize(
    ("arguments", "env", "why"),
    [
        (["--address=0.0.0.0"], {}, "without a log-in"),
        ([], {"FLOWER_ADDRESS": ""}, "without a log-in"),
        (["--unix_socket=/tmp/rh.sock"], {}, "without a log-in"),
        # Even where only Flower's own settings file says so.
        (["--conf=conf.py"], {}, "without a log-in"),
        ([f"--basic_auth=ops:{PASSWORD}"], {}, "FLOWER_BASIC_AUTH"),
        ([], {"FLOWER_UNAUTHENTICATED_API": "true"}, "every web site"),
        (["--persistent=True", "--db=shared/db"], {}, "other users can change it"),
    ],
)
def test_flower_refuses_to_start(
    ringhaul: Ringhaul, arguments: list[str], env: dict[str, str], why: str
) -> None:
    (ringhaul.cwd / "conf.py").write_text("address = '0.0.0.0'\n")
    shared = ringhaul.cwd / "shared"
    shared.mkdir(exist_ok=True)
    shared.chmod(0o777)
    finished = ringhaul.run("flower", "--port=0", *arguments, **env)
    assert finished.code == 2, finished
    assert why in finished.err and PASSWORD not in finished.err


def test_beyond_loopback_it_listens_with_a_log_in(ringhaul: Ringhaul) -> None:
    log = ringhaul.cwd / "wide.log"
    with flower_site(
        ringhaul, "--address=0.0.0.0", log=log, FLOWER_BASIC_AUTH="ops:sesame-1"
    ) as site:
        assert site.process.addresses() == {("0.0.0.0", site.port)}
        assert site.get("/jobs").status == 401


def test_what_flower_keeps_is_private(opened: FlowerSite, ringhaul: Ringhaul) -> None:
    folder = Path(ringhaul.env["RINGHAUL_STATE_DIR"]) / "web"
    for one in (folder, folder.parent):
        assert stat.S_IMODE(one.stat().st_mode) == 0o700
    assert not (ringhaul.cwd / "flower").exists()
    assert os.listdir(folder) == [] or all(name.startswith("tasks") for name in os.listdir(folder))


# Read-only


def test_a_read_only_page_changes_nothing(closed: FlowerSite, ledger: Ledger, job: str) -> None:
    ours = [f"/jobs/{job}/{name}" for name in ("pause", "resume", "cancel", "throttle", "priority")]
    ours += [f"/schedules/nightly/{name}" for name in ("run", "pause", "resume")]
    cookie = re.search(r"_xsrf=([^;]+)", closed.get("/jobs").headers["Set-Cookie"])
    assert cookie
    for path in ours:
        # The cookie's value is a token, too.
        form = {"seen": "RUNNING", "_xsrf": cookie[1], "rows_per_second": "1", "priority": "low"}
        refused = closed.ask("POST", path, form, Cookie=cookie[0])
        assert refused.status == 403 and "read-only" in refused.text, path
        # Nor does it show a form.
        page = closed.get(path)
        assert page.status == 403 and "<form" not in page.text and "read-only" in page.text, path
    status = ledger.status(job)
    assert status.state_name == "RUNNING" and not str(status.pace)
    page = closed.get(f"/jobs/{job}")
    for name in ("pause", "cancel", "throttle"):
        assert f"/jobs/{job}/{name}" not in page.text


def test_flowers_own_actions_are_refused_when_read_only(closed: FlowerSite) -> None:
    patterns = [one[0] for one in handlers if isinstance(one, tuple) and "/api/" in one[0]]
    assert len(patterns) > 15
    for pattern in patterns:
        path = re.sub(r"\(\.[+*]\)", "x", pattern)
        answer = closed.ask("POST", path, {})
        assert answer.status == 403 and "read-only" in answer.text, path
    # Its table of tasks only reads.
    query = "draw=1&start=0&length=10&order%5B0%5D%5Bcolumn%5D=0"
    assert closed.ask("POST", f"/tasks/datatable?{query}").status == 200


def test_flowers_own_actions_stay_off_with_changes_of_jobs(ringhaul: Ringhaul, job: str) -> None:
    log = ringhaul.cwd / "jobs.log"
    variables = {"RINGHAUL_WEB_READ_ONLY": "false", "FLOWER_BASIC_AUTH": "ops:sesame-1"}
    log_in = "Basic " + base64.b64encode(b"ops:sesame-1").decode()
    with flower_site(ringhaul, log=log, **variables) as site:
        answer = site.ask("POST", "/api/worker/shutdown/w@h", {}, Authorization=log_in)
        assert answer.status == 403 and "--read_only=False" in answer.text
        assert (
            site.send_form(f"/jobs/{job}/pause", {"seen": "RUNNING"}, Authorization=log_in)[0]
            == 303
        )


# Actions


def test_each_action_acts_and_is_an_event_of_the_page(
    opened: FlowerSite, ledger: Ledger, job: str
) -> None:
    def send(name: str, **form: str) -> None:
        path = f"/jobs/{job}/{name}"
        answer = opened.send_form(path, form, Authorization=LOG_IN, Origin=opened.url)
        assert answer.status == 303, answer
        assert answer.headers["Location"] == f"/jobs/{job}"

    send("throttle", seen="RUNNING", rows_per_second="500", between="08:00-18:00")
    assert str(ledger.status(job).pace) == "500 rows/s, 08:00-18:00 UTC"
    send("throttle", seen="RUNNING", off="1")
    assert not str(ledger.status(job).pace)
    send("priority", seen="RUNNING", priority="high")
    assert ledger.status(job).priority == "high"
    send("pause", seen="RUNNING")
    assert ledger.status(job).state_name == "PAUSED"
    send("resume", seen="PAUSED")
    assert ledger.status(job).state_name == "RUNNING"
    send("cancel", seen="RUNNING")
    assert ledger.status(job).state_name == "CANCELLED"
    by_page = [event.kind for event in History(ledger.caller).events(job) if event.by == "page"]
    assert by_page == ["throttled", "throttled", "priority", "paused", "resumed", "ended"]


def test_the_second_of_two_people_is_told_what_happened(
    opened: FlowerSite, ledger: Ledger, job: str
) -> None:
    # 1. Two people look at a paused job. One cancels it, the other wants to resume it.
    ledger.pause(job)
    cancelled = opened.send_form(f"/jobs/{job}/cancel", {"seen": "PAUSED"}, Authorization=LOG_IN)
    assert cancelled.status == 303
    ledger.create("other", {"kind": "load"}, "{}")
    # 2. The second has the form of a page that is old by now.
    page = opened.get("/jobs/other/pause", Authorization=LOG_IN)
    token = re.search(r'name="_xsrf" value="([^"]+)"', page.text)
    cookie = re.search(r"_xsrf=[^;]+", page.headers["Set-Cookie"])
    assert token and cookie
    form = {"seen": "PAUSED", "_xsrf": token[1]}
    late = opened.ask("POST", f"/jobs/{job}/resume", form, Cookie=cookie[0], Authorization=LOG_IN)
    assert late.status == 409
    assert f"{job} is CANCELLED, and was PAUSED when this page was made" in late.text
    assert f"ringhaul resume {job}" in late.text
    assert ledger.status(job).state_name == "CANCELLED"
    ledger.cancel("other")


def test_a_page_says_what_was_done_once_and_by_no_link(
    opened: FlowerSite, ledger: Ledger, job: str
) -> None:
    make_load(ledger, "ld-beside", 1, done=0)
    path = f"/jobs/{job}"
    said = "The priority is changed."
    answer = opened.send_form(
        f"{path}/priority", {"seen": "RUNNING", "priority": "low"}, Authorization=LOG_IN
    )
    cookie = re.search(r"ringhaul_did=[^;]+", answer.headers["Set-Cookie"])
    assert cookie and "HttpOnly" in answer.headers["Set-Cookie"]
    after = opened.get(path, Authorization=LOG_IN, Cookie=cookie[0])
    assert said in after.text and 'ringhaul_did="";' in after.headers["Set-Cookie"]
    # Neither on another page, nor because a link or another's cookie says so.
    beside = opened.get("/jobs/ld-beside", Authorization=LOG_IN, Cookie=cookie[0])
    assert beside.status == 200 and said not in beside.text
    for forged in ("", f"ringhaul_did={job} priority", f"{cookie[0]}x"):
        page = opened.get(f"{path}?did=priority", Authorization=LOG_IN, Cookie=forged)
        assert page.status == 200 and said not in page.text


@pytest.mark.parametrize(
    ("name", "form", "why"),
    [
        ("throttle", {"rows_per_second": "-1"}, "rows per second: give a whole number above 0"),
        ("throttle", {"mb_per_second": "nan"}, "megabytes per second: give a number above 0"),
        ("throttle", {"in_flight": "1", "between": "25:00-26:00"}, "hours"),
        ("throttle", {"in_flight": "1", "between": "01:00-02:00", "timezone": "X/Y"}, "X/Y"),
        ("throttle", {}, "give at least one limit"),
        ("priority", {"priority": "<b>"}, "no priority &quot;&lt;b&gt;&quot;"),
    ],
)
def test_a_bad_value_is_refused_with_the_form(
    opened: FlowerSite, ledger: Ledger, job: str, name: str, form: dict[str, str], why: str
) -> None:
    answer = opened.send_form(
        f"/jobs/{job}/{name}", {"seen": "RUNNING", **form}, Authorization=LOG_IN
    )
    assert answer.status == 400 and why in answer.text and "<form" in answer.text, answer.text
    status = ledger.status(job)
    assert not str(status.pace) and status.priority == "normal"


def test_a_job_without_workers_is_not_resumed(opened: FlowerSite, ledger: Ledger, job: str) -> None:
    Workers(ledger.caller).leave(Worker("host1", 1, 2, ("ringhaul.load",)))
    ledger.pause(job)
    answer = opened.send_form(f"/jobs/{job}/resume", {"seen": "PAUSED"}, Authorization=LOG_IN)
    assert answer.status == 409 and f"ringhaul resume {job}" in answer.text
    assert ledger.status(job).state_name == "PAUSED"


def test_a_job_that_does_not_exist(opened: FlowerSite) -> None:
    answer = opened.get("/jobs/ld-none/pause", Authorization=LOG_IN)
    assert answer.status == 404 and "there is no job ld-none" in answer.text


def test_schedules_are_paused_resumed_and_shown(opened: FlowerSite, ringhaul: Ringhaul) -> None:
    path = "/schedules/nightly"
    assert opened.send_form(f"{path}/pause", {}, Authorization=LOG_IN).status == 303
    again = opened.get(f"{path}/pause", Authorization=LOG_IN)
    assert again.status == 409 and "is paused already" in again.text
    document = opened.get("/api/schedules", Authorization=LOG_IN)
    listed = ringhaul.run("schedule", "list", "--json").out
    shown = json.loads(document.text)
    assert shown.pop("message_type") == "schedules"
    assert shown == json.loads(listed)
    assert shown["schedules"][0]["state"] == "paused"
    assert opened.send_form(f"{path}/resume", {}, Authorization=LOG_IN).status == 303
    # Nothing would start a run.
    refused = opened.send_form(f"{path}/run", {}, Authorization=LOG_IN)
    assert refused.status == 400 and "no beat is up" in refused.text
    assert opened.get("/schedules/none", Authorization=LOG_IN).status == 404

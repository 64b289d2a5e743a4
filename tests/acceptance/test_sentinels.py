"""Passwords and values of rows are looked for wherever something can be read: they are found only
where data of rows is meant to be.

`SURFACES` is the list of such places. One that is new belongs there.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import psutil
import pytest
import redis
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.ledger import keys
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.flower_site import FlowerSite, flower_site
from tests.acceptance.oracle import create_table
from tests.acceptance.running import Running, answers, free_port, get, running, wait_for_worker
from tests.services import running_valkey

#: Passwords: of Cassandra, of Flower, and of Redis (the last is the test server's own).
CLUSTER_PASSWORD = "kestrel-aubergine-42"
FLOWER_PASSWORD = "pangolin-turquoise-77"
#: Values of rows: one that is loaded, and one that is rejected.
LOADED = "zebra-crossing-loaded"
REJECTED = "walrus-moustache-rejected"
ROWS = 400
SCHEDULES = """
[schedule.nightly]
cron = "30 1 * * *"
steps = [["count", "-t", "shop.orders"]]
"""


@dataclass(frozen=True)
class Scene:
    """A load that has ended, with everything that watched it."""

    job: str
    ringhaul: Ringhaul
    worker: Running
    site: FlowerSite
    broker_url: str
    command_output: str
    command_lines: str  #: Of all processes, while the load ran.
    traffic: str  #: Every command that reached Redis, and the bodies of messages.
    spans: list[str]  #: What was sent to the collector of traces.

    @property
    def secrets(self) -> list[str]:
        password = urlsplit(self.broker_url).password
        assert password
        return [CLUSTER_PASSWORD, FLOWER_PASSWORD, password, LOG_IN.split()[1]]

    def page(self, path: str, method: str = "GET") -> str:
        answer = self.site.ask(method, path, Authorization=LOG_IN)
        assert answer.status in (200, 404), (path, answer)
        return answer.text

    def command(self, *arguments: object) -> str:
        finished = self.ringhaul.run(*arguments)
        return finished.out + finished.err


LOG_IN = "Basic " + base64.b64encode(f"ops:{FLOWER_PASSWORD}".encode()).decode()


@pytest.fixture(scope="module")
def scene(
    endpoints: Endpoints,
    cassandra_session: Session,
    module_keyspace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("sentinels")
    (folder / "cluster_password").write_text(CLUSTER_PASSWORD)
    (folder / "users").write_text(f"ops:{FLOWER_PASSWORD}\n")
    (folder / "schedule.toml").write_text(SCHEDULES)
    table = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, name text")
    # A rejected record: its id is not a number.
    (folder / "in.csv").write_text(
        "id,name\n"
        + "".join(f"{number},{LOADED}\n" for number in range(ROWS))
        + f"{REJECTED},{REJECTED}\n" * 3
    )
    with running_valkey() as valkey, trace_collector() as (collector, spans):
        env = fleet_settings(endpoints, folder / "state", valkey.url) | {
            "RINGHAUL_CLUSTER_USER": "loader",
            "RINGHAUL_CLUSTER_PASSWORD_FILE": str(folder / "cluster_password"),
            "RINGHAUL_WEB_BASIC_AUTH_FILE": str(folder / "users"),
            "RINGHAUL_WEB_SHOW_DATA": "false",
            "RINGHAUL_SCHEDULE_FILE": str(folder / "schedule.toml"),
            "RINGHAUL_LOGGING_LEVEL": "DEBUG",
            "RINGHAUL_METRICS_JOBS": "true",
            "RINGHAUL_TRACING_ENDPOINT": collector,
        }
        ringhaul = Ringhaul(env, folder)
        worker_argv = ringhaul.argv("worker", "-c", "1")
        with (
            running(worker_argv, ringhaul.env, folder, folder / "worker.log") as worker,
            flower_site(ringhaul, log=folder / "flower.log") as site,
        ):
            wait_for_worker(valkey.url, worker.log)
            with (
                watching(redis_traffic, valkey.url) as traffic,
                watching(command_lines) as lines,
            ):
                options = ("-t", table, "--unit-size", "2K", "--report", folder / "report.html")
                loaded = ringhaul.run("load", "in.csv", *options, "--json")
            assert loaded.code == 1, loaded
            job = loaded.summary["job"]
            scene = Scene(
                job=job,
                ringhaul=ringhaul,
                worker=worker,
                site=site,
                broker_url=valkey.url,
                command_output=loaded.out + loaded.err,
                command_lines="\n".join(lines),
                traffic="\n".join(traffic),
                spans=spans,
            )
            wait_until(lambda: len(task_ids(scene)) > 2, "Flower to hear of the units")
            wait_until(lambda: len("".join(spans)) > 1000, "spans of the job and its units")
            yield scene


@contextmanager
def trace_collector() -> Iterator[tuple[str, list[str]]]:
    """A collector of OpenTelemetry; yields its URL and what it receives."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.append(f"{self.path} {self.headers} {body.decode(errors='replace')}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()


def metrics(scene: Scene) -> dict[str, str]:
    """What the server of metrics says, one gauge for each job among it."""
    port = free_port()
    argv = scene.ringhaul.argv("metrics", "--port", port)
    log = scene.ringhaul.cwd / "metrics.log"
    with running(argv, scene.ringhaul.env, scene.ringhaul.cwd, log) as server:
        wait_until(lambda: server.read() and answers(port), f"the server; see {server.log}")
        status, text = get(f"http://127.0.0.1:{port}/metrics")
        assert status == 200 and "ringhaul_" in text
        return {"metrics": text, "log": server.read()}


class watching:
    """Collect what a function yields, in a thread, during a block."""

    def __init__(self, watch: Callable[..., Iterator[str]], *arguments: object) -> None:
        self._found: list[str] = []
        self._over = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(watch, arguments), daemon=True)

    def _run(self, watch: Callable[..., Iterator[str]], arguments: tuple[object, ...]) -> None:
        for text in watch(*arguments):
            self._began.set()
            if text:
                self._found.append(text)
            if self._over.is_set():
                return

    def __enter__(self) -> list[str]:
        self._thread.start()
        assert self._began.wait(20)
        return self._found

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(20)
        assert not self._thread.is_alive() and self._found


def redis_traffic(url: str) -> Iterator[str]:
    """Yield each command that the server gets, and what the bodies of messages hold."""
    with redis.Redis.from_url(url) as client, client.monitor() as monitor:
        while True:
            if not monitor.connection.can_read(0.2):
                yield ""
                continue
            command = str(monitor.next_command()["command"])
            yield command
            for body in re.findall(r'"body": ?\\?"([A-Za-z0-9+/=]+)', command):
                yield base64.b64decode(body).decode(errors="replace")


def command_lines() -> Iterator[str]:
    """Yield the command lines and variables of all processes of this user, again and again."""
    pause = threading.Event()
    while True:
        for process in psutil.process_iter():
            try:
                yield " ".join(process.cmdline())
            except psutil.Error:
                continue
        pause.wait(0.02)


def task_ids(scene: Scene) -> list[str]:
    return list(json.loads(scene.page("/api/tasks")))


def all_keys(scene: Scene) -> Iterator[tuple[str, str]]:
    """Each key of Redis with its whole value."""
    with redis.Redis.from_url(scene.broker_url) as client:
        reads = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        }
        for key in client.scan_iter():
            yield key.decode(), repr(reads[client.type(key)](key))


def stream_of(scene: Scene, path: str) -> str:
    """The first event of a stream of server-sent events."""
    connection = http.client.HTTPConnection("127.0.0.1", scene.site.port, timeout=20)
    connection.request("GET", path, headers={"Authorization": LOG_IN})
    answer = connection.getresponse()
    text = ""
    while "event: view" not in text or not text.endswith("\n\n"):
        text += answer.fp.readline().decode()
    connection.close()
    return text


def pages(scene: Scene) -> dict[str, str]:
    """Every page, stream and document of Flower: its own and ours."""
    query = "draw=1&start=0&length=50&order%5B0%5D%5Bcolumn%5D=0"
    task = task_ids(scene)[0]
    (worker,) = json.loads(scene.page("/api/workers?refresh=true"))
    found = {path: scene.page(path) for path in ("/", "/tasks", "/broker", "/metrics", "/nowhere")}
    found |= {
        path: scene.page(path)
        for path in (
            *(f"/tasks/datatable?{query}", f"/task/{task}", f"/worker/{worker}", "/api/tasks"),
            *("/api/workers", f"/api/task/info/{task}", "/api/queues/length", "/api/task/types"),
            *("/jobs", f"/jobs/{scene.job}", "/schedules", "/schedules/nightly", "/hosts"),
            *("/api/jobs", f"/api/jobs/{scene.job}", "/api/schedules", "/jobs/ld-none"),
        )
    }
    return found | {
        path: stream_of(scene, path) for path in ("/events/jobs", f"/jobs/{scene.job}/events")
    }


def commands(scene: Scene) -> dict[str, str]:
    """What commands print about the job, without options that print data."""
    job = scene.job
    return {
        " ".join(map(str, arguments)): scene.command(*arguments)
        for arguments in (
            *(("status",), ("status", "--json"), ("status", job), ("status", job, "--json")),
            *(("status", job, "--events"), ("config", "show", "--json")),
            *(("throttle", job), ("schedule", "list", "--json"), ("report", job, "-o", "-")),
        )
    }


def files(scene: Scene) -> dict[str, str]:
    """Logs, reports, and every file in the state folder."""
    folder = scene.ringhaul.cwd
    named = [folder / name for name in ("worker.log", "flower.log", "report.html")]
    state = [path for path in (folder / "state").rglob("*") if path.is_file()]
    return {str(path): path.read_text(errors="replace") for path in (*named, *state)}


#: Where to look for passwords and for data of rows.
SURFACES: dict[str, Callable[[Scene], dict[str, str]]] = {
    "processes": lambda scene: {"command lines": scene.command_lines},
    "messages and commands to Redis": lambda scene: {"traffic": scene.traffic},
    "keys of Redis": lambda scene: dict(all_keys(scene)),
    "pages": pages,
    "commands": lambda scene: {**commands(scene), "load --json": scene.command_output},
    "files": files,
    "metrics": metrics,
    "traces": lambda scene: {"spans": "\n".join(scene.spans)},
}


@pytest.fixture(scope="module", params=SURFACES)
def surface(request: pytest.FixtureRequest, scene: Scene) -> tuple[str, dict[str, str]]:
    """A surface, and what it shows."""
    name: str = request.param
    return name, SURFACES[name](scene)


def test_no_password_is_found_anywhere(scene: Scene, surface: tuple[str, dict[str, str]]) -> None:
    texts = surface[1]
    assert texts and any(scene.job in text or "ringhaul" in text for text in texts.values())
    found = {
        (name, secret)
        for name, text in texts.items()
        for secret in scene.secrets
        if secret in text or base64.b64encode(secret.encode()).decode().rstrip("=") in text
    }
    assert found == set()


def test_no_value_of_a_row_is_found_but_in_rejects(
    scene: Scene, surface: tuple[str, dict[str, str]]
) -> None:
    found = {name for name, text in surface[1].items() if LOADED in text or REJECTED in text}
    if surface[0] == "keys of Redis":  # where rejects are kept, unless compressed
        found -= {keys.job_key(scene.job, "extras")}
    assert found == set()


def test_rejects_are_where_they_are_meant_to_be(scene: Scene) -> None:
    """Otherwise the search above would find nothing of anything."""
    assert REJECTED in scene.command("errors", scene.job)
    assert REJECTED in scene.command("report", scene.job, "-o", "-", "--show-data")
    log = scene.ringhaul.cwd / "shown.log"
    with flower_site(scene.ringhaul, log=log, RINGHAUL_WEB_SHOW_DATA="true") as site:
        assert REJECTED in site.get(f"/jobs/{scene.job}", Authorization=LOG_IN).text


def test_tasks_read_well_in_flowers_own_pages(scene: Scene) -> None:
    """A real message names its job and unit, and nothing else, where Flower shows arguments."""
    tasks = json.loads(scene.page("/api/tasks"))
    assert {task["name"] for task in tasks.values()} == {"ringhaul.records.unit"}
    arguments = [task["kwargs"] for task in tasks.values()]
    assert {task["args"] for task in tasks.values()} == {"()"}
    assert len(arguments) > 2
    for text in arguments:
        assert re.fullmatch(rf"\{{'job': '{scene.job}', 'unit': \d+\}}", text), text
    # Flower's search by argument finds the units of a job.
    query = f"search%5Bvalue%5D=kwargs%3Ajob%3D{scene.job}"
    query += "&draw=1&start=0&length=50&order%5B0%5D%5Bcolumn%5D=0"
    found = json.loads(scene.page(f"/tasks/datatable?{query}"))
    assert found["recordsFiltered"] == len(tasks)
    # The message holds only that, and the epoch.
    bodies = re.findall(r"\[\[\], (\{.*?\}), \{", scene.traffic)
    assert bodies and all(set(json.loads(body)) == {"job", "unit", "epoch"} for body in bodies)

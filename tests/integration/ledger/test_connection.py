"""The server goes away, returns, returns with lost data, or refuses the login."""

import contextlib
import threading
import time

import pytest
import redis
from redis._parsers.base import BaseParser

from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.answers import Claimed, Commit
from ringhaul.ledger.connection import Caller, LedgerRefused, ServerUnusable, connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from tests.acceptance.command import wait_until
from tests.integration.ledger.conftest import Server, new_job


def test_a_commit_waits_for_a_restart_and_loses_nothing(own_server: Server) -> None:
    """
    1. Units 0..9 are committed, 10 is claimed; Redis is killed.
    2. A commit of 10 is sent while it is down; Redis restarts from its log a second later.
    3. The commit arrives, and all counts are as without the restart.
    """
    ledger = Ledger(connect(own_server.url))
    job = new_job(ledger, 12)
    ledger.issue(job, 12)
    for unit in range(11):
        ledger.claim(job, unit, 1, f"t{unit}", 60_000)
    for unit in range(10):
        ledger.commit(job, unit, 1, f"t{unit}", "r", {"rows": 100})
    assert ledger.make_durable(10_000)  # while a disk is busy, the server writes its log later
    own_server.kill()
    timer = threading.Timer(1, own_server.start)
    timer.start()
    assert ledger.commit(job, 10, 1, "t10", "r", {"rows": 100}) is Commit.COUNTED
    timer.join()
    status = ledger.status(job)
    assert (status.done, status.pending, status.totals) == (11, 1, {"rows": 1100})
    assert ledger.claim(job, 11, 1, "t11", 60_000) == Claimed(1, "spec-11")


@pytest.mark.parametrize("lost_bytes", [1, 200, 1500, 4000, 9000])
def test_a_log_without_its_end_is_a_consistent_earlier_ledger(
    own_server: Server, lost_bytes: int
) -> None:
    """
    1. Six of twelve units are committed; Redis is killed; the end of its log is cut off, possibly
       in the middle of a command.
    2. Redis starts again. The producer adds what is missing, workers claim and commit.
    3. Each unit is counted once.
    """
    ledger = Ledger(connect(own_server.url))
    specs = [f"spec-{unit}" for unit in range(12)]
    ledger.create("ld-cut", {}, "{}")
    ledger.add_units("ld-cut", 1, 0, specs)
    ledger.seal("ld-cut", 1, 12)
    ledger.issue("ld-cut", 8)
    for unit in range(6):
        ledger.claim("ld-cut", unit, 1, f"t{unit}", 500)
        ledger.commit("ld-cut", unit, 1, f"t{unit}", f"first {unit}", {"rows": 100 + unit})
    own_server.kill()
    log = max(own_server.folder.glob("appendonlydir/*.incr.aof"))
    with log.open("r+b") as file:
        file.truncate(max(0, log.stat().st_size - lost_bytes))
    own_server.start("--aof-load-truncated", "yes")

    ledger.create("ld-cut", {}, "{}")
    assert ledger.status("ld-cut").done < 6
    assert ledger.seal("ld-cut", 1, 12) == 12 or ledger.add_units("ld-cut", 1, 0, specs) == 12
    ledger.seal("ld-cut", 1, 12)
    # The message of every unit arrives as well: messages are hints that may come at any time.
    give_up_at = time.monotonic() + 20
    while ledger.status("ld-cut").state is JobState.RUNNING and time.monotonic() < give_up_at:
        ledger.sweep("ld-cut")
        ledger.issue("ld-cut", 8)
        for unit in range(12):
            claim = ledger.claim("ld-cut", unit, 1, f"again{unit}", 500)
            if isinstance(claim, Claimed):
                rows = {"rows": 100 + unit}
                ledger.commit("ld-cut", unit, 1, f"again{unit}", f"again {unit}", rows)
        time.sleep(0.05)
    status = ledger.status("ld-cut")
    assert (status.state, status.done, status.pending) == (JobState.COMPLETE, 12, 0)
    assert status.totals == {"rows": 12 * 100 + sum(range(12))}
    assert [unit for unit, _ in ledger.results("ld-cut")] == list(range(12))


def test_a_server_that_stays_down_fails_within_the_bound(own_server: Server) -> None:
    ledger = Ledger(connect(own_server.url), patience_ms=600)
    job = new_job(ledger, 1)
    own_server.kill()
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable, match=rf"127\.0\.0\.1:{own_server.port} did not serve"):
        ledger.status(job)
    with pytest.raises(LedgerUnavailable):
        ledger.issue(job, 1)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("maxmemory", 1, "used memory > 'maxmemory'.*raise its maxmemory"),
        ("min-replicas-to-write", 1, "NOREPLICAS Not enough good replicas"),
    ],
)
def test_an_operation_waits_for_a_server_that_refuses_writes(
    own_server: Server, setting: str, value: int, message: str
) -> None:
    ledger = Ledger(connect(own_server.url), patience_ms=5000)
    impatient = Ledger(connect(own_server.url), patience_ms=100)
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    admin = redis.Redis(port=own_server.port)
    admin.config_set(setting, value)
    with pytest.raises(LedgerUnavailable, match=message):
        impatient.claim(job, 0, 1, "a", 60_000)
    timer = threading.Timer(0.5, admin.config_set, (setting, 0))
    timer.start()
    assert ledger.claim(job, 0, 1, "a", 60_000) == Claimed(1, "spec-0")
    timer.join()


def is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError as error:
        return "BUSY" in str(error)
    return False


def test_an_operation_waits_for_a_script_that_blocks_the_server(own_server: Server) -> None:
    ledger = Ledger(connect(own_server.url), patience_ms=10_000)
    job = new_job(ledger, 1)
    admin, hog = redis.Redis(port=own_server.port), redis.Redis(port=own_server.port)
    admin.config_set("busy-reply-threshold", 1)

    def run_hog() -> None:
        with contextlib.suppress(redis.ResponseError):
            hog.eval("while true do end", 0)

    # Given a foreign script that runs until it is killed
    thread = threading.Thread(target=run_hog)
    thread.start()
    wait_until(lambda: is_busy(admin), "the script")
    impatient = Ledger(connect(own_server.url), patience_ms=100)
    with pytest.raises(LedgerUnavailable, match="BUSY"):
        impatient.issue(job, 1)
    with pytest.raises(LedgerUnavailable, match="BUSY"):  # a transaction
        impatient.status(job)
    timer = threading.Timer(0.3, admin.script_kill)
    timer.start()
    assert ledger.status(job).units == 1
    timer.join()
    thread.join()


@pytest.mark.parametrize(
    "words",
    [
        "MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'",
        "READONLY You can't write against a read only replica",
        "LOADING Redis is loading the dataset in memory",
        "EXECABORT Transaction discarded because of: MISCONF Errors writing to the AOF file",
    ],
)
def test_transient_errors_are_recognised_by_their_codes(own_server: Server, words: str) -> None:
    caller = Caller(connect(own_server.url))
    answers = [BaseParser.parse_error(words), None]

    def operation() -> str:
        if (error := answers.pop(0)) is not None:
            raise error
        return "served"

    assert caller.insist(operation) == "served"


def test_another_error_is_raised_at_once(own_server: Server) -> None:
    def operation() -> None:
        raise redis.ResponseError("BUSYGROUP Consumer Group name exists")

    with pytest.raises(redis.ResponseError, match="BUSYGROUP"):
        Caller(connect(own_server.url)).insist(operation)


CLUSTER = "it is a node of a Redis Cluster"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("ERR DB index is out of range", "it has no database with the number in broker.url"),
        ("ERR invalid DB index", "the database in broker.url is invalid; use 0"),
        ("ERR SELECT is not allowed in cluster mode", CLUSTER),
        ("CROSSSLOT Keys in request don't hash to the same slot", CLUSTER),
        ("MOVED 3999 10.0.0.1:6381", CLUSTER),
        ("ERR unknown command 'WAITAOF', with args beginning with: '1'", "it does not know"),
    ],
)
def test_an_unsuitable_server_is_reported_at_once(
    own_server: Server, words: str, reason: str
) -> None:
    tries = []

    def operation() -> None:
        tries.append(1)
        raise BaseParser.parse_error(words)

    caller = Caller(connect(own_server.url))
    with pytest.raises(ServerUnusable) as caught:
        caller.insist(operation)
    assert str(caught.value).startswith(f"Redis at {caller.address()} cannot be used: {reason}")
    assert len(tries) == 1


@pytest.mark.parametrize(
    ("options", "database", "words", "reason"),
    [
        (["--databases", "1"], 1, "PING", "it has no database with the number"),
        (["--rename-command", "SELECT", ""], 1, "PING", "Redis 7.2 or later"),
        (["--rename-command", "WAITAOF", ""], 0, "WAITAOF 0 0 0", "Redis 7.2 or later"),
        (["--cluster-enabled", "yes"], 0, "MGET a b", CLUSTER),
    ],
)
def test_the_words_of_a_real_unsuitable_server(
    own_server: Server, options: list[str], database: int, words: str, reason: str
) -> None:
    own_server.kill()
    if "--cluster-enabled" in options:  # by default its second port is 10,000 above the first
        options += ["--cluster-port", str(Server(own_server.folder).port)]
    own_server.start(*options)
    caller = Caller(connect(f"redis://127.0.0.1:{own_server.port}/{database}"))
    with pytest.raises(ServerUnusable, match=reason):
        caller.command(*words.split())


def test_a_wrong_password_is_reported_at_once_and_not_shown(own_server: Server) -> None:
    admin = redis.Redis(port=own_server.port)
    admin.config_set("requirepass", "open-sesame")
    address = f"127.0.0.1:{own_server.port}"
    for client in (
        connect(own_server.url),
        connect(f"redis://:hunter2@{address}/0"),
        connect(own_server.url, password="hunter2"),
    ):
        began = time.monotonic()
        with pytest.raises(LedgerRefused, match=f"Redis at {address} refuses") as caught:
            Ledger(client).jobs()
        assert "hunter2" not in str(caught.value)
        assert time.monotonic() - began < 15
    assert Ledger(connect(own_server.url, password="open-sesame")).jobs() == []


def test_a_user_without_rights_is_reported(own_server: Server) -> None:
    admin = redis.Redis(port=own_server.port)
    admin.execute_command("ACL", "SETUSER", "looker", "on", ">pw", "~ringhaul:*", "+get")
    ledger = Ledger(connect(f"redis://looker:pw@127.0.0.1:{own_server.port}/0"))
    with pytest.raises(LedgerRefused, match="access rules"):
        ledger.create("ld-1", {}, "{}")


def test_scripts_need_only_our_keys_and_no_dangerous_commands(own_server: Server) -> None:
    admin = redis.Redis(port=own_server.port)
    rights = ["~ringhaul:*", "+@all", "-@admin", "-@dangerous"]
    admin.execute_command("ACL", "SETUSER", "worker", "on", ">pw", *rights)
    ledger = Ledger(connect(f"redis://worker:pw@127.0.0.1:{own_server.port}/0"))
    job = new_job(ledger, 1)
    ledger.issue(job, 1)
    ledger.claim(job, 0, 1, "a", 60_000)
    ledger.sweep(job)
    assert ledger.commit(job, 0, 1, "a", "r", {"rows": 1}) is Commit.COUNTED
    assert ledger.status(job).state is JobState.COMPLETE


def test_durable_means_on_the_servers_disk(own_server: Server) -> None:
    ledger = Ledger(connect(own_server.url))
    new_job(ledger, 1)
    assert ledger.make_durable(5000)
    redis.Redis(port=own_server.port).config_set("appendonly", "no")
    assert not ledger.make_durable(100)


def test_a_client_that_decodes_is_refused() -> None:
    with pytest.raises(ValueError, match="decode_responses=False"):
        Ledger(redis.Redis(decode_responses=True))

"""A command on its leash: its messages, its errors, its end."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from ringhaul.client import (
    Client,
    ClientError,
    ClusterUnavailable,
    CommandCrashed,
    CommandFailed,
    CommandKilled,
    CommandMissing,
    CommandUnavailable,
    JobCancelled,
    JobFailed,
    JobStillRunning,
    LoadResult,
    Progress,
    RejectedRecords,
    TimedOut,
    TooManyRejects,
    UsageError,
)
from ringhaul.client.leash import LOOK_EVERY_S
from tests.acceptance.command import wait_until

#: Stands for the command. It prints what the test wrote, and notes Ctrl-C.
COMMAND = """
import json, os, signal, sys, time
place = os.path.dirname(os.path.abspath(__file__))
open(place + "/argv", "a").write(json.dumps(sys.argv[1:]) + "\\n")
open(place + "/pid", "w").write(str(os.getpid()))
"""
PEEKED = "SELECT id, note FROM k.t WHERE id = 7 LIMIT 2"
SUMMARY = {
    "message_type": "summary",
    "job": "ld-1",
    "kind": "load",
    "table": "k.t",
    "state": "COMPLETE",
    "exit_code": 0,
    "records": 3,
    "loaded": 3,
    "rows": 3,
    "rejected": 0,
    "elapsed_s": 1.5,
    "units": 1,
    "units_done": 1,
}
STATUS = {"message_type": "status", "job": "ld-1", "state": "RUNNING", "done": 0.5, "rows": 2}


def script(folder: Path, text: str) -> list[str]:
    file = folder / "command.py"
    file.write_text(COMMAND + text)
    return [sys.executable, str(file)]


def says(*messages: dict[str, object], code: int = 0, err: str = "", error: str = "") -> str:
    lines = "\n".join(map(json.dumps, messages))
    report = f"open(os.environ['_RINGHAUL_ERROR_FILE'], 'w').write({error!r})\n" if error else ""
    return f"{report}print({lines!r})\nprint({err!r}, file=sys.stderr)\nsys.exit({code})\n"


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_load_of_files_is_one_command(tmp_path: Path) -> None:
    seen: list[Progress] = []
    client = Client(
        command=script(tmp_path, says(STATUS, SUMMARY)),
        broker="redis://:secret@host:6379/0",
        contact_points=["a", "b"],
    )
    result = client.load(["a.csv", tmp_path / "b"], "k.t", skip_rows=1, progress=seen.append)
    assert type(result) is LoadResult and result.ok and result.check() is result
    assert (result.job, result.rows, result.seconds, result.table) == ("ld-1", 3, 1.5, "k.t")
    assert [(one.state, one.done, one.rows) for one in seen] == [
        ("RUNNING", 0.5, 2),
        ("COMPLETE", 1.0, 3),
    ]
    (argv,) = map(json.loads, (tmp_path / "argv").read_text().splitlines())
    assert argv == [
        *("load", "--json", "--table=k.t", "--skip-rows=1", "--", "a.csv", str(tmp_path / "b")),
    ]


def test_one_way_to_the_cluster_replaces_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGHAUL_CLUSTER_CONTACT_POINTS", "elsewhere")
    text = 'json.dump(dict(os.environ), open(place + "/env", "w"))\n'
    command = script(tmp_path, text + says(SUMMARY))
    Client(command=command, secure_connect_bundle="bundle.zip").load("a.csv", "k.t")
    env = json.loads((tmp_path / "env").read_text())
    assert env["RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE"] == "bundle.zip"
    assert env["RINGHAUL_CLUSTER_CONTACT_POINTS"] == "", "an empty variable counts as not set"


def test_settings_and_secrets_are_in_the_environment(tmp_path: Path) -> None:
    text = """
kept = {k: v for k, v in os.environ.items() if k.startswith("RINGHAUL_")}
file = os.environ["RINGHAUL_CLUSTER_PASSWORD_FILE"]
kept["password"] = open(file).read()
kept["mode"] = oct(os.stat(file).st_mode)
json.dump(kept, open(place + "/env", "w"))
"""
    client = Client(
        command=script(tmp_path, text + says(SUMMARY)),
        contact_points=["a", "b"],
        port=9999,
        user="bob",
        password="pass word",
        broker="redis://:secret@host:6379/0",
        environment={"RINGHAUL_CLUSTER_TLS": "true"},
    )
    client.load("a.csv", "k.t")
    env = json.loads((tmp_path / "env").read_text())
    assert not Path(env.pop("RINGHAUL_CLUSTER_PASSWORD_FILE")).exists()
    assert env == {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": "a,b",
        "RINGHAUL_CLUSTER_PORT": "9999",
        "RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE": "",
        "RINGHAUL_CLUSTER_USER": "bob",
        "RINGHAUL_CLUSTER_TLS": "true",
        "RINGHAUL_BROKER_URL": "redis://:secret@host:6379/0",
        "password": "pass word",
        "mode": "0o100600",
    }
    argv = (tmp_path / "argv").read_text()
    assert "secret" not in argv and "pass word" not in argv
    for shown in (repr(client), repr(client._connection)):
        assert ":secret@" not in shown and "pass word" not in shown
    assert "contact_points=['a', 'b'], port=9999, user='bob'" in repr(client)
    assert "broker='redis://***@host:6379/0'" in repr(client)


def test_the_help_of_a_call_lists_its_options() -> None:
    text = inspect.getdoc(Client.load) or ""
    assert text.startswith("Load a table in memory, or files")
    assert "    skip_rows: a number\n" in text and "    header: True or False\n" in text
    assert "    nulls: 'unset' or 'tombstone'\n" in text
    assert "    job_id: " in (inspect.getdoc(Client.batches) or "")


def report(name: str, message: str, *bases: str) -> str:
    return json.dumps({"errors": [name, *bases, "RinghaulError"], "message": message})


@pytest.mark.parametrize(
    ("text", "kind", "message", "transient"),
    [
        (
            says(code=2, err="Usage: x\n\nerror: no", error=report("UsageError", "no such file")),
            UsageError,
            "no such file",
            False,
        ),
        (
            says(code=4, error=report("ClusterUnavailable", "no node answers")),
            ClusterUnavailable,
            "no node answers",
            True,
        ),
        (says(code=4, err="note\nerror: disk full"), CommandFailed, "disk full", False),
        (says(code=5, error=report("Crash", "a defect")), CommandCrashed, "a defect", False),
        (says(code=1, err="No module named ringhaul"), CommandFailed, "No module named", False),
        (
            says(SUMMARY | {"state": "STOPPED", "exit_code": 3, "rejected": 9}, code=3),
            TooManyRejects,
            "job ld-1: 9 records were rejected",
            False,
        ),
        (
            says(SUMMARY | {"state": "FAILED", "exit_code": 4, "last_error": "gone"}, code=4),
            JobFailed,
            "job ld-1: gone",
            False,
        ),
        (
            says(
                SUMMARY
                | {"state": "FAILED", "exit_code": 4, "last_error": "no answer"}
                | {"cause": "ClusterUnavailable"},
                code=4,
            ),
            JobFailed,
            "job ld-1: no answer",
            True,
        ),
        (
            says(SUMMARY | {"state": "CANCELLED", "exit_code": 6}, code=6),
            JobCancelled,
            "job ld-1: it is CANCELLED",
            False,
        ),
        (
            says(SUMMARY | {"state": "CANCELLED", "exit_code": 6, "cause": "Cancelled"}, code=6),
            JobCancelled,
            "job ld-1: it is CANCELLED",
            False,
        ),
        (
            says(
                SUMMARY
                | {"state": "CANCELLED", "exit_code": 6, "last_error": "OperationTimedOut"}
                | {"cause": "Interrupted"},
                code=6,
            ),
            JobCancelled,
            "job ld-1: OperationTimedOut",
            True,
        ),
        (
            says(SUMMARY | {"state": "CANCELLED", "exit_code": 130}, code=130),
            JobCancelled,
            "job ld-1: it is CANCELLED",
            True,
        ),
        (
            says(SUMMARY | {"state": "RUNNING", "exit_code": 7}, code=7),
            JobStillRunning,
            "job ld-1: it is RUNNING",
            True,
        ),
        (says(code=130), CommandKilled, "the signal SIGINT ended the command", True),
        ("os.kill(os.getpid(), 9)\n", CommandKilled, "the signal SIGKILL", True),
        ("os.kill(os.getppid(), 9)\n", CommandKilled, "the signal SIGKILL", True),
        ("os.kill(os.getpid(), 11)\n", CommandCrashed, "the signal SIGSEGV", False),
        (
            says(code=4, error=report("WorkersUnavailable", "it keeps dying", "Transient")),
            CommandUnavailable,
            "it keeps dying",
            True,
        ),
        (
            says(SUMMARY, code=4, error=report("OutputUnusable", "summary cannot be written")),
            CommandFailed,
            "summary cannot be written",
            False,
        ),
    ],
)
def test_each_end_has_its_error(
    tmp_path: Path, text: str, kind: type[ClientError], message: str, transient: bool
) -> None:
    with pytest.raises(kind) as caught:
        Client(command=script(tmp_path, text)).load("a.csv", "k.t")
    assert message in str(caught.value)
    assert caught.value.transient is transient


@pytest.mark.parametrize(("rejected", "words"), [(1, "1 record was"), (2, "2 records were")])
def test_rejects_are_no_error_until_they_are_checked(
    tmp_path: Path, rejected: int, words: str
) -> None:
    partial = SUMMARY | {"state": "PARTIAL", "exit_code": 1, "rejected": rejected}
    result = Client(command=script(tmp_path, says(partial, code=1))).load("a.csv", "k.t")
    assert (result.ok, result.rejected) == (False, rejected)
    with pytest.raises(RejectedRecords, match=f"job ld-1: {words} rejected") as caught:
        result.check()
    assert caught.value.result is result


def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(CommandMissing, match="No such file"):
        Client(command=tmp_path / "ringhaul").jobs()


def test_a_query_without_a_result_says_why(tmp_path: Path) -> None:
    failed = SUMMARY | {"kind": "query", "state": "FAILED", "exit_code": 4, "last_error": "gone"}
    with pytest.raises(JobFailed, match="gone"):
        Client(command=script(tmp_path, says(failed, code=4))).query("SELECT 1")
    with pytest.raises(CommandFailed, match="No module named"):
        Client(command=script(tmp_path, says(code=1, err="No module named x"))).query("SELECT 1")


def test_a_resumed_job_that_fails_again_is_an_error(tmp_path: Path) -> None:
    failed = SUMMARY | {"state": "FAILED", "exit_code": 4, "last_error": "gone"}
    with pytest.raises(JobFailed, match="gone"):
        Client(command=script(tmp_path, says(failed, code=4))).job("ld-1").resume()


#: Writes a line for each Ctrl-C, and ends at the second.
STUBBORN = f"""
presses = []
def press(*_):
    presses.append(1)
    open(place + "/presses", "a").write("i")
    if len(presses) == 2:
        print({json.dumps(SUMMARY | {"state": "CANCELLED", "exit_code": 130})!r})
        sys.exit(130)
signal.signal(signal.SIGINT, press)
open(place + "/ready", "w").close()
print({json.dumps(STATUS)!r}, flush=True)
while True: time.sleep(0.05)
"""
PATIENT = STUBBORN.replace("== 2", "== 1")


def test_a_timeout_interrupts_the_command(tmp_path: Path) -> None:
    words = "job ld-1 took longer than 3 s and was interrupted, at 50% and 2 rows"
    with pytest.raises(TimedOut, match=words) as caught:
        Client(command=script(tmp_path, PATIENT)).load("a.csv", "k.t", timeout=3.0)
    assert (caught.value.job, caught.value.exit_code) == ("ld-1", 130)
    assert caught.value.seconds == 3.0
    assert caught.value.progress is not None and caught.value.progress.rows == 2
    assert gone(int((tmp_path / "pid").read_text()))


def test_an_error_in_the_callback_ends_the_command(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        raise LookupError(progress.job)

    with pytest.raises(LookupError, match="ld-1"):
        Client(command=script(tmp_path, PATIENT)).load("a.csv", "k.t", progress=stop)
    assert (tmp_path / "presses").read_text() == "i"
    assert gone(int((tmp_path / "pid").read_text()))


def press_after_progress(folder: Path, presses: int) -> None:
    """Send this process Ctrl-C as soon as the command shows progress, and again once the command
    has noted the one before."""
    noted = folder / "presses"

    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        if presses == 2:
            wait_until(noted.exists, "the first Ctrl-C")
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


@pytest.mark.parametrize(("text", "presses"), [(PATIENT, 1), (STUBBORN, 2)])
def test_ctrl_c_is_passed_to_the_command(tmp_path: Path, text: str, presses: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        Client(command=script(tmp_path, text)).load(
            "a.csv", "k.t", progress=lambda _: press_after_progress(tmp_path, presses)
        )
    assert (tmp_path / "presses").read_text() == "i" * presses
    assert gone(int((tmp_path / "pid").read_text()))


PROGRAM = """
import sys
from ringhaul.client import Client
Client(command=sys.argv[1:], password="secret").load("a.csv", "k.t")
"""


def test_a_killed_program_leaves_no_command(tmp_path: Path) -> None:
    note = 'open(place + "/password", "w").write(os.environ["RINGHAUL_CLUSTER_PASSWORD_FILE"])\n'
    command = script(tmp_path, note + PATIENT)
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, *command])
    pid_file = tmp_path / "pid"
    wait_until((tmp_path / "ready").exists, "the command, which takes Ctrl-C by now")
    program.kill()
    program.wait()
    wait_until(lambda: gone(int(pid_file.read_text())), "the end of the command")
    password = Path((tmp_path / "password").read_text())
    wait_until(lambda: not password.parent.exists(), "the end of the folder with the password")
    assert (tmp_path / "presses").read_text() == "i"


def test_an_abandoned_command_has_time_for_its_end(tmp_path: Path) -> None:
    """It cleans up for longer than the leash takes to look for its program a few times."""
    end = f"        time.sleep({3 * LOOK_EVERY_S})\n        open(place + '/clean', 'w').close()\n"
    slow = PATIENT.replace("== 1:\n", f"== 1:\n{end}")
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, *script(tmp_path, slow)])
    pid_file = tmp_path / "pid"
    wait_until((tmp_path / "ready").exists, "the command, which takes Ctrl-C by now")
    program.kill()
    program.wait()
    wait_until(lambda: gone(int(pid_file.read_text())), "the end of the command")
    assert (tmp_path / "clean").exists(), "it was killed"
    assert (tmp_path / "presses").read_text() == "i"


def test_options_of_short_commands(tmp_path: Path) -> None:
    client = Client(command=script(tmp_path, ""))
    with pytest.raises(UsageError, match="give by="):
        client.counts("k.t")
    with pytest.raises(UsageError, match="did you mean 'columns'"):
        client.peek("k.t", **{"column": "id"})
    for call in (
        lambda: client.counts("k.t", by="host"),
        lambda: client.counts("k.t", top=3, where="id > 1"),
        lambda: client.peek("t", keyspace="k", rows=2, where="id = 7", columns=["id", "note"]),
        lambda: list(client.job("ld-1").rejects(limit=1)),
    ):
        with suppress(FileNotFoundError):  # the result, which the stand-in does not write
            call()
    lines = map(json.loads, (tmp_path / "argv").read_text().splitlines())
    assert [[word for word in line if not word.startswith("--output")] for line in lines] == [
        ["count", "--format=parquet", "--json", "--table=k.t", "--by=host", "--"],
        ["count", "--format=parquet", "--json", "--table=k.t", "--top=3", "--where=id > 1", "--"],
        ["query", "--format=parquet", "--json", "--", PEEKED],
        ["errors", "--json", "--limit=1", "--", "ld-1"],
    ]


def test_jobs_are_controlled_by_their_commands(tmp_path: Path) -> None:
    command = script(tmp_path, "sys.exit(2 if 'cancel' in sys.argv else 0)\n")
    job = Client(command=command, broker="none").job("ld-1")
    job.pause()
    with pytest.raises(UsageError):
        job.cancel()
    assert list(map(json.loads, (tmp_path / "argv").read_text().splitlines())) == [
        ["pause", "--broker=none", "--", "ld-1"],
        ["cancel", "--broker=none", "--", "ld-1"],
    ]


def test_rejects_are_read_one_by_one(tmp_path: Path) -> None:
    row = {
        **{"file": "a.csv", "line": 3, "offset": 20, "length": 5, "stage": "cast", "column": "id"},
        **{"reason": "not a number", "data": "eCwx"},
    }
    endless = f"while True: print({json.dumps(row)!r})\n"
    few = f"for _ in range(2): print({json.dumps(row)!r})\n"
    table = Client(command=script(tmp_path, few)).job("ld-1").rejects_table()
    assert (
        table.to_pylist()
        == [
            {"file": "a.csv", "line": 3, "offset": 20, "stage": "cast", "column": "id"}
            | {"reason": "not a number", "data": b"x,1"}
        ]
        * 2
    )
    rejects = Client(command=script(tmp_path, endless)).job("ld-1").rejects()
    first = next(rejects)
    assert (first.line, first.column, first.data) == (3, "id", b"x,1")
    rejects.close()
    assert gone(int((tmp_path / "pid").read_text()))

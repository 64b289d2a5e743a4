"""The command that calls a node's import: what it is given, and what its answers mean."""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from ringhaul.errors import SetupUnusable
from ringhaul.imports.command import (
    ImportCall,
    ImportCommand,
    ImportCommandUnusable,
    ImportRefused,
    NodeNotReached,
    check_names_node,
    filled,
    find_nodetool,
    nodetool_arguments,
)
from ringhaul.streaming.owners import Node
from tests.ports import closed_port

NODE = Node(address="127.0.0.1", port=7000)


def command(script: str, **more: object) -> ImportCommand:
    """A command that is a script; its arguments are those of nodetool."""
    words = ("sh", "-c", script, "nodetool", *nodetool_arguments(logs_in="user" in more))
    return ImportCommand(words=words, port=7199, connects=False, **more)  # type: ignore[arg-type]


def call(script: str, **more: object) -> None:
    ImportCall(command(script, **more), NODE).run("shop", "orders", "/mnt/n/shop/orders")


def test_nodetool_is_given_node_port_and_table(tmp_path: Path) -> None:
    call(f'echo "$@" > {tmp_path}/given')
    given = (tmp_path / "given").read_text()
    assert given == "-h 127.0.0.1 -p 7199 import shop orders /mnt/n/shop/orders\n"


def test_the_password_is_in_no_argument_and_no_file(tmp_path: Path) -> None:
    call(
        f'echo "$@" > {tmp_path}/given; tr "\\0" " " < /proc/$$/cmdline > {tmp_path}/seen; '
        f'env > {tmp_path}/env; cat "$8" > {tmp_path}/read; echo "$8" > {tmp_path}/path',
        user="operator",
        password="opens-JMX",
    )
    assert (tmp_path / "read").read_text() == "operator opens-JMX\n"
    assert "-u operator -pwf /dev/fd/" in (tmp_path / "given").read_text()
    for name in ("given", "seen", "env"):
        assert "opens-JMX" not in (tmp_path / name).read_text()
    assert (tmp_path / "path").read_text().startswith("/dev/fd/")
    assert "opens-JMX" not in repr(command("", user="operator", password="opens-JMX"))


def test_no_descriptor_stays_open() -> None:
    gc.collect()  # so that no descriptor of an earlier test is closed meanwhile
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        call("exit 0", user="operator", password="opens-JMX")
    with pytest.raises(ImportCommandUnusable):
        ImportCall(
            ImportCommand(words=("/no/such",), port=1, user="u", password="p", connects=False), NODE
        ).run("a", "b", "c")
    assert not set(os.listdir("/proc/self/fd")) - before


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (
            "NOTE: Picked up JDK_JAVA_OPTIONS: -Xmx1G\nerror: Directory /mnt/n does not exist\n"
            "-- StackTrace --\njava.lang.RuntimeException: ...",
            "127.0.0.1 did not import: Directory /mnt/n does not exist; it must see imports.folder",
        ),
        (
            "error: Insufficient permissions on directory /mnt/n",
            "Cassandra's user must be able to write to imports.folder",
        ),
        (
            "nodetool: Failed to connect to '127.0.0.1:7199' - SecurityException: "
            "'Authentication failed! Credentials required'.",
            "Credentials required'.; set imports.jmx_user and imports.jmx_password_file",
        ),
        (
            "Some directories failed to import, check server logs for details:\n/mnt/n",
            "it refused the files; its system.log says why",
        ),
        ("ColumnFamilyStore for shop/orders not found.", "one of another cluster?"),
        ("a\nlast words", "127.0.0.1 did not import: last words"),
        ("", "its command printed nothing"),
        ("x" * 5000, "import: " + "x" * 300),
    ],
)
def test_what_a_node_answers_is_passed_on(printed: str, why: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        call(f"cat <<'END' >&2\n{printed}\nEND\nexit 1")
    assert why in str(refused.value)
    assert len(str(refused.value)) < 500


def test_an_answer_without_end_is_read_from_its_end() -> None:
    with pytest.raises(ImportRefused, match="did not import: the end"):
        call("head -c 30000000 /dev/zero; echo; echo the end; exit 2")


def test_a_port_that_is_closed_is_noticed_before_anything_is_started(tmp_path: Path) -> None:
    with closed_port() as port:
        given = ImportCommand(words=("touch", str(tmp_path / "started")), port=port)
        refusal = f"the JMX port {port} of 127.0.0.1 does not answer"
        with pytest.raises(NodeNotReached, match=refusal):
            ImportCall(given, NODE).run("a", "b", "c")
    assert not (tmp_path / "started").exists()


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(NodeNotReached, match=r"did not import within 1 s \(imports.timeout_s\)"):
        call(f"sleep 300 & echo $! > {tmp_path}/child; wait", timeout_s=1.0)
    assert_gone(int((tmp_path / "child").read_text()))


def test_an_aborted_call_ends_at_once(tmp_path: Path) -> None:
    one = ImportCall(command(f"echo $$ > {tmp_path}/pid; exec sleep 300"), NODE)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            one.run("a", "b", "c")
        except ImportRefused as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    one.abort()
    thread.join(10)
    assert failed and not thread.is_alive()
    assert_gone(int((tmp_path / "pid").read_text()))
    with pytest.raises(NodeNotReached, match="given up"):
        one.run("a", "b", "c")


def assert_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    # It may end between any two looks at it
    with suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, f"{pid} still runs"
            time.sleep(0.01)


def test_placeholders_are_replaced_once() -> None:
    assert filled("{node}:{port}-{other}", {"node": "{port}", "port": "1"}) == "{port}:1-{other}"


def test_nodetool_is_that_of_cassandra_home_then_of_the_path_then_of_jars(tmp_path: Path) -> None:
    for folder in ("home/bin", "path"):
        tool = tmp_path / folder / "nodetool"
        tool.parent.mkdir(parents=True)
        tool.touch(0o755)
    java = tmp_path / "java" / "bin" / "java"
    jars = tmp_path / "cache" / "jars" / "cassandra-5.0.9"
    jars.mkdir(parents=True)
    (jars / "a.jar").touch()
    environ = {
        "CASSANDRA_HOME": str(tmp_path / "home"),
        "PATH": str(tmp_path / "path"),
        "JAVA_HOME": str(tmp_path / "java"),
    }
    cache = tmp_path / "cache"

    assert find_nodetool(cache, environ) == (str(tmp_path / "home/bin/nodetool"),)
    del environ["CASSANDRA_HOME"]
    assert find_nodetool(cache, environ) == (str(tmp_path / "path/nodetool"),)
    environ["PATH"] = ""
    words = find_nodetool(cache, environ)
    assert words[0] == str(java)
    assert words[-3:] == ("-cp", str(jars / "a.jar"), "org.apache.cassandra.tools.NodeTool")
    with pytest.raises(SetupUnusable, match=r"set CASSANDRA_HOME or imports\.command"):
        find_nodetool(tmp_path / "empty", environ)


def test_a_command_for_several_nodes_must_name_the_node() -> None:
    local = ImportCommand(words=("nodetool", "import", "{folder}"), port=1)
    check_names_node(local, 1)
    with pytest.raises(SetupUnusable, match=r"imports\.command has no \{node\}, and 3 nodes own"):
        check_names_node(local, 3)
    check_names_node(ImportCommand(words=("ssh", "root@{node}", "x"), port=1), 3)
    check_names_node(ImportCommand(words=nodetool_arguments(logs_in=False), port=1), 3)

"""How workers call nodes' imports, from their own settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.errors import ConfigError
from config.settings import Settings, load_settings
from ringhaul.errors import UsageError
from tasks.child.process import Child
from tasks.child.stream_target import import_sessions
from tasks.import_settings import import_command, import_folders
from tests.loads import load_job, table_schema

SetUp = Callable[..., Settings]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SetUp:
    """A function that makes settings of imports; nodetool is on the path."""
    tool = tmp_path / "bin" / "nodetool"
    tool.parent.mkdir()
    tool.touch(0o755)
    monkeypatch.setenv("PATH", str(tool.parent))
    monkeypatch.delenv("CASSANDRA_HOME", raising=False)

    def made(**values: Any) -> Settings:
        given = {f"imports.{name}": value for name, value in values.items()}
        return load_settings(
            {"state_dir": tmp_path, "broker.url": "redis://h:1/0", **given}
        ).settings

    return made


def test_nodetool_gets_the_port_and_the_log_in(settings: SetUp, tmp_path: Path) -> None:
    (tmp_path / "jmx").write_text("opens-JMX\nmore\n")
    plain = import_command(settings(jmx_port=7299))
    assert plain.words[0] == str(tmp_path / "bin" / "nodetool")
    assert "-u" not in plain.words
    assert (plain.port, plain.connects) == (7299, True)

    known = import_command(settings(jmx_user="operator", jmx_password_file=tmp_path / "jmx"))
    assert known.words[5:9] == ("-u", "{user}", "-pwf", "{password_file}")
    assert (known.user, known.password) == ("operator", "opens-JMX")


def test_another_command_is_cut_into_words(settings: SetUp) -> None:
    command = import_command(settings(command="ssh {node} 'a b' {folder}", timeout_s=5))
    assert command.words == ("ssh", "{node}", "a b", "{folder}")
    assert (command.connects, command.timeout_s) == (False, 5)


def test_a_password_that_nodetool_would_cut_is_refused(settings: SetUp, tmp_path: Path) -> None:
    (tmp_path / "jmx").write_text("opens JMX\n")
    with pytest.raises(ConfigError, match="takes no password with blanks") as refused:
        import_command(settings(jmx_user="operator", jmx_password_file=tmp_path / "jmx"))
    assert "opens" not in str(refused.value)


def test_nodes_see_the_same_folder_unless_told_otherwise(settings: SetUp) -> None:
    same = import_folders(settings(), "/mnt/{node}", "shop", "orders", "ld-1")
    assert (same.folder, same.node_folder) == ("/mnt/{node}", "/mnt/{node}")
    other = import_folders(settings(node_folder="/imports"), "/mnt/{node}", "a", "b", "ld-1")
    assert other.node_folder == "/imports"


def test_a_worker_refuses_what_it_cannot_call(settings: SetUp, tmp_path: Path) -> None:
    job = load_job(table_schema({"id": "int"}, ["id"]))
    for values, why in (
        ({"command": "nodetool import {folder}"}, "has no {node}, and 3 nodes own the rows"),
        ({"jmx_user": "u", "jmx_password_file": tmp_path / "gone"}, "cannot read"),
    ):
        child = Child(settings(**values))
        with pytest.raises(UsageError) as refused:
            import_sessions(child, job, "/mnt", "ld-1", 3)
        assert why in str(refused.value)

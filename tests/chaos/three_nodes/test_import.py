"""Three nodes import SSTables: each has the rows that it owns and no others, whatever dies."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from producer.local.stack import Endpoints
from ringhaul.imports.command import find_nodetool
from tests.acceptance.command import wait_until
from tests.chaos.conftest import StartWorker
from tests.chaos.rig import LedgerView, Rig, check_exact, check_table, kill, write_source
from tests.chaos.three_nodes.replicas import kill_node, leave_files_alone, owned, rows_of
from tests.services import ProxiedRing, user_cache_dir

RECORDS = 4000
#: Calls nodetool for a node whose JMX port is on loopback. Before an import of SSTables it waits as
#: long as a file is there.
SCRIPT = """\
#!/bin/sh
node=$1 keyspace=$2 table=$3 folder=$4
if [ -e {hold} ] && ls "$folder"/*-Data.db > /dev/null 2>&1; then
    touch {held}
    while [ -e {hold} ]; do sleep 0.05; done
fi
case "$node" in
{ports}
esac
exec {nodetool} -h 127.0.0.1 -p "$port" import "$keyspace" "$table" "$folder"
"""


@dataclass(frozen=True)
class Imports:
    """A folder that three nodes see, and the settings that lead there."""

    folder: Path
    hold: Path  #: while it is there, imports wait
    held: Path  #: is there once one has waited
    env: dict[str, str]

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.fixture
def imports(proxied_ring: ProxiedRing, endpoints: Endpoints, tmp_path: Path) -> Imports:
    folder, script = tmp_path / "imports", tmp_path / "call.sh"
    folder.mkdir()
    hold, held = tmp_path / "hold", tmp_path / "held"
    ports = proxied_ring.stack.jmx_ports
    script.write_text(
        SCRIPT.format(
            hold=hold,
            held=held,
            ports="\n".join(f"{address}) port={port};;" for address, port in ports.items()),
            nodetool=shlex.join(find_nodetool(user_cache_dir())),
        )
    )
    env = {
        "RINGHAUL_IMPORTS_FOLDER": f"{folder}/{{node}}",
        "RINGHAUL_IMPORTS_COMMAND": f"sh {script} {{node}} {{keyspace}} {{table}} {{folder}}",
        "RINGHAUL_IMPORTS_INPUT_BYTES_MIN": "0",
        "RINGHAUL_SSTABLES_SORT_BYTES": "8 KiB",
    }
    return Imports(folder, hold, held, env)


def options(rig: Rig) -> list[object]:
    return ["-t", rig.table, "--via", "import", "--unit-size", "120 KiB"]


@pytest.mark.parametrize("replicas", [2], indirect=True)
def test_each_node_gets_the_rows_that_it_owns_and_no_others(
    embedded: Rig, proxied_ring: ProxiedRing, imports: Imports, tmp_path: Path, replicas: int
) -> None:
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    with embedded.started(
        "load", source.path, *options(embedded), "-c", "1", **imports.env
    ) as load:
        summary = load.finish(1)
    assert (summary["rows"], summary["missed"]) == (len(source.good), 0)
    assert len(summary["streamed_bytes"]) == 3
    one = embedded.command.run(
        "load", source.path, *options(embedded),
        **imports.env | {"RINGHAUL_IMPORTS_COMMAND": "nodetool import {folder}"},
    )  # fmt: skip
    assert one.code == 2
    assert "imports.command has no {node}, and 3 nodes own the rows" in one.err
    held = 0
    for node in proxied_ring.stack.nodes():
        found = rows_of(node, embedded.table, summary["first_timestamp_us"])
        assert found == owned(embedded, source, node)
        held += len(found)
    assert held == replicas * len(source.good)
    check_table(embedded, summary, source.good)
    assert imports.files() == []


def test_a_node_that_is_down_is_named_and_the_others_have_all_rows(
    embedded: Rig, proxied_ring: ProxiedRing, imports: Imports, tmp_path: Path
) -> None:
    """
    1. One of three replicas is killed.
    2. A load at LOCAL_QUORUM is complete, and says who lacks rows; one at ALL is refused.
    """
    source = write_source(tmp_path / "in.csv", RECORDS)
    leave_files_alone(embedded)
    down = proxied_ring.stack.nodes()[1]
    kill_node(embedded.session, down)

    refused = embedded.command.run(
        "load", source.path, *options(embedded), "--consistency", "ALL", **imports.env
    )
    assert refused.code == 2, refused
    assert f"{down.address} did not import: Failed to connect" in refused.err
    assert "and ALL needs this node" in refused.err
    with embedded.started(
        "load", source.path, *options(embedded), "-c", "1", **imports.env
    ) as load:
        summary = load.finish(1)

    assert summary["rows"] == len(source.good)
    assert summary["missed"] == summary["units"] > 1
    for node in proxied_ring.stack.nodes():
        found = rows_of(node, embedded.table, summary["first_timestamp_us"])
        assert found == ({} if node.address == down.address else source.good)
    assert imports.files() == []


def test_what_a_killed_child_and_a_killed_command_leave_is_finished_and_removed(
    fleet: Rig,
    ledger_view: LedgerView,
    start_worker: StartWorker,
    imports: Imports,
    tmp_path: Path,
) -> None:
    """
    1. A worker of one process writes SSTables; the nodes' imports are held up.
    2. The process is killed, and so is the command. The imports continue without them.
    3. Another attempt of the unit has the same rows imported, which changes nothing.
    4. `resume` finds the job complete, and removes what the killed process left.
    """
    source = write_source(tmp_path / "in.csv", RECORDS)
    imports.hold.touch()
    # The worker's parent notices the death: the next attempt's lease must not expire as well.
    start_worker(1, RINGHAUL_WORKER_LEASE_S="60", **imports.env)
    with fleet.started("load", source.path, *options(fleet), **imports.env) as load:
        wait_until(imports.held.exists, "an import")
        ((_, child),) = ledger_view.children_by_unit().items()
        kill(child)
        load.process.kill()
        load.process.wait()
    left = imports.files()
    assert left, "the process had written no files"
    imports.hold.unlink()

    wait_until(lambda: ledger_view.status().sealed, "all units in the ledger")
    wait_until(lambda: ledger_view.status().pending == 0, "all units")
    with fleet.started("resume", ledger_view.job, **imports.env) as resume:
        summary = resume.finish(1)
    assert summary["repeated_units"] == 1
    check_exact(fleet, ledger_view, summary, source)
    assert imports.files() == []
    assert not list(imports.folder.glob(f"*/{ledger_view.job}"))

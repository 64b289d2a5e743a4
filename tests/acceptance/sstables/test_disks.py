"""Disks without room for SSTables: refused beforehand if that is plain, and resumed if not."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from tests.acceptance.command import Ringhaul
from tests.acceptance.mounts import Namespaced
from tests.acceptance.oracle import assert_report
from tests.acceptance.sstables.loading import bring_in
from tests.servers import JMX_PASSWORD, JMX_USER
from tests.sstable_tools import Node

ROWS = 3000


@pytest.fixture
def table(node: Node, keyspace: str) -> str:
    node.session.execute(f"CREATE TABLE {keyspace}.t (id int PRIMARY KEY, v text)")
    return f"{keyspace}.t"


def write_input(folder: Path) -> dict[int, str]:
    """Write 3 MB that hardly become less when compressed; return the rows."""
    dice = random.Random(7)
    rows = {n: "".join(map(chr, dice.choices(range(0x4E00, 0x9FA5), k=333))) for n in range(ROWS)}
    text = "".join(f"{n},{value}\n" for n, value in rows.items())
    (folder / "in.csv").write_text(f"id,v\n{text}")
    return rows


def test_a_folder_that_gets_full(
    node: Node, table: str, embedded: Ringhaul, mounts: int, tmp_path: Path
) -> None:
    # Given a disk of 1 MiB for 3 MB
    rows = write_input(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    inside = Namespaced(embedded.env, tmp_path, mounts)
    inside.mount(out, "size=1m")
    load = ("load", tmp_path / "in.csv", "-t", table, "--to-sstables", out, "-c", 1)

    # When units that run at once would not fit, then the load is refused, and leaves nothing
    refused = inside.run(*load)
    assert refused.code == 4, refused
    assert re.search(
        rf"{out}/\.ringhaul/ld-\w+ has 1 MiB free, too little for the SSTables of units that "
        r"run at once \(up to 3 MiB\): free some, or name another folder \(--to-sstables\), or "
        r"lower --unit-size",
        refused.err,
    ), refused.err
    assert not list(inside.seen(out).glob(".ringhaul/*"))

    # When a single unit fits, then it warns, and fails once the disk is full
    full = inside.run(*load, "--unit-size", "300K")
    assert full.code == 4, full
    assert f"{out} has 1.0 MiB free, and the input has 2.9 MiB: its SSTables may" in full.err
    assert "No space left on device" in full.err
    (job,) = set(re.findall(r"ringhaul resume (ld-[0-9a-f]{6})", full.err))

    # And once there is room the job is completed, and has every row
    inside.mount(out, "remount,size=20m")
    assert_report(inside.run("resume", job, "--json"), rows=ROWS)
    # The node does not see that disk.
    copied = shutil.copytree(inside.seen(out) / Path(*table.split(".")), tmp_path / "copy")
    bring_in(node, table, copied)
    found = {row.id: row.v for row in node.session.execute(f"SELECT id, v FROM {table}")}
    assert found == rows


def test_import_folders_without_room(
    node: Node, table: str, embedded: Ringhaul, tmp_path: Path
) -> None:
    # Given a source that is larger than any disk, and SSTables of the same size
    with open(tmp_path / "in.csv", "w") as source:
        source.write("id,v\n")
        source.truncate(2**43)
    (tmp_path / "jmx").write_text(f"{JMX_PASSWORD}\n")
    folder = tmp_path / "imports"
    folder.mkdir()
    env = {
        "RINGHAUL_IMPORTS_FOLDER": f"{folder}/{{node}}",
        "RINGHAUL_IMPORTS_JMX_PORT": str(node.jmx_port),
        "RINGHAUL_IMPORTS_JMX_USER": JMX_USER,
        "RINGHAUL_IMPORTS_JMX_PASSWORD_FILE": str(tmp_path / "jmx"),
    }

    # When it is to be imported, then that is refused before anything is read
    load = ("load", "in.csv", "-t", table, "--via", "import", "--sstable-size", "8192G")
    refused = embedded.run(*load, **env)
    assert refused.code == 4, refused
    assert re.search(
        rf"{folder}/127\.0\.0\.1 has [\d,]+ MiB free, too little for SSTables on their way to "
        r"nodes \(up to 8,388,608 MiB\): free some, or lower --sstable-size or the "
        r"number of workers",
        refused.err,
    ), refused.err
    assert not [path for path in folder.rglob("*") if path.is_file()]

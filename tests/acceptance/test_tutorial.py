"""docs/tutorial.md, followed word for word: each command runs, and its output is the page's.

A shell runs the commands on a separate local stack. Only `make setup` is not run, since the tests
run in the environment that it makes. At the end every row of the table is compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from producer.local.stack import Stack
from tests.acceptance.oracle import assert_table
from tests.services import connected, user_cache_dir

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
_MARK = "=== the output ends here, code "
TIMEOUT_S = 240


@dataclass(frozen=True)
class Step:
    """A command of the page, and what the page shows of its output."""

    command: str
    shown: tuple[str, ...]


def steps() -> list[Step]:
    """The commands of the page, in order."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            found.append(Step(command, tuple(shown)))
    return found


def masked(line: str, home: str) -> str:
    """The line without what differs from run to run: ids, times, sizes of columns."""
    line = line.replace(home, "/home/you")
    line = re.sub(r"\b(ld|vf|qy|ul)-[0-9a-f]{6}\b", r"\1-JOB", line)
    line = re.sub(r"(p50) .*", r"\1", line)
    line = re.sub(r"^ pages \d+:", " pages:", line)
    line = re.sub(r"\d+:\d\d +[\d.,]+k? rows/s", "SPEED", line)
    line = re.sub(r"\d+ embedded workers?", "embedded workers", line)
    line = re.sub(r"\b\d+ units$", "units", line)
    line = re.sub(r"\d+ files?, [\d.]+ (?:[KM]i)?B", "files", line)
    line = re.sub(r"port \d+$", "port", line)
    return re.sub(r"--+", "--", re.sub(r" +", " ", line)).rstrip()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of the shell: a newcomer's home, and a stack that ends with the test."""
    env = {name: os.environ[name] for name in os.environ if not name.startswith("RINGHAUL_")}
    env |= {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{env['PATH']}",
        "RINGHAUL_CACHE_DIR": str(user_cache_dir()),
        "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
    }
    try:
        yield env
    finally:
        run([Step("ringhaul local down --wipe", ())], env)


def run(typed: list[Step], env: Mapping[str, str]) -> list[tuple[int, list[str]]]:
    """Type the commands into one shell; return the exit code and the output of each."""
    script = "exec 2>&1\n" + "".join(f'{one.command}\necho "{_MARK}$?"\n' for one in typed)
    done = subprocess.run(
        ["bash", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=dict(env),
        cwd=ROOT,
        text=True,
        timeout=TIMEOUT_S,
    )
    parts = re.split(rf"^{_MARK}(\d+)\n", done.stdout, flags=re.MULTILINE)
    codes, outputs = map(int, parts[1::2]), parts[:-1:2]
    return [(code, text.splitlines()) for code, text in zip(codes, outputs, strict=True)]


def test_a_newcomer_gets_a_verified_table(shell: dict[str, str], tmp_path: Path) -> None:
    """
    1. Type everything up to the clean-up; compare each output with the page's.
    2. Compare every row of the table, and of the unloaded files, with the two files.
    3. Clean up: nothing runs any more.
    """
    todo = [one for one in steps() if one.command != "make setup"]
    *work, down = todo
    assert len(work) > 15 and down.command == "ringhaul local down --wipe"
    for step, (code, lines) in zip(work, run(work, shell), strict=True):
        assert code == 0, "\n".join([step.command, *lines])
        if step.shown:
            home = str(tmp_path)
            assert [masked(line, home) for line in lines] == [
                masked(line, home) for line in step.shown
            ], step.command
    folder = tmp_path / "first-load"
    records = [
        line.split(",")
        for name in ("monday.csv", "tuesday.csv")
        for line in (folder / name).read_text().splitlines()[1:]
    ]
    rows = [(int(id), region, Decimal(total)) for id, region, _, total in records]
    assert len(rows) == 12_001
    with connected(Stack(tmp_path / "state", user_cache_dir()).endpoints()) as session:
        assert_table(session, "shop.orders", "id, region, total", rows)
    unloaded = []
    for path in (folder / "out").glob("*.parquet"):
        unloaded += [
            (r["id"], r["region"], Decimal(r["total"])) for r in pq.read_table(path).to_pylist()
        ]
    assert sorted(unloaded) == sorted(rows)
    ((code, _), (ended, _)) = run([down, Step("ringhaul local status", ())], shell)
    assert (code, ended) == (0, 4)


def test_the_comparison_sees_a_difference() -> None:
    shown = next(one.shown for one in steps() if "monday.csv -t" in one.command)
    last = masked(shown[-1], "/home/you")
    assert last != masked(shown[-1].replace("10,000", "9,999"), "/home/you")
    assert masked("ld-0bc464 load", "/") == masked("ld-ffffff  load", "/")

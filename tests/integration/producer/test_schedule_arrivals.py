"""Beats and arriving files: looks, outages, and unreadable files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import load_settings
from producer.schedule.arrivals import ArrivalPoller
from producer.schedule.run import RunWork, step_environment
from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.schedules import Claim, ScheduleBook
from ringhaul.schedule.arrivals import FAILED, LOADED, Arrived, Listed, remember
from ringhaul.schedule.parse import parse_schedules
from ringhaul.schedule.runs import RunState, new_run
from tests.integration.producer.rig import Rig, look_until, rewrite


def test_a_look_finds_new_and_changed_files(rig: Rig, tmp_path: Path) -> None:
    """Check each look's findings; tests/acceptance checks that beats load them."""
    folder = tmp_path / "in"
    folder.mkdir()
    text = '[schedule.a]\narrive = "in/*.csv"\nsettle = "0s"\nfiles_max = 2\n'
    schedule = parse_schedules(f'{text}steps = [["load", "{{files}}", "-t", "k.t"]]', "s")["a"]
    look = ArrivalPoller(ScheduleBook(Caller(rig.client)), schedule, tmp_path)

    def found(*, failed_too: bool = False) -> list[str]:
        """Look twice: a file must be seen twice to be found."""
        look.look(0, failed_too=failed_too)
        return [Path(file.path).name for file in look.look(0, failed_too=failed_too)]

    for name in "abc":
        (folder / f"{name}.csv").write_text(name)
    assert found() == ["a.csv", "b.csv"], "no more than files_max"
    # A loaded file is not found again
    arrived = look.look(0)
    run = new_run(schedule, 1000, 1000, files=arrived)
    settled_ms = rig.book.look("a", "t").settled_ms
    assert rig.book.claim(run, settled_ms=settled_ms, lease_ms=9000) is Claim.CLAIMED
    rig.book.keep(run, lease_ms=9000, files=remember(arrived, run.id, 5, loaded=True))
    assert found() == ["c.csv"]
    # nor is a touched one; one with other content is, even with the same length
    rewrite(folder / "a.csv", "a")
    assert found() == ["c.csv"]
    rewrite(folder / "b.csv", "B")
    assert found() == ["b.csv", "c.csv"]
    # A failed one waits for a change, or for a run by hand
    failed = [file for file in look.look(0) if file.path.endswith("c.csv")]
    rig.book.keep(run, lease_ms=9000, files=remember(failed, run.id, 5, loaded=False))
    assert found() == ["b.csv"]
    assert found(failed_too=True) == ["b.csv", "c.csv"]


class Drop:
    """Files in a folder, and the looks and runs of a schedule of three files at a time."""

    def __init__(self, rig: Rig, tmp_path: Path) -> None:
        self.folder = tmp_path / "drop"
        self.folder.mkdir()
        text = f'[schedule.a]\narrive = "{self.folder}"\nsettle = "0s"\nfiles_max = 3\n'
        self.schedule = parse_schedules(text + 'steps = [["load", "{files}"]]', "s")["a"]
        self._rig, self._tmp_path = rig, tmp_path
        self.look = self.new_look()

    def new_look(self) -> ArrivalPoller:
        return ArrivalPoller(self._rig.book, self.schedule, self._tmp_path)

    def write(self, *names: str) -> None:
        """Write files, and look at them for the first time."""
        for name in names:
            rewrite(self.folder / name, f"{name} {time.monotonic_ns()}")
        self.look.look(0)

    def run(self, *bad: str) -> list[str]:
        """Look, run the found files, and return their names. The `bad` ones fail."""
        files = self.look.look(0)
        names = [Path(file.path).name for file in files]
        if not files:
            return names
        book, standing = self._rig.book, self._rig.book.look("a", "t")
        assert standing.settled_ms is not None
        due_ms = standing.settled_ms // 1000 * 1000 + 1000
        run = new_run(self.schedule, due_ms, due_ms, files=files, alone=self.look.alone)
        claim = book.claim(run, settled_ms=standing.settled_ms, lease_ms=9000)
        assert claim is Claim.CLAIMED
        fails = bool(set(names) & set(bad))
        run = replace(run, state=RunState.FAILED if fails else RunState.DONE)
        ended = remember(files, run.id, due_ms, loaded=not fails)
        assert book.keep(run, lease_ms=9000, files=ended, end=True)
        self.look.run_ended(run)
        return names

    def states(self) -> dict[str, str]:
        paths = [str(path) for path in self.folder.iterdir()]
        known = self._rig.book.remembered("a", paths)
        return {Path(path).name: file.state for path, file in known.items()}


def test_files_that_are_retried_alone_do_not_starve(rig: Rig, tmp_path: Path) -> None:
    drop = Drop(rig, tmp_path)
    # Given three files, one of which fails their common run
    drop.write("a", "bad", "c")
    assert drop.run("bad") == ["a", "bad", "c"]
    # When a new file arrives before each run, and another beat looks from some point on
    ran = []
    for number in range(6):
        if number == 3:
            drop.look = drop.new_look()
        drop.write(f"new{number}")
        ran.append(drop.run("bad"))
    # Then both kinds take turns
    assert ran == [["a"], ["new0", "new1"], ["bad"], ["new2", "new3"], ["c"], ["new4", "new5"]]
    assert drop.run() == []
    states = drop.states()
    assert (states.pop("bad"), set(states.values())) == (FAILED, {LOADED})


def test_files_left_by_a_run_are_looked_for_at_once(rig: Rig, tmp_path: Path) -> None:
    drop = Drop(rig, tmp_path)

    def next_ms() -> int:
        drop.look.next_ms = 99
        drop.run("b")
        return drop.look.next_ms

    drop.write("a", "b", "c", "d")
    assert next_ms() == 0, "one is beyond files_max"
    # The three of that run are retried alone now, and the fourth in between
    assert [next_ms() for _ in range(4)] == [0, 0, 0, 99]
    assert sorted(drop.states().values()) == [FAILED, *[LOADED] * 3]
    # One that fails alone does not cause another look
    drop.write("b")
    assert next_ms() == 99
    # but several do, although the look had left none
    drop.write("b", "e")
    assert next_ms() == 0


def test_files_of_a_failed_run_do_not_wait_for_the_schedule_s_next_look(
    rig: Rig, tmp_path: Path
) -> None:
    steps = 'steps = [["load", "none.csv", "-t", "k.t"], ["load", "{files}", "-t", "k.t"]]'
    paths = drop_box(rig, tmp_path, steps, "0.csv", "1.csv", "2.csv")
    # Given looks an hour apart, the first two of which are over
    rig.file.write_text(rig.file.read_text().replace('"1s"', '"1h"'))
    beat = rig.beat()
    look_until(beat, lambda: "a" in beat._looks and beat._looks["a"].next_ms, "a look")
    look_until(beat, lambda: not beat._looks["a"].busy, "its end")
    beat._looks["a"].next_ms = 0

    def are_failed() -> bool:
        known = rig.book.remembered("a", paths)
        return len(known) == 3 and all(file.state == FAILED for file in known.values())

    # Then all are tried together, and then each alone, one run after the other
    look_until(beat, are_failed, "each file alone")
    beat.close()
    runs = rig.book.runs("a", 10)[::-1]
    assert [len(run.files) for run in runs] == [3, 1, 1, 1]
    assert [run.alone for run in runs] == [False, True, True, True]


DROP = '[schedule.a]\narrive = "in/"\nevery = "1s"\nsettle = "0s"\n'


def drop_box(rig: Rig, tmp_path: Path, keys: str, *names: str) -> list[str]:
    """Write files into a folder, and a schedule for them; return the files' paths."""
    folder = rig.file.parent / "in"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("id\n1\n")
    rig.file.write_text(DROP + keys)
    return [str(folder / name) for name in names]


def test_an_outage_of_the_cluster_fails_no_file(rig: Rig, tmp_path: Path) -> None:
    # Given a cluster that is down, and arriving files
    steps = 'backoff = "1h"\nsteps = [["load", "{files}", "-t", "k.t"]]'
    paths = drop_box(rig, tmp_path, steps, "0.csv", "1.csv")
    beat = rig.beat()
    look_until(beat, rig.run, "a run")
    look_until(beat, lambda: rig.book.standing("a").run is None, "its end")
    beat.close()
    run = rig.run()
    assert run is not None and (run.state, run.steps[0].code) == (RunState.FAILED, 4)
    # Then they are not blamed, and the next try waits, also with another beat
    assert rig.book.remembered("a", paths) == {}
    wait, now_ms = rig.book.wait("a"), rig.book.standing("a").now_ms
    assert wait.troubles == 1
    assert 3_500_000 < wait.until_ms - now_ms <= 3_600_000
    beat = rig.beat()
    until = time.monotonic() + 2.5
    look_until(beat, lambda: time.monotonic() > until, "some looks")
    assert len(rig.book.runs("a", 10)) == 1
    # A run by hand does not wait, and the pause after it is longer
    assert by_hand(tmp_path).returncode == 4
    run = rig.run()
    assert run is not None and run.by_hand and len(rig.book.runs("a", 10)) == 2
    assert rig.book.standing("a").settled_ms == run.due_ms, "a beat's earlier findings are stale"
    assert (rig.book.remembered("a", paths), rig.book.wait("a").troubles) == ({}, 2)
    # When the pause is over, a beat tries them again
    rig.client.hset(keys.schedule_key("a", "state"), "wait_ms", now_ms)
    look_until(beat, lambda: len(rig.book.runs("a", 10)) == 3, "the third run")
    run = rig.run()
    assert run is not None and [file.path for file in run.files] == paths
    beat.close()


def by_hand(folder: Path) -> subprocess.CompletedProcess[str]:
    """`ringhaul schedule run a`."""
    command = [sys.executable, "-P", "-m", "ringhaul", "schedule", "run", "a"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_files_whose_chain_fails_before_the_load_are_not_retried_forever(
    rig: Rig, tmp_path: Path
) -> None:
    steps = 'steps = [["load", "none.csv", "-t", "k.t"], ["load", "{files}", "-t", "k.t"]]'
    (path,) = drop_box(rig, tmp_path, steps, "0.csv")
    beat = rig.beat()
    look_until(beat, rig.run, "a run")
    look_until(beat, lambda: rig.book.standing("a").run is None, "its end")
    beat.close()
    run = rig.run()
    assert run is not None and [step.code for step in run.steps] == [2, None]
    assert rig.book.remembered("a", [path])[path].state == FAILED


def test_an_unreadable_file_does_not_block_others(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps = 'files_max = 1\nsteps = [["load", "{files}", "-t", "k.t"]]'
    closed, good = drop_box(rig, tmp_path, steps, "closed.csv", "good.csv")
    folder = rig.file.parent
    with open(os.fsencode(folder) + b"/in/caf\xe9.csv", "w") as odd:
        odd.write("id\n1\n")
    # Given an unreadable file; for root, every file is readable
    monkeypatch.setattr("producer.schedule.arrivals.take_checksum", checksum_but_of(closed))
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    look = ArrivalPoller(rig.book, schedule, folder)
    for _ in range(4):
        found = look.look(0)
    # Then the other one is found, and the unreadable ones are reported once
    assert [file.path for file in found] == [good]
    assert caplog.text.count("closed.csv: Permission denied") == 1
    assert caplog.text.count("the file name is not UTF-8") == 1
    # A run by hand reports the odd files if there are no others
    Path(good).unlink()
    Path(closed).unlink()
    done = by_hand(tmp_path)
    assert (done.returncode, "the file name is not UTF-8: rename it" in done.stderr) == (2, True), (
        done
    )


def checksum_but_of(closed: str) -> Callable[[Listed], Arrived]:
    def take(file: Listed) -> Arrived:
        if file.path == closed:
            raise PermissionError(13, "Permission denied", file.path)
        return Arrived(*file, checksum="c")

    return take


def test_no_file_is_forgotten_while_its_folder_is_missing(rig: Rig, tmp_path: Path) -> None:
    steps = 'steps = [["load", "{files}", "-t", "k.t"]]'
    (path,) = drop_box(rig, tmp_path, steps, "0.csv")
    folder = rig.file.parent
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    look = ArrivalPoller(rig.book, schedule, folder)
    look.look(0)
    arrived = look.look(0)
    run = new_run(schedule, 1000, 1000, files=arrived)
    at = rig.book.look("a", "t").settled_ms
    assert rig.book.claim(run, settled_ms=at, lease_ms=9000) is Claim.CLAIMED
    rig.book.keep(run, lease_ms=9000, files=remember(arrived, run.id, 5, loaded=True))
    (folder / "in").rename(folder / "away")
    for year in (1, 2):
        assert ArrivalPoller(rig.book, schedule, folder).look(year * 366 * 86_400_000) == []
    assert rig.book.remembered("a", [path])[path].gone_ms is None
    # A file that is missing from an existing folder is marked
    (folder / "away" / "0.csv").unlink()
    (folder / "away").rename(folder / "in")
    ArrivalPoller(rig.book, schedule, folder).look(7)
    assert rig.book.remembered("a", [path])[path].gone_ms == 7


def test_a_run_released_after_its_load_records_its_files(rig: Rig, tmp_path: Path) -> None:
    # Given a run whose load has ended, which is not recorded yet
    (path,) = drop_box(rig, tmp_path, 'steps = [["load", "{files}", "-t", "k.t"]]', "0.csv")
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    look = ArrivalPoller(rig.book, schedule, rig.file.parent)
    look.look(0)
    standing = rig.book.look("a", "t")
    run = new_run(schedule, standing.now_ms // 1000 * 1000, standing.now_ms, files=look.look(0))
    claim = rig.book.claim(run, settled_ms=standing.settled_ms, lease_ms=9000)
    assert claim is Claim.CLAIMED
    work = RunWork(
        rig.book,
        rig.ledger,
        schedule,
        run,
        host="h:1",
        lease_ms=9000,
        folder=rig.file.parent,
        environment=step_environment(load_settings()),
        logs=tmp_path / "logs",
        state_dir=tmp_path / "state",
    )
    work.look(standing.now_ms)
    child = work._child
    assert child is not None
    child.kill()
    child.wait()
    child.returncode = 0
    assert work.look(standing.now_ms)
    assert work.run.state is RunState.DONE
    # When its beat is stopped in that moment
    work.release()
    # Then the files are recorded as loaded
    assert rig.book.remembered("a", [path])[path].run == run.id

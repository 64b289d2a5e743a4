"""The table of functions, from profiles of both kinds."""

from __future__ import annotations

import cProfile
import json
import re
import select
import selectors
import threading
import time
from concurrent.futures import thread
from pathlib import Path
from typing import Any

import pytest
from billiard import connection
from cassandra.io import libevreactor

from config.settings import load_settings
from producer.services.profiles import (
    _WAITS_IN_SAMPLES,
    _short,
    profile_text,
    read_profile,
    reporting_profiles,
)
from producer.text import count_text
from ringhaul.dataplane import connection as own_connection
from ringhaul.errors import UsageError


def write_calls(path: Path) -> None:
    """A profile of a thousand calls of a function of ours, and of 0.2 s of waiting."""
    profile = cProfile.Profile()
    profile.enable()
    for count in range(1000):
        count_text(count, "file")
    time.sleep(0.1)
    select.poll().poll(100)
    profile.disable()
    profile.dump_stats(path)


def write_samples(path: Path, *stacks: tuple[str, float]) -> None:
    """A profile such as py-spy writes: `m.py:7 a>m.py:9 b` is b, called by a, for some seconds."""
    names = sorted({name for stack, _ in stacks for name in stack.split(">") if name})
    frames = []
    for name in names:
        file, line, function = re.split("[: ]", name)
        frames.append({"name": function, "file": file, "line": int(line)})
    samples = [[names.index(name) for name in stack.split(">") if name] for stack, _ in stacks]
    weights = [seconds for _, seconds in stacks]
    document = {
        "shared": {"frames": frames},
        "profiles": [{"samples": samples, "weights": weights}],
    }
    path.write_text(json.dumps(document))


def test_samples_are_own_time_of_the_innermost(tmp_path: Path) -> None:
    path = tmp_path / "a.speedscope.json"
    a, b, wait = "m.py:7 a", "m.py:9 b", "threading.py:295 Condition.wait"
    # The time of a recursive function counts once; a waiting function is not busy, nor is its
    # caller.
    write_samples(
        path, (f"{a}>{b}", 3.0), (a, 1.0), (f"{a}>{b}>{a}>{b}", 0.5), (f"{a}>{wait}", 8.0), ("", 1)
    )
    sums: dict[str, list[float]] = {}
    for function in read_profile(path):
        own_s, total_s = sums.get(function.name, (0.0, 0.0))
        sums[function.name] = [own_s + function.own_s, total_s + function.total_s]
        assert function.waits is (function.name == wait)
    assert sums == {a: [1.0, 4.5], b: [3.5, 3.5], wait: [8.0, 8.0]}


def test_the_table_sums_all_files_and_begins_with_the_largest(tmp_path: Path) -> None:
    files = [tmp_path / "a.speedscope.json", tmp_path / "b.speedscope.json"]
    run, read, write = "m.py:1 run", "m.py:5 read", "m.py:9 write"
    write_samples(files[0], (f"{run}>{read}", 1.0), (f"{run}>{write}", 2.0))
    write_samples(
        files[1],
        (f"{run}>{write}", 4.5),
        (run, 0.5),
        (f"{run}>ringhaul/dataplane/connection.py:151 wait", 30.0),
    )
    assert profile_text(tmp_path, files).splitlines() == [
        f" profile  2 files in {tmp_path}: 8.0 s busy, 30.0 s waiting",
        "    own s  share   total s  function",
        "     6.50    81%      6.50  m.py:9 write",
        "     1.00    12%      1.00  m.py:5 read",
        "     0.50     6%      8.00  m.py:1 run",
        f" next     open {files[0]} at speedscope.app",
    ]


def test_calls_name_functions_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.prof"
    write_calls(path)
    functions = {function.name: function for function in read_profile(path)}
    (name,) = (name for name in functions if name.endswith(" count_text"))
    assert re.fullmatch(r"producer/text\.py:\d+ count_text", name), "below its folder"
    assert 0 < functions[name].own_s <= functions[name].total_s
    # A function that only waits is neither in the table nor in the sum
    waiting = {name for name, function in functions.items() if function.waits}
    assert waiting == {"built-in method time.sleep", "method 'poll' of 'select.poll' objects"}
    text = profile_text(tmp_path, [path])
    assert name in text and not any(name in text for name in waiting)
    busy_s = sum(function.own_s for function in functions.values() if not function.waits)
    waited_s = sum(functions[name].own_s for name in waiting)
    assert waited_s > 0.19
    assert text.splitlines()[0].endswith(f": {busy_s:.1f} s busy, {waited_s:.1f} s waiting")
    assert text.splitlines()[-1] == f" next     python -m pstats {path}"


def test_the_patterns_of_waiting_functions_match_functions() -> None:
    """The patterns name functions that may be renamed, in other packages and in ours."""
    for module, name in [
        (threading, "Condition.wait"),
        (selectors, "DefaultSelector.select"),
        (thread, "_worker"),
        (connection, "Connection._recv"),
        (libevreactor, "LibevLoop._run_loop"),
        (own_connection, "wait"),
    ]:
        function: Any = module
        for part in name.split("."):
            function = getattr(function, part)
        code = function.__code__
        file = _short(code.co_filename)
        assert _WAITS_IN_SAMPLES.fullmatch(f"{file}:{code.co_firstlineno} {name}"), file


def test_a_truncated_file_is_reported_and_the_others_count(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.prof", "b.prof", "c.prof", "d.speedscope.json")]
    for path in files[:2]:
        write_calls(path)
    files[0].write_bytes(files[0].read_bytes()[:-9])
    files[2].write_bytes(b"")
    files[3].write_text('{"profiles": [')
    lines = profile_text(tmp_path, files).splitlines()
    for line, name in zip(lines, ("a.prof", "c.prof", "d.speedscope.json"), strict=False):
        assert line == f" profile  {name} cannot be read: its process was killed"
    assert lines[3].startswith(f" profile  1 file in {tmp_path}: ")


def test_only_profiles_written_in_the_block_are_reported(tmp_path: Path) -> None:
    settings = load_settings(
        {"worker.profile": "cprofile", "worker.profile_dir": tmp_path / "profiles"}
    ).settings
    said: list[str] = []
    # Without a profile, a note says so
    with reporting_profiles(settings, said.append):
        assert said == []
    assert said.pop().startswith(f" profile  none in {tmp_path}/profiles: no unit was run")
    # An older profile is left out
    write_calls(tmp_path / "profiles" / "old.prof")
    with reporting_profiles(settings, said.append):
        write_calls(tmp_path / "profiles" / "new.prof")
        (tmp_path / "profiles" / ".newer.prof.part").write_bytes(b"half")
    assert said.pop().startswith(f" profile  1 file in {tmp_path}/profiles: ")
    # And the table is printed even if the block fails
    with pytest.raises(UsageError), reporting_profiles(settings, said.append):
        raise UsageError("ended")
    assert len(said) == 1

"""Sum up the profiles of worker processes: where their time went, for people.

The files are those of `tasks.profiling`, one for each process; here they become one table of
functions, those with the most time of their own first. Waiting is shown apart: it is most of the
time of a worker that is faster than its cluster, and nothing in the worker would shorten it.
"""

from __future__ import annotations

import json
import pstats
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import ringhaul
from config.settings import Settings
from producer.text import count_text
from ringhaul.plain_text import lines_of
from tasks.profiling import CPROFILE_SUFFIX, PYSPY_SUFFIX, prepare_profiles

#: Functions in the table; what comes after them seldom matters.
FUNCTIONS_SHOWN = 20

#: Functions that only wait. cProfile sees calls into C;
_WAITS_IN_CALLS = re.compile(
    r"method '(poll|acquire)' of .*|built-in method (select\.select|time\.sleep)"
)
#: py-spy sees the callers. It leaves out threads that are asleep where the system says which are.
_WAITS_IN_SAMPLES = re.compile(
    r"(threading\.py|selectors\.py|ringhaul/dataplane/connection\.py):\d+ (\w+\.)?(wait|select)"
    r"|concurrent/futures/thread\.py:\d+ _worker"
    r"|billiard/connection\.py:\d+ (\w+\.)?_recv"
    r"|cassandra/io/\w+\.py:\d+ (\w+\.)?_run_loop"
)


class FunctionTime(NamedTuple):
    """One function, in one file or in all."""

    name: str  #: `ringhaul/load/run.py:65 run_load_unit`
    own_s: float
    total_s: float  #: with everything it called
    waits: bool  #: and does nothing else


@contextmanager
def reporting_profiles(settings: Settings, say: Callable[[str], None]) -> Iterator[None]:
    """Report at the end of the block the profiles that were written in it.

    Raises `UsageError` if the profiles of the settings cannot be written here.
    """
    folder = prepare_profiles(settings)
    assert folder is not None, "a profile folder is set"
    before = profile_files(folder)
    try:
        yield
    finally:
        say(profile_text(folder, sorted(profile_files(folder) - before)))


def profile_files(folder: Path) -> set[Path]:
    """The profiles in a folder."""
    return {
        path for suffix in (CPROFILE_SUFFIX, PYSPY_SUFFIX) for path in folder.glob(f"[!.]*{suffix}")
    }


def profile_text(folder: Path, files: Iterable[Path]) -> str:
    """The table of functions, the largest own time first, under a line that sums up."""
    lines: list[str] = []
    read: list[Path] = []
    found: list[FunctionTime] = []
    for path in files:
        try:
            found += read_profile(path)
        except (OSError, ValueError, TypeError, EOFError, KeyError):
            lines.append(f" profile  {path.name} cannot be read: its process was killed")
        else:
            read.append(path)
    if not read:
        lines.append(f" profile  none in {folder}: no unit was run, or the worker's log says why")
        return lines_of(lines)
    waited_s = sum(function.own_s for function in found if function.waits)
    functions = _summed(function for function in found if not function.waits)
    busy_s = sum(function.own_s for function in functions)
    lines.append(
        f" profile  {count_text(len(read), 'file')} in {folder}:"
        f" {busy_s:.1f} s busy, {waited_s:.1f} s waiting"
    )
    lines.append(f" {'own s':>8}  {'share':>5}  {'total s':>8}  function")
    lines += [
        f" {function.own_s:>8.2f}  {function.own_s / (busy_s or 1):>5.0%}"
        f"  {function.total_s:>8.2f}  {function.name}"
        for function in functions[:FUNCTIONS_SHOWN]
    ]
    sampled = read[0].name.endswith(PYSPY_SUFFIX)
    closer = f"open {read[0]} at speedscope.app" if sampled else f"python -m pstats {read[0]}"
    lines.append(f" next     {closer}")
    return lines_of(lines)


def read_profile(path: Path) -> list[FunctionTime]:
    """The functions of one file. Raises various errors for one that is damaged."""
    return _read_samples(path) if path.name.endswith(PYSPY_SUFFIX) else _read_calls(path)


def _read_calls(path: Path) -> list[FunctionTime]:
    """A file of cProfile."""
    functions = []
    stats = pstats.Stats(str(path)).stats  # type: ignore[attr-defined]  # older than its types
    for (file, line, name), (_, _, own_s, total_s, _) in stats.items():
        built_in = file == "~"  # `<method 'recv' of '_socket.socket' objects>`
        label = name.strip("<>") if built_in else f"{_short(file)}:{line} {name}"
        waits = _WAITS_IN_CALLS.fullmatch(label) is not None
        functions.append(FunctionTime(label, own_s, total_s, waits))
    return functions


def _read_samples(path: Path) -> list[FunctionTime]:
    """A file of py-spy in the format of speedscope: stacks, outermost first, with seconds."""
    document = json.loads(path.read_bytes())
    names = [
        f"{_short(frame['file'])}:{frame['line']} {frame['name']}"
        for frame in document["shared"]["frames"]
    ]
    waits = [_WAITS_IN_SAMPLES.fullmatch(name) is not None for name in names]
    functions = []
    for thread in document["profiles"]:
        for stack, seconds in zip(thread["samples"], thread["weights"], strict=True):
            if not stack:
                continue
            innermost = stack[-1]
            functions.append(FunctionTime(names[innermost], seconds, seconds, waits[innermost]))
            if waits[innermost]:
                continue  # its caller is not busy meanwhile
            callers = set(stack) - {innermost}
            functions += [FunctionTime(names[frame], 0.0, seconds, False) for frame in callers]
    return functions


def _summed(functions: Iterable[FunctionTime]) -> list[FunctionTime]:
    """One for each name, the largest own time first."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for function in functions:
        sums[function.name][0] += function.own_s
        sums[function.name][1] += function.total_s
    summed = [FunctionTime(name, own_s, total_s, False) for name, (own_s, total_s) in sums.items()]
    return sorted(summed, key=lambda function: (-function.own_s, function.name))


def _short(file: str) -> str:
    """A module's path below the folder that it was imported from."""
    folders = [Path(ringhaul.__file__).parents[1], *map(Path, filter(None, sys.path))]
    path = Path(file)
    inside = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    return str(min(inside, key=lambda short: len(short.parts), default=path))

"""What is in the places where commands and workers keep something for a while."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

from ringhaul.run_folder import remove_dead

#: Beside other entries of TMPDIR, these few stay: locks, one for each worker that ran at the same
#: time, which the next ones use again; and what Java keeps of itself.
STAYS = re.compile(r"ringhaul-worker-\d+\.lock|hsperfdata_\w+")
#: Folders of a state folder in which nothing survives its process. (Files in `spool` do: they are
#: the inputs of jobs that can be resumed.)
PLACES = ("run/*", "spool/*/", "spill/*", "sort/*")
#: How long the worker of a killed command may take to notice that.
PATIENCE_S = 30.0


def entries(temporary: Path, states: Iterable[Path]) -> set[Path]:
    """Return all entries of the temporary folder, and those of the places in state folders."""
    found = {path for path in temporary.iterdir() if not STAYS.fullmatch(path.name)}
    for state in states:
        for place in PLACES:
            found.update(state.glob(place))
    return found


def left_behind(before: set[Path], temporary: Path, states: Iterable[Path]) -> set[Path]:
    """Return what is there in addition, once everything had time to end.

    What killed processes left in a run folder is removed first, as the next command would do.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        for state in states:
            remove_dead(state)
        found = entries(temporary, states) - before
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)

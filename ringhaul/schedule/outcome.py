"""Decide at the end of a run whether its files are loaded, caused its failure, or neither.

A step may fail because of its files' content, or because the cluster, the broker or a worker was
unavailable, or because a worker's host cannot see this host's files. The first would fail again;
in the other cases, which have the exit codes that are retried, the files are not the cause. Then
the files' records stay unchanged, and the next run of the schedule waits for a pause that grows
with each such failure in a row.

Exit codes are not conclusive: a damaged file also ends with such a code, and so does a file that is
too large for a worker. Such a file must not block others. So after a few such failures the files
are tried alone, in turn. A file that fails alone although the run before it succeeded is the cause
after all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ringhaul.errors import EXIT_CRASH, EXIT_FATAL
from ringhaul.schedule.arrivals import ALONE, Remembered, is_alone, remember
from ringhaul.schedule.runs import Run, RunState, Step

#: Failures in a row that were not caused by the files, until these are tried alone. With the pauses
#: of the default backoff, one and two minutes, an outage of three minutes does not lead to that.
TOGETHER_TRIES = 3
#: Exit codes of trouble with the cluster, the broker or a host, or of a defect. A code below 0, a
#: signal, counts likewise.
_NOT_THE_FILES = frozenset({EXIT_FATAL, EXIT_CRASH})


def files_end(
    run: Run, known: Mapping[str, Remembered], now_ms: int
) -> tuple[Run, dict[str, Remembered]]:
    """Return the run with its `troubles` updated, and the records of its files, after a step ended.

    `known`: the files' records so far. Nothing changes for a run without files, or if the step does
    not concern them.
    """
    index = run.files_step
    if index is None:
        return run, {}
    last = max(i for i, step in enumerate(run.steps) if step.ended_ms is not None)
    if run.state is not RunState.FAILED:
        if last != index:
            return run, {}
        return replace(run, troubles=0), remember(run.files, run.id, now_ms, loaded=True)
    if last > index:
        return run, {}  # the files are loaded
    if _is_to_blame(run.steps[last]):
        return replace(run, troubles=0), remember(run.files, run.id, now_ms, loaded=False)
    after = replace(run, troubles=run.troubles + 1)
    failed = remember(run.files, run.id, now_ms, loaded=False)
    was_alone = is_alone(run.files[0].listed, known)
    if was_alone and run.troubles == 0:
        return after, failed
    if was_alone or after.troubles >= TOGETHER_TRIES:
        return after, {path: replace(file, state=ALONE) for path, file in failed.items()}
    return after, {}


def _is_to_blame(step: Step) -> bool:
    assert step.code is not None
    return step.code >= 0 and step.code not in _NOT_THE_FILES

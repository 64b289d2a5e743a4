"""What the end of a run says of the files that have arrived for it: loaded, to blame, or neither.

A step may fail for what its files hold, or because the cluster, the broker or a worker was away,
or a worker's host does not see what this one sees. The first is the same at the next try; the
second is nothing that the files are to blame for. Its exit codes are those that are tried again.
Then the files stay as they were, and no run of the schedule begins before a pause that grows with
each such end in a row.

The codes do not tell all: a damaged file ends with one of them, too, and so does a file that is too
large for a worker. Such a file must not hold up others for ever. So after a few such ends the files
are tried alone, each in its turn. One that fails alone although the run before it went well is to
blame after all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ringhaul.errors import EXIT_CRASH, EXIT_FATAL
from ringhaul.schedule.arrivals import ALONE, Remembered, is_alone, remember
from ringhaul.schedule.runs import Run, RunState, Step

#: Ends in a row that nobody is to blame for, until the files are tried alone. With the pauses of
#: the default backoff, a minute and two, an outage of three minutes goes by without that.
TOGETHER_TRIES = 3
#: The cluster, the broker or a host was not as it should be, or there is a defect; below 0: a
#: signal.
_NOT_THE_FILES = frozenset({EXIT_FATAL, EXIT_CRASH})


def files_end(
    run: Run, known: Mapping[str, Remembered], now_ms: int
) -> tuple[Run, dict[str, Remembered]]:
    """After a step has ended: the run with its `troubles`, and what to remember of its files.

    `known`: what was remembered of them before. Nothing changes for a run without files, and for a
    step that says nothing of them.
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
        return run, {}  # loaded they are
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

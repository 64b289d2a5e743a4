"""What is in the places where commands and workers keep something for a while."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

import redis

from ringhaul.ledger import keys
from ringhaul.ledger.states import JobState
from ringhaul.run_folder import remove_dead

#: Beside other entries of TMPDIR, these few stay: locks, one for each worker that ran at the same
#: time, which the next ones use again; and what Java keeps of itself.
STAYS = re.compile(r"ringhaul-worker-\d+\.lock|hsperfdata_\w+")
#: Folders of a state folder in which nothing survives its process. (Files in `spool` and `spill`
#: do: inputs of jobs that can be resumed, and results that can be printed again.)
PLACES = ("run/*", "spool/*/", "sort/*")
#: How long the worker of a killed command may take to notice that.
PATIENCE_S = 30.0
#: Begins the names of queues, and of what kombu keeps about them.
_MQ = "ringhaul:mq:"
#: Keys in Redis without a TTL that are about no job or schedule: there is one of each, however many
#: commands run. (Messages stay in `unacked` until kombu's visibility timeout.)
SHARED_KEYS = re.compile(
    rf"{keys.openings_key('')}.+|{_MQ}_kombu\.binding.+|{_MQ}unacked.*|"
    + "|".join(
        re.escape(key)
        for key in (
            *(keys.JOBS, keys.QUEUES, keys.RUNNING, keys.OPEN, keys.WORKERS, keys.KEEPERS),
            *(keys.SLOTS, keys.LOOKS, keys.BEATS, keys.TOTALS),
        )
    )
)
_OF_JOB = re.compile(r"ringhaul:\{(?P<job>[^}]+)\}:.+")


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


def lasting_keys(url: str) -> set[str]:
    """Return the keys in Redis that would stay for ever although no job needs them, once workers
    had time to end what they do.

    While a job runs, its keys and its messages in queues have no TTL.
    """
    until = time.monotonic() + PATIENCE_S
    with redis.Redis.from_url(url, decode_responses=True) as client:
        while True:
            found = _lasting_keys(client)
            if not found or time.monotonic() > until:
                return found
            time.sleep(0.1)


def _lasting_keys(client: redis.Redis) -> set[str]:
    running, found = False, set()
    names = [key for key in client.scan_iter(count=1000) if not SHARED_KEYS.fullmatch(key)]
    pipeline = client.pipeline(transaction=False)
    for key in names:
        pipeline.ttl(key)
    for key, ttl in zip(names, pipeline.execute(), strict=True):
        if ttl != -1:
            continue
        of_job = _OF_JOB.fullmatch(key)
        state = of_job and client.hget(keys.job_key(of_job["job"], "meta"), "state")
        if state == JobState.RUNNING:
            running = True
        else:
            found.add(key)
    # Messages of units wait in the queues of jobs that run.
    return {key for key in found if not (running and key.startswith(_MQ))}

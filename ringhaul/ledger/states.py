"""The states of a job and the transitions between them.

The scripts change the state; this table says which transitions exist, and tests check the scripts
against it.

    RUNNING -> COMPLETE     every unit is committed, no record was rejected
            -> PARTIAL      every unit is committed, some records were rejected, or some token
                            ranges skipped
            -> QUARANTINED  every unit is committed or quarantined, at least one quarantined
            -> STOPPED      more records were rejected than the job allows, in the committed
                            units or in a single unfinished unit
            -> CANCELLED    a user cancelled it
            -> FAILED       it cannot continue: a unit failed too often, or its source did

    STOPPED, CANCELLED, FAILED, QUARANTINED -> RUNNING    resume, with the next epoch
"""

from enum import StrEnum


class JobState(StrEnum):
    """The state of a job; the value is what Redis stores."""

    RUNNING = "RUNNING"  #: Units are being split, claimed and committed.
    COMPLETE = "COMPLETE"  #: All records are in the table.
    PARTIAL = "PARTIAL"  #: All records are in the table or among the rejects; of a read: all
    #: but the token ranges that are listed as missing.
    QUARANTINED = "QUARANTINED"  #: Some units kept killing their worker and were quarantined.
    STOPPED = "STOPPED"  #: Too many rejects.
    CANCELLED = "CANCELLED"  #: Ended by a user.
    FAILED = "FAILED"  #: Ended by an error that retries did not cure.


#: States that `resume` accepts; the others are final.
RESUMABLE = frozenset({JobState.STOPPED, JobState.CANCELLED, JobState.FAILED, JobState.QUARANTINED})

#: States whose figures never change again. In STOPPED, CANCELLED and FAILED a unit that was in
#: progress may still be committed while its worker winds down.
SETTLED = frozenset({JobState.COMPLETE, JobState.PARTIAL, JobState.QUARANTINED})

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.RUNNING: frozenset(JobState) - {JobState.RUNNING},
    JobState.COMPLETE: frozenset(),
    JobState.PARTIAL: frozenset(),
    JobState.QUARANTINED: frozenset({JobState.RUNNING}),
    JobState.STOPPED: frozenset({JobState.RUNNING}),
    JobState.CANCELLED: frozenset({JobState.RUNNING}),
    JobState.FAILED: frozenset({JobState.RUNNING}),
}


def may_move(before: JobState, after: JobState) -> bool:
    """Return whether a job seen in `before` may next be seen in `after` (staying counts)."""
    return before == after or after in TRANSITIONS[before]


def final_state(
    *, rejected_records: int, quarantined_units: int, missing_ranges: int = 0
) -> JobState:
    """Return the state in which a job ends once no unit is left."""
    if quarantined_units:
        return JobState.QUARANTINED
    return JobState.PARTIAL if rejected_records or missing_ranges else JobState.COMPLETE

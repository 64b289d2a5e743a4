"""The states of a job and the moves between them.

The scripts move a job; this table says which moves exist. The tests hold the scripts to it.

    RUNNING -> COMPLETE     every unit is committed, no record was rejected
            -> PARTIAL      every unit is committed, some records were rejected, or some token
                            ranges left out
            -> QUARANTINED  every unit is committed or given up, at least one is given up
            -> STOPPED      more records were rejected than the job allows, in the committed
                            units or in one that is not done
            -> CANCELLED    a user asked for it
            -> FAILED       it cannot go on: a unit failed too often, or its source did

    STOPPED, CANCELLED, FAILED, QUARANTINED -> RUNNING    resume, with the next epoch
"""

from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands; the value is what Redis holds."""

    RUNNING = "RUNNING"  #: Units are being split, claimed and committed.
    COMPLETE = "COMPLETE"  #: All records are in the table.
    PARTIAL = "PARTIAL"  #: All records are in the table or among the rejects; of a read: but for
    #: token ranges that are listed as missing.
    QUARANTINED = "QUARANTINED"  #: Some units kept killing their worker and were given up.
    STOPPED = "STOPPED"  #: Too many rejects.
    CANCELLED = "CANCELLED"  #: Ended by a user.
    FAILED = "FAILED"  #: Ended by an error that trying again did not cure.


#: States that `resume` leaves; the others are over for good.
RESUMABLE = frozenset({JobState.STOPPED, JobState.CANCELLED, JobState.FAILED, JobState.QUARANTINED})

#: States whose figures never change again. In STOPPED, CANCELLED and FAILED a unit that was
#: being worked on may still be committed while its worker winds down.
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
    """Whether a job in `before` may next be seen in `after` (staying counts as a move)."""
    return before == after or after in TRANSITIONS[before]


def final_state(*, rejected_records: int, bad_units: int, missing_ranges: int = 0) -> JobState:
    """The state in which a job ends by itself once no unit is left."""
    if bad_units:
        return JobState.QUARANTINED
    return JobState.PARTIAL if rejected_records or missing_ranges else JobState.COMPLETE

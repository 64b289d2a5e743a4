"""Every key in Redis, its type and its lifetime. No other module names a ledger key.

The keys of one job share the hash tag `{job}`, so that a Redis Cluster keeps them on one node and
a script may access them all:

    ringhaul:{job}:meta          hash    state, epoch, counts, limits, times, the producer's labels,
                                         and what `extras`, `tot` and `lat` should hold: see audit
    ringhaul:{job}:spec          string  the job's description, JSON, opaque here
    ringhaul:{job}:units:<b>     hash    unit -> its spec; b = unit // 256
    ringhaul:{job}:results:<b>   hash    unit -> result of the attempt that counted
    ringhaul:{job}:extras        hash    unit -> what it leaves besides numbers: rejected records,
                                         parts written, a partial table; opaque here. Also, until
                                         a resume, of a unit that alone had too many rejects
    ringhaul:{job}:cursors       hash    unit -> durable position of its attempts; opaque here
    ringhaul:{job}:limited       hash    unit -> rows that it has of the LIMIT that all units share
    ringhaul:{job}:done          bitmap  bit n: unit n is committed
    ringhaul:{job}:ends          string  4 bytes for each unit, big-endian: ms from the creation of
                                         the job to the unit's commit; 0: not known
    ringhaul:{job}:tot           hash    field -> sum over the committed units
    ringhaul:{job}:lat           hash    latency bucket -> requests, over the committed units
    ringhaul:{job}:issued        zset    unit -> ms at which it was handed out for publishing
    ringhaul:{job}:due           zset    unit -> ms before which it must not be issued again
    ringhaul:{job}:lease         zset    unit -> ms at which its lease ends
    ringhaul:{job}:owner         hash    unit -> token of the attempt that holds the lease
    ringhaul:{job}:begun         zset    unit -> ms at which the attempt that holds the lease began
    ringhaul:{job}:live          hash    unit -> "rows,rejected,bytes" so far, not in `tot`
    ringhaul:{job}:starts        hash    unit -> attempts started and not given back
    ringhaul:{job}:fails         hash    unit -> times given back with blame
    ringhaul:{job}:suspects      zset    unit -> not before; units that lost two workers
    ringhaul:{job}:losses        hash    unit -> where its lost attempts were, JSON lines;
                                         unit:by -> their tokens; unit:least -> how many records
                                         were processed together at the last of them
    ringhaul:{job}:bad           hash    unit -> why it was quarantined
    ringhaul:{job}:rate          hash    token buckets of the job's pace
    ringhaul:{job}:samples       list    figures over time, JSON lists; `SAMPLES_MAX` of some 80
                                         bytes each at most, 40 KB; see `history.Sample`
    ringhaul:{job}:sampling      hash    when and how often samples are taken, the workers and hosts
                                         then (`names`), and `lat` at the last one
    ringhaul:{job}:events        list    what happened to the job, JSON objects; `EVENTS_MAX` of
                                         some 150 bytes each, 60 KB (at most 140 KB)

A running job's keys have no TTL. After its end they live for `JOB_TTL_S`; a resume removes the TTL
again. The history (`ends`, `samples`, `sampling`, `events`) of a running job lives for `JOB_TTL_S`
after its last change, since a worker of an older version, which would not set its TTL, may end the
job.
`rate` lives for `RATE_TTL_S` after its last use. Shared by all jobs:

    ringhaul:jobs                zset    job -> ms of creation; jobs whose keys are gone are dropped
                                         from it when jobs are listed
    ringhaul:queues              zset    job with its own workers -> ms at which they were last
                                         alive; dropped with its queue when its keys are gone
    ringhaul:running             set     jobs that the sweep looks at
    ringhaul:open                set     one member for each open unit of the jobs that run and
                                         are not paused, `OPEN_UNITS_MAX` at most
    ringhaul:workers             zset    "host:pid:slots:queues" -> ms until which it is alive
    ringhaul:keepers             zset    "host:pid:slots:queues" -> ms until which it is one of the
                                         workers that sweep for all, `KEEPERS_MAX` at most
    ringhaul:looks               set     preflight requests that commands wait for
    ringhaul:look:<name>         string  the request, JSON; lives for `LOOK_TTL_S`
    ringhaul:look:<name>:seen    hash    worker -> its answer, JSON; lives for `LOOK_TTL_S`
    ringhaul:openings:<name>     zset    token -> ms at which a session opening expires
    ringhaul:beats               zset    "host:pid" -> ms until which a beat is alive
    ringhaul:beats:problems      hash    "host:pid" -> why this beat cannot read its schedule file;
                                         lives for a day after the last change
    ringhaul:slots               string  when they were added up (ms), then a line for each set of
                                         queues: the slots of the living workers that consume it
    ringhaul:totals              hash    "kind:figure" -> its sum over all jobs of this kind, with
                                         the forgotten jobs; for metrics, see totals.py

Per schedule, with `SCHEDULE_TTL_S` after the last run; for the state after the last look:

    ringhaul:schedule:{name}:state    hash  settled_ms (due times up to it are settled), paused_ms,
                                            since:<timing>, seen:<timing> (ms at which a beat
                                            first and last saw it);
                                            run, owner, lease_ms of the run that has not ended;
                                            wanted_ms (when a run was requested);
                                            ended_run, ended_state, success_ms, failures (how runs
                                            ended lately); acked_run (the failed run that somebody
                                            has acknowledged);
                                            troubles, wait_ms (consecutive failed runs that were
                                            not their files' fault; none starts before)
    ringhaul:schedule:{name}:runs     zset  run -> ms at which it started or was skipped
    ringhaul:schedule:{name}:records  hash  run -> its record, JSON
    ringhaul:schedule:{name}:files    hash  path -> what was loaded of it, JSON

Units are packed 256 to a hash because Redis keeps a hash of up to 512 short fields (values of up to
64 bytes) as one flat listpack: about 40 bytes a unit instead of about 120 as separate keys.
"""

import re

from ringhaul.errors import UsageError

UNITS_PER_BUCKET = 256
JOB_TTL_S = 7 * 24 * 3600
RATE_TTL_S = 3600
#: How soon a unit is issued again whose job reaches its rate limit without it.
ENOUGH_DELAY_MS = 1000
#: Per unit: some 100 losses. A later loss counts as a start, so that the unit ends.
LOSSES_BYTES_MAX = 32 * 1024
#: Samples of a job, taken every `SAMPLE_EVERY_MS` at first; a full list keeps every second sample,
#: and from then on the pause between two samples is twice as long.
SAMPLES_MAX = 500
SAMPLE_EVERY_MS = 10_000
#: Events of a job: the first `EVENTS_FIRST` and the newest are kept. Among the last
#: `EVENTS_COMPARED`, equal events about units and nodes become a single event with a count.
EVENTS_MAX = 400
EVENTS_FIRST = 50
EVENTS_COMPARED = 8
EVENT_TEXT_BYTES_MAX = 200
#: Longer than a year: a schedule that runs once a year keeps its history.
SCHEDULE_TTL_S = 400 * 24 * 3600

#: Longer than any command waits.
LOOK_TTL_S = 60

JOBS = "ringhaul:jobs"
QUEUES = "ringhaul:queues"
RUNNING = "ringhaul:running"
OPEN = "ringhaul:open"
WORKERS = "ringhaul:workers"
KEEPERS = "ringhaul:keepers"
SLOTS = "ringhaul:slots"
LOOKS = "ringhaul:looks"
BEATS = "ringhaul:beats"
BEAT_PROBLEMS = "ringhaul:beats:problems"
TOTALS = "ringhaul:totals"

#: A job's meta key, for scripts that go over all jobs: `%s` is the job id.
META_PATTERN = "ringhaul:{%s}:meta"

#: Keys of a job that exist once and last as long as it does, by the last part of their name.
LASTING = (
    "meta",
    "spec",
    "extras",
    "cursors",
    "limited",
    "done",
    "ends",
    "tot",
    "lat",
    "samples",
    "sampling",
    "events",
)
#: Keys of a job that exist once and are about units that are not done: empty once all are.
UNDONE = (
    "issued",
    "due",
    "lease",
    "owner",
    "begun",
    "live",
    "starts",
    "fails",
    "suspects",
    "losses",
    "bad",
)
SINGLE = (*LASTING, *UNDONE)
#: Keys of a job that exist once for every `UNITS_PER_BUCKET` units.
BUCKETED = ("units", "results")

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def job_key(job: str, part: str) -> str:
    """Return the key of `job` that holds `part`.

    Raises:
      UsageError: the job id has characters that cannot be part of a key.
    """
    if not _JOB_ID.fullmatch(job):
        raise UsageError(f'"{job}" is not a job id; job ids look like ld-7f3a9c')
    return f"ringhaul:{{{job}}}:{part}"


def bucket_key(job: str, part: str, unit: int) -> str:
    """Return the key of `job` that holds `part` of `unit`."""
    return job_key(job, f"{part}:{unit // UNITS_PER_BUCKET}")


def look_key(name: str) -> str:
    """Return the key of a preflight request."""
    return f"ringhaul:look:{name}"


def seen_key(name: str) -> str:
    """Return the key of the workers' answers to a preflight request."""
    return f"ringhaul:look:{name}:seen"


def openings_key(name: str) -> str:
    """Return the key that counts session openings to the cluster `name`."""
    return f"ringhaul:openings:{name}"


def schedule_key(name: str, part: str) -> str:
    """Return the key of the schedule `name` that holds `part`; the file's reader checks names."""
    return f"ringhaul:schedule:{{{name}}}:{part}"

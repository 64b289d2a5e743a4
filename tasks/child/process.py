"""State of one pool process: its Cassandra session, its ledger, its prepared statements.

The session is opened in `worker_process_init`, after the fork. Celery logs and swallows errors of
that handler and lets the child serve without a session, so the failure is kept here: the child
takes no units until a session is open, and logs why.

Session openings are throttled over all hosts (a semaphore in Redis, plus jitter): a fleet that
starts at once would otherwise open thousands of connections in the same second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import wait
from typing import TYPE_CHECKING, TypeVar

from cassandra import InvalidRequest, Unauthorized
from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from config.errors import ConfigError
from config.settings import Settings
from ringhaul.cluster.connect import close_session, open_session, renew_pools
from ringhaul.cluster.errors import translate_error
from ringhaul.dataplane.pool import ConnectionPool
from ringhaul.errors import RinghaulError, Terminal, Transient
from ringhaul.ledger.openings import Openings
from ringhaul.load.statement import Statements
from ringhaul.load.write import RequestBounds, Target
from ringhaul.optional_pandas import put_off_pandas
from tasks.child.throttle import JobThrottle
from tasks.cluster_settings import cluster_config
from tasks.connect import open_ledger
from tasks.kinds import Job, job_of
from tasks.node_name import worker_host
from tasks.storage_settings import use_storage

if TYPE_CHECKING:
    from ringhaul.cql.types import CqlType
    from ringhaul.records.job import LoadJob
    from ringhaul.scan.job import ReadJob
    from ringhaul.scan.pages import PageReader
    from ringhaul.statements.exec import Statement
    from ringhaul.statements.job import StatementJob
    from ringhaul.streaming.delivery import Delivery

OfKind = TypeVar("OfKind", bound="LoadJob | ReadJob | StatementJob")

log = logging.getLogger(__name__)

#: A child waits this long for its turn to open, then opens anyway: the throttle protects the
#: cluster from a storm, but must not lock out a fleet because Redis lost track of a holder.
OPENING_WAIT_S = 20.0
#: The semaphore drops a holder that died after this time.
OPENING_TTL_S = 60.0
#: Number of jobs whose parsed spec and throttle credit a child keeps.
JOBS_KEPT = 4


class SessionUnavailable(Transient):
    """The child has no session and could not open one."""


class WrongCluster(Terminal):
    """This worker is connected to another cluster than the job's."""


class Child:
    """The state of one pool process. Created after the fork, never shared."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.name = f"{worker_host()}:{os.getpid()}"
        self.ledger = open_ledger(settings)
        self.bounds = RequestBounds(
            requests_in_flight_max=settings.load.in_flight_requests_max,
            bytes_in_flight_max=settings.load.in_flight_bytes_max,
            retries_max=settings.load.retries_max,
            request_timeout_s=settings.cluster.request_timeout_s,
            batch_rows_max=settings.load.batch_rows_max,
        )
        self._session: Session | None = None
        self._plane: ConnectionPool | None = None
        #: What the modules of the kinds of jobs keep from unit to unit; None: not opened yet.
        self.reader: PageReader | None = None
        self.delivery: tuple[str, Delivery] | None = None  #: behind a key of its use
        self._prepared: dict[str, PreparedStatement] = {}
        self.statements: dict[tuple[str, tuple[tuple[str, CqlType], ...]], Statement] = {}
        self._jobs: OrderedDict[str, tuple[Job, int]] = OrderedDict()  # with its created_ms
        self._throttles: OrderedDict[str, JobThrottle] = OrderedDict()

    def session(self) -> Session:
        """Return the session, opened on first use. Raises `SessionUnavailable` with the reason."""
        if self._session is None:
            try:
                with self._turn():
                    self._session = open_session(cluster_config(self.settings))
            except (RinghaulError, ConfigError) as error:  # such as a password file that is gone
                raise SessionUnavailable(str(error)) from error
            log.info("session opened", extra={"action": "session_opened", "worker": self.name})
        return self._session

    def begin_unit(self) -> None:
        """Ensure a session and reopen its broken connections. Raises as `session` does."""
        wait(renew_pools(self.session()), self.settings.cluster.connect_timeout_s)

    def target(self, statements: Statements, keyspace: str) -> Target:
        """Return the write target for these statements, built on this process's open connections.

        Raises as `session` and `prepare` do.
        """
        session = self.session()
        if keyspace not in session.cluster.metadata.keyspaces:
            # Created a moment ago. The driver delays its reaction to schema events, so that a fleet
            # does not query all at once; but without the keyspace a row's replicas are unknown.
            session.cluster.refresh_keyspace_metadata(keyspace)
        statics = None if statements.statics is None else self.prepare(statements.statics)
        rows = self.prepare(statements.rows)
        return Target(session, self.plane(), rows, keyspace, statics)

    def plane(self) -> ConnectionPool:
        """This process's connections to the nodes."""
        if self._plane is None:
            self._plane = ConnectionPool(
                self.session(),
                requests_max=self.bounds.requests_of("pipeline"),
                far_max=self.bounds.far_requests_of("pipeline"),
                bytes_max=self.bounds.bytes_in_flight_max,
            )
        return self._plane

    @property
    def in_flight(self) -> int:
        """The unanswered requests on this process's wires."""
        return 0 if self._plane is None else self._plane.in_flight

    def take_rests(self) -> list[str]:
        """Return which nodes were left alone since the last call, and why."""
        return [] if self._plane is None else self._plane.take_rests()

    def prepare(self, statement: str) -> PreparedStatement:
        """Return a statement, prepared once per session.

        Raises `ClusterError` (terminal) if the table no longer matches the job, or the user may
        not write to it.
        """
        if statement not in self._prepared:
            try:
                self._prepared[statement] = self.session().prepare(statement)
            except (InvalidRequest, Unauthorized) as error:
                where = cluster_config(self.settings).where
                raise translate_error(
                    error, where=where, user=self.settings.cluster.user
                ) from error
        return self._prepared[statement]

    def job(self, job_id: str) -> Job:
        """Return the spec of a job, read from the ledger once and cached for its next units."""
        return self._job(job_id)[0]

    def job_as(self, job_id: str, kind: type[OfKind]) -> OfKind:
        """Return the spec of a job whose units only a task of this kind runs."""
        job = self.job(job_id)
        if not isinstance(job, kind):
            raise TypeError(f"{job_id} is a {job.kind}, and its unit came to another task")
        return job

    def created_ms(self, job_id: str) -> int:
        """Return when the job was created whose spec `job` returns (ms since the epoch)."""
        return self._job(job_id)[1]

    def keeps(self, job_id: str) -> bool:
        """Return whether the spec of the job is cached."""
        return job_id in self._jobs

    def forget(self, job_id: str) -> None:
        """Drop everything cached for a job, because its id now belongs to another job."""
        self._jobs.pop(job_id, None)
        self._throttles.pop(job_id, None)

    def _job(self, job_id: str) -> tuple[Job, int]:
        if job_id not in self._jobs:
            made = self.ledger.job_made(job_id)
            self._jobs[job_id] = (job_of(made.spec), made.created_ms)
            if len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(job_id)
        return self._jobs[job_id]

    def throttle(self, job_id: str) -> JobThrottle:
        """Return the job's throttle. It is kept between units, so that no credit is lost."""
        if job_id not in self._throttles:
            self._throttles[job_id] = JobThrottle(self.ledger, job_id)
            if len(self._throttles) > JOBS_KEPT:
                self._throttles.popitem(last=False)
        self._throttles.move_to_end(job_id)
        return self._throttles[job_id]

    def check_cluster(self, cluster_name: str) -> None:
        """Raise `WrongCluster` unless the job is for the cluster of this child's session."""
        mine = self.session().cluster.metadata.cluster_name
        if mine != cluster_name:
            raise WrongCluster(
                f"the job is for cluster {cluster_name!r}, this worker's settings name "
                f"{mine!r} (cluster.contact_points, or cluster.secure_connect_bundle)"
            )

    def close(self, timeout_s: float = 5.0) -> None:
        """Close the session within `timeout_s`; a pool child exits without running `atexit`."""
        if self._plane is not None:
            self._plane.close()
        session, self._session, self._plane = self._session, None, None
        self.reader = None
        if session is not None and not close_session(session, timeout_s):
            log.warning("session did not close within %s s", timeout_s)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for this child's turn to open a session, and hold it."""
        worker = self.settings.worker
        time.sleep(random.uniform(0, worker.session_jitter_s))
        openings = Openings(self.ledger.caller)
        cluster = self.settings.cluster
        name = str(cluster.secure_connect_bundle or ",".join(cluster.contact_points))
        token = openings.acquire(
            name, worker.session_openings_max, int(OPENING_TTL_S * 1000), OPENING_WAIT_S
        )
        try:
            yield
        finally:
            if token is not None:
                openings.release(name, token)


_child: Child | None = None


def start_child(settings: Settings) -> Child:
    """Replace state inherited from the parent by new state of this process."""
    global _child
    use_storage(settings)
    if not settings.transform.allowed:
        put_off_pandas()
    _child = Child(settings)
    return _child


def current_child(settings: Settings) -> Child:
    """Return this process's state; created here if no signal did (the `solo` pool)."""
    return _child if _child is not None else start_child(settings)

"""Celery's settings, each with its reason.

Celery with Redis loses and repeats messages in known ways (docs/adr). Here a message is only a hint
that a unit may be claimed, and the ledger decides. So the broker's cleverness (requeueing lost
tasks, results, priorities) is off, and everything that could let a client hang or a worker hoard
messages is bounded.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from config.broker import (
    HEALTH_CHECK_INTERVAL_S,
    SOCKET_CONNECT_TIMEOUT_S,
    SOCKET_TIMEOUT_S,
    broker_tls,
    broker_url,
)
from config.cores import usable_cores
from config.sections import Settings

#: Queue consumed by every worker except those dedicated to one command.
QUEUE_LOAD = "ringhaul.load"

#: Twice the budget of a child's peak (300 MB): only a leak gets there. Celery checks after a unit.
MEMORY_PER_CHILD_KB_MAX = 600_000

#: Command line arguments of every worker. Gossip and mingle only serve features that are not used
#: here, and with them each worker's revoke list swells the broker's reply queues.
WORKER_ARGUMENTS = ("--without-gossip", "--without-mingle")

#: No pid file: beat would write it to the current folder, and a container restarted after a crash
#: would find one with its own pid.
BEAT_ARGUMENTS = ("--pidfile=",)

#: Options of Flower, where our defaults differ: its own listen on every interface, let people stop
#: workers and run any task, and keep 100,000 tasks (about 600 MB). Flower's environment variables,
#: its settings file and its command line override these.
FLOWER_DEFAULTS: Mapping[str, str | int | bool] = {
    "address": "127.0.0.1",
    "read_only": True,
    "max_tasks": 20_000,
    "max_workers": 500,
    "purge_offline_workers": 300,
    # Pages show the arguments of a task: the job and the unit.
    "tasks_columns": "name,kwargs,state,result,runtime,received,worker,uuid",
}

#: Environment variables that billiard, Celery and Arrow's allocator read when they are imported, so
#: they are set before. SIGTERM stops a worker softly (units are released, not lost). The list of
#: revoked tasks, which is never used, holds 1,000 entries instead of 50,000. Free memory returns to
#: the system after a second instead of 10 ms: a unit runs longer than that, and fresh pages for
#: its next row group cost an unload to Parquet a tenth of its CPU (ADR 0011).
WORKER_ENVIRONMENT = {
    "REMAP_SIGTERM": "SIGQUIT",
    "CELERY_WORKER_REVOKES_MAX": "1000",
    "MIMALLOC_PURGE_DELAY": "1000",
}


def dc_queue(name: str) -> str:
    """Return the queue of a data centre; workers with that `cluster.local_dc` consume it too."""
    return f"{QUEUE_LOAD}.{quote(name, safe='')}"


def celery_settings(settings: Settings) -> dict[str, Any]:
    """Return the configuration of the Celery application, for workers and producers alike.

    Raises `ConfigError` if no broker is configured or one of its files cannot be read.
    """
    broker, worker = settings.broker, settings.worker
    transport_options = {
        # The client with the shortest timeout decides for all clients of a broker.
        "visibility_timeout": broker.visibility_timeout_s,
        "global_keyprefix": broker.key_prefix,
        # Without these, a half-open connection blocks a publish for ever.
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_CONNECT_TIMEOUT_S,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK_INTERVAL_S,
    }
    conf: dict[str, Any] = {
        # Messages.
        "broker_url": broker_url(broker),
        "broker_transport_options": transport_options,
        # A worker waits for an unavailable broker for ever; by default it gives up after 100 tries.
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # It also waits while the broker refuses a command, because the server is full or a key has
        # got another type. By default it ends.
        "broker_channel_error_retry": True,
        "worker_consumer": "tasks.parent.consumer:UnitConsumer",
        # JSON only, in and out: with pickle, anyone who can write to the broker could run code.
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        # Delivery. A message is acknowledged after the unit, so that an orderly shutdown gives it
        # back. The broker never requeues it, since it would do so without limit; the ledger's sweep
        # counts attempts.
        "task_acks_late": True,
        "task_acks_on_failure": True,
        "task_acks_on_timeout": True,
        "task_reject_on_worker_lost": False,
        "task_retry_on_worker_lost": False,
        # With acks_late a message counts until its unit ends. So a process has no message besides
        # the current one; the others wait in Redis, where any process can take them.
        "worker_prefetch_multiplier": 1,
        # Results are committed to the ledger; a result backend would be a second, weaker record.
        # Without one, no result client exists whose visibility timeout could differ from ours.
        "task_ignore_result": True,
        "result_backend": None,
        # A unit may wait for its job's rate limit as long as necessary; our own time limits exclude
        # waits (tasks/child/time_limits.py, ADR 0014).
        "task_soft_time_limit": None,
        "task_time_limit": None,
        # Queues by name. A task without a route goes to a queue that workers consume, not to
        # Celery's own default queue.
        "task_default_queue": QUEUE_LOAD,
        "task_queues": _queues(settings.cluster.local_dc),
        "task_routes": {"ringhaul.load.*": {"queue": QUEUE_LOAD}},
        # Flower is part of the product, and a unit lasts seconds: events are few.
        "worker_send_task_events": True,
        "task_send_sent_event": True,
        # Worker processes.
        "worker_concurrency": worker.concurrency or usable_cores(),
        # A child opens its Cassandra session before it reports that it is up; with a slow cluster
        # the default of 4 s would kill one child after the other.
        "worker_proc_alive_timeout": 60.0,
        # How long the parent waits for a final message from a killed child before it reports the
        # loss to the ledger. A later message does no harm; the default of 10 s is idle time.
        "worker_lost_wait": 1.0,
        "worker_max_tasks_per_child": worker.max_tasks_per_child,
        "worker_max_memory_per_child": MEMORY_PER_CHILD_KB_MAX,
        # Time for running units to finish or be given back at a shutdown.
        "worker_soft_shutdown_timeout": 30.0,
        # With leases, a unit that keeps running after the connection is lost does no harm; killing
        # it would waste its work. Celery 6 reverses the default.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # config.logs sets up logging; redirected streams would feed its own output back to it.
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        # Schedules.
        "timezone": "UTC",
        "enable_utc": True,
        # Our own: it keeps all state in the ledger and none on beat's host. (Celery's own uses
        # a shelve file, which is pickle.)
        "beat_max_loop_interval": 1,  # as often as it checks; for beat's banner
        "beat_scheduler": "producer.schedule.celery_scheduler:ScheduleScheduler",
    }
    tls = broker_tls(broker)
    if tls is not None:
        conf["broker_use_ssl"] = tls
    return conf


def _queues(local_dc: str) -> list[Any]:
    """Return the queues that a worker consumes by default (without `--queues`)."""
    import kombu.entity  # slow; commands that only read settings do without it

    entity: Any = kombu.entity
    names = [QUEUE_LOAD, dc_queue(local_dc)] if local_dc else [QUEUE_LOAD]
    return [entity.Queue(name, entity.Exchange(name), routing_key=name) for name in names]

"""Celery's settings, each with its why.

Celery with Redis loses and repeats messages in known ways (docs/adr). Here a message is only a
hint that a unit may be claimed; the ledger decides, so everything that would make the broker
clever (requeueing lost tasks, results, priorities) is off, and everything that would let a client
hang or a worker hoard is bounded.
"""

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

#: Consumed by every worker but those of one command.
QUEUE_LOAD = "ringhaul.load"

#: Twice the budget of a child's peak (300 MB): only a leak gets there. Celery looks after a unit.
MEMORY_PER_CHILD_KB_MAX = 600_000

#: What a worker is started with beside its settings. Gossip and mingle only serve features that
#: are not used here, and each worker's revoke list swells the broker's reply queues with them.
WORKER_ARGUMENTS = ("--without-gossip", "--without-mingle")

#: No pid file: beat would write it into the current folder, and a container that comes back after a
#: crash would find one that names itself.
BEAT_ARGUMENTS = ("--pidfile=",)

#: Flower's own defaults listen on every interface, let any visitor run any task, and keep 100,000
#: tasks (some 600 MB). Its pages show what a task was asked to do: the job, the table, the unit.
FLOWER_ARGUMENTS = (
    "--address=127.0.0.1",
    "--read_only=True",
    "--max_tasks=20000",
    "--max_workers=500",
    "--purge_offline_workers=300",
    "--tasks_columns=name,kwargs,state,result,runtime,received,worker,uuid",
)

#: Read by billiard, Celery and Arrow's allocator when they are loaded, so set before: SIGTERM stops
#: a worker softly (units are released, not lost), revokes, which are never sent, are not kept by
#: the 50,000, and memory that is free goes back to the system after a second. By itself the
#: allocator gives it back after 10 ms, which is while a unit is worked on: it then takes new pages
#: for the next row group, which cost an unload to Parquet a tenth of its CPU (ADR 0011).
WORKER_ENVIRONMENT = {
    "REMAP_SIGTERM": "SIGQUIT",
    "CELERY_WORKER_REVOKES_MAX": "1000",
    "MIMALLOC_PURGE_DELAY": "1000",
}


def dc_queue(name: str) -> str:
    """The queue of a data centre, which workers with that `cluster.local_dc` consume, too."""
    return f"{QUEUE_LOAD}.{quote(name, safe='')}"


def celery_settings(settings: Settings) -> dict[str, Any]:
    """The whole configuration of the Celery application, of workers and producers alike.

    Raises `ConfigError` when no broker is configured or one of its files cannot be read.
    """
    broker, worker = settings.broker, settings.worker
    transport_options = {
        # Of all clients of a broker the one with the shortest time decides for all.
        "visibility_timeout": broker.visibility_timeout_s,
        "global_keyprefix": broker.key_prefix,
        # Without these a half-open connection hangs a publish for ever.
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": SOCKET_CONNECT_TIMEOUT_S,
        "socket_keepalive": True,
        "health_check_interval": HEALTH_CHECK_INTERVAL_S,
    }
    conf: dict[str, Any] = {
        # Messages.
        "broker_url": broker_url(broker),
        "broker_transport_options": transport_options,
        # A worker waits for a broker that is away, however long: its default gives up after 100.
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        # JSON only, in and out: pickle runs code of whoever can write to the broker.
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        # Delivery. Acknowledged after the unit, so that a worker's orderly end gives it back; never
        # requeued by the broker, which would do so without a bound: the ledger's sweep counts.
        "task_acks_late": True,
        "task_acks_on_failure": True,
        "task_acks_on_timeout": True,
        "task_reject_on_worker_lost": False,
        "task_retry_on_worker_lost": False,
        # One message beside the one being worked on: no unit queues behind another in a process.
        "worker_prefetch_multiplier": 1,
        # Results are committed to the ledger; a result backend would keep a second, weaker truth.
        # Without one, no result client exists whose visibility time-out could differ from ours.
        "task_ignore_result": True,
        "result_backend": None,
        # A unit may wait for its job's pace for as long as it takes; ours leave waits out
        # (tasks/child/time_limits.py, ADR 0014).
        "task_soft_time_limit": None,
        "task_time_limit": None,
        # Queues by name; what is not routed is not lost in Celery's own default queue.
        "task_default_queue": QUEUE_LOAD,
        "task_queues": _queues(settings.cluster.local_dc),
        "task_routes": {"ringhaul.load.*": {"queue": QUEUE_LOAD}},
        # Flower is part of the product, and a unit lasts seconds: events are few.
        "worker_send_task_events": True,
        "task_send_sent_event": True,
        # Worker processes.
        "worker_concurrency": worker.concurrency or usable_cores(),
        # A child opens its Cassandra session before it says that it is up; the default of 4 s kills
        # the children of a slow cluster one after the other.
        "worker_proc_alive_timeout": 60.0,
        # How long the parent waits for a last word of a child that was killed before it tells the
        # ledger. A word that comes later does no harm; the default of 10 s is idle time.
        "worker_lost_wait": 1.0,
        "worker_max_tasks_per_child": worker.max_tasks_per_child,
        "worker_max_memory_per_child": MEMORY_PER_CHILD_KB_MAX,
        # Time for running units to end or be given back when a worker is told to stop.
        "worker_soft_shutdown_timeout": 30.0,
        # With leases a unit that runs on over a lost connection does no harm; killing it would
        # waste its work. Celery 6 turns the default around.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        # Logging is set up by config.logs; redirected streams would feed its own output back to it.
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        # Schedules.
        "timezone": "UTC",
        "enable_utc": True,
        # Ours: what is settled and what runs is in the ledger, nothing is on beat's host. (Celery's
        # own keeps a shelve, which is pickle.)
        "beat_scheduler": "producer.schedule.celery_scheduler:ScheduleScheduler",
    }
    tls = broker_tls(broker)
    if tls is not None:
        conf["broker_use_ssl"] = tls
    return conf


def _queues(local_dc: str) -> list[Any]:
    """What a worker consumes unless it is told otherwise (`--queues`)."""
    import kombu.entity  # not for commands that only read settings

    entity: Any = kombu.entity
    names = [QUEUE_LOAD, dc_queue(local_dc)] if local_dc else [QUEUE_LOAD]
    return [entity.Queue(name, entity.Exchange(name), routing_key=name) for name in names]

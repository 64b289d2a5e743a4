"""The settings that reliability depends on, read back from a Celery application."""

from pathlib import Path

import pytest
from celery import Celery
from celery.app.defaults import DEFAULTS

from config.celery_config import celery_settings
from config.settings import ConfigError, load_settings
from producer.services.embedded import default_workers
from tests.cases import each

URL = "redis://me:pw@host:6379/1"


def application(**flags: object) -> Celery:
    settings = load_settings({"broker.url": URL} | flags).settings
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_settings(settings))
    return app


def test_every_setting_is_one_that_celery_knows() -> None:
    assert set(celery_settings(load_settings({"broker.url": URL}).settings)) <= set(DEFAULTS)


def test_a_worker_consumes_the_queue_of_its_data_centre_too() -> None:
    assert [queue.name for queue in application().conf.task_queues] == ["ringhaul.load"]
    placed = application(**{"cluster.local_dc": "dc 1"})
    assert set(placed.amqp.queues.consume_from) == {"ringhaul.load", "ringhaul.load.dc%201"}
    placed.amqp.queues.select(["ringhaul.load.ld-1"])
    assert set(placed.amqp.queues.consume_from) == {"ringhaul.load.ld-1"}


@each(
    ("name", "value"),
    [
        ("broker_url", URL),
        ("broker_connection_retry", True),
        ("broker_connection_retry_on_startup", True),
        ("broker_connection_max_retries", None),
        ("task_acks_late", True),
        ("task_acks_on_failure", True),
        ("task_acks_on_timeout", True),
        ("task_reject_on_worker_lost", False),
        ("task_retry_on_worker_lost", False),
        ("worker_prefetch_multiplier", 1),
        ("task_ignore_result", True),
        ("result_backend", None),
        ("task_soft_time_limit", None),
        ("task_time_limit", None),
        ("worker_proc_alive_timeout", 60),
        ("worker_max_tasks_per_child", 500),
        ("worker_max_memory_per_child", 600_000),
        ("worker_soft_shutdown_timeout", 30),
        ("worker_cancel_long_running_tasks_on_connection_loss", False),
        ("worker_hijack_root_logger", False),
        ("worker_send_task_events", True),
        ("task_send_sent_event", True),
        ("accept_content", ["json"]),
        ("result_accept_content", ["json"]),
        ("task_serializer", "json"),
        ("timezone", "UTC"),
        ("beat_scheduler", "producer.schedule.celery_scheduler:ScheduleScheduler"),
    ],
)
def test_reliability_settings(name: str, value: object) -> None:
    assert application().conf[name] == value


def test_sockets_are_bounded_and_the_visibility_timeout_is_the_brokers() -> None:
    options = application(**{"broker.visibility_timeout_s": 9000}).conf.broker_transport_options
    assert options == {
        "visibility_timeout": 9000,
        "global_keyprefix": "ringhaul:mq:",
        "socket_timeout": 15,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
    }


def test_kombu_takes_the_transport_options() -> None:
    from kombu.transport.redis import Channel

    known = set(Channel.from_transport_options)
    assert set(application().conf.broker_transport_options) <= known


def test_load_tasks_go_to_their_queue() -> None:
    app = application()
    route = app.amqp.router.route({}, "ringhaul.records.unit")
    assert route["queue"].name == "ringhaul.load"


def test_tls_is_on_for_rediss_alone() -> None:
    assert application().conf.broker_use_ssl is False
    tls = application(**{"broker.url": "rediss://host"}).conf.broker_use_ssl
    assert tls["ssl_check_hostname"] is True


def test_concurrency_zero_is_the_cores_that_may_be_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 5, 6}, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("config.cores.MEMBERSHIP", tmp_path / "cgroup")
    monkeypatch.setattr("config.cores.MOUNT", tmp_path)
    assert application().conf.worker_concurrency == default_workers() == 3
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert application().conf.worker_concurrency == default_workers() == 2
    assert application(**{"worker.concurrency": 3}).conf.worker_concurrency == 3


def test_without_a_broker_there_is_no_application() -> None:
    with pytest.raises(ConfigError, match="no broker is configured"):
        celery_settings(load_settings().settings)

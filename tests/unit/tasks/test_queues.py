"""The queue of a unit, by the workers that are alive."""

import pytest

from config.celery_config import QUEUE_LOAD, dc_queue
from producer.services.workers import route_warning
from ringhaul.ledger.workers import Worker
from tasks.publish import queue_of

LABEL = f"{dc_queue('dc1')},{dc_queue('dc2')},{QUEUE_LOAD}"


def worker(host: str, *dcs: str) -> Worker:
    return Worker(host, 1, 4, (QUEUE_LOAD, *map(dc_queue, dcs)))


@pytest.mark.parametrize(
    ("workers", "queue"),
    [
        ([worker("a", "dc1"), worker("b", "dc2")], "ringhaul.load.dc1"),
        ([worker("b", "dc2"), worker("c")], "ringhaul.load.dc2"),
        ([worker("c"), worker("d", "dc3")], "ringhaul.load"),
        ([], "ringhaul.load"),
    ],
)
def test_the_first_data_centre_with_workers_takes_the_units(
    workers: list[Worker], queue: str
) -> None:
    assert queue_of(LABEL, workers) == queue


def test_a_job_with_its_own_workers_uses_only_their_queue() -> None:
    assert queue_of("ringhaul.load.ld-1", [worker("a", "dc1")]) == "ringhaul.load.ld-1"
    assert queue_of("", [worker("a", "dc1")]) == QUEUE_LOAD


def test_names_of_data_centres_are_escaped() -> None:
    assert dc_queue("DC 1,2:a") == "ringhaul.load.DC%201%2C2%3Aa"


def test_an_odd_queue_gives_a_warning() -> None:
    near = ["dc1", "dc2"]
    none = route_warning(near, QUEUE_LOAD, [])
    assert none.startswith("no worker is up")
    assert "or give --broker none to use this command's own" in none
    assert route_warning(near, QUEUE_LOAD, [worker("a"), worker("b")]) == ""
    far = route_warning(near, QUEUE_LOAD, [worker("a"), worker("b", "dc3")])
    assert "no worker is in a data centre that holds the rows (dc1, dc2)" in far
    assert route_warning(near, dc_queue("dc1"), [worker("a", "dc1"), worker("b", "dc2")]) == ""
    idle = route_warning(near, dc_queue("dc1"), [worker("a", "dc1"), worker("b")])
    assert idle.startswith("1 worker without cluster.local_dc (b) takes no unit")
    own = Worker("laptop", 1, 4, ("ringhaul.load.ul-1",))
    assert route_warning(near, dc_queue("dc1"), [worker("a", "dc1"), own]) == ""

"""How often workers poll for requests of commands, by the size of the fleet."""

from __future__ import annotations

from producer.services.preflight import BEGIN_S
from tasks.parent.preflight import ASK_EVERY_S, ASKS_PER_S_MAX, pause_between_polls_s


def test_a_fleet_of_any_size_polls_at_a_bounded_rate() -> None:
    assert {pause_between_polls_s(workers) for workers in (0, 1, 100, 500)} == {ASK_EVERY_S}
    for workers in (501, 1000, 3000):
        assert round(workers / pause_between_polls_s(workers)) <= ASKS_PER_S_MAX


def test_no_worker_polls_so_rarely_that_a_command_takes_it_for_dead() -> None:
    assert pause_between_polls_s(1_000_000) <= BEGIN_S / 2

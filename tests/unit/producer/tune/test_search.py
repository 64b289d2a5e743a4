"""The search finds a setup within a tenth of the best in a full grid, on made-up clusters."""

from __future__ import annotations

import statistics

import pytest

from producer.tune.search import ROUNDS_MAX, ROUNDS_MIN, Found
from producer.tune.setup import Knob, Setup
from tests.cases import each
from tests.unit.producer.tune.surfaces import SPACE, SURFACES, Rig, Surface, grid, share_of_best

GRID = grid()


@each("surface", SURFACES)
@each("start", [Setup(workers=4), Setup(workers=1, strategy="single")])
def test_the_choice_is_within_a_tenth_of_the_best_of_a_grid(surface: Surface, start: Setup) -> None:
    found = Rig(surface).run(start)
    assert share_of_best(surface, found, GRID) > 0.9, found.best


@pytest.mark.parametrize("surface", SURFACES)
def test_noise_of_a_twentieth_does_not_mislead_it(surface: Surface) -> None:
    shares = [
        share_of_best(surface, Rig(surface, noise=0.05, seed=seed).run(), GRID)
        for seed in range(20)
    ]
    assert statistics.quantiles(shares, n=10)[0] > 0.9, shares


@pytest.mark.parametrize("surface", SURFACES)
def test_on_a_busy_machine_with_little_time_it_does_no_harm(surface: Surface) -> None:
    """Half of the trials are off by over a quarter, and there is time for 45: the choice is at
    least about what there was, and mostly better."""
    start = Setup(workers=4)
    shares = [
        surface(Rig(surface, noise=0.35, trials_max=45, seed=seed).run(start).best) / surface(start)
        for seed in range(40)
    ]
    assert statistics.quantiles(shares, n=20)[0] > 0.85, sorted(shares)
    assert statistics.mean(shares) > 0.97


@pytest.mark.parametrize("surface", SURFACES)
def test_a_short_time_never_makes_it_worse_than_the_start(surface: Surface) -> None:
    start = Setup(workers=4)
    for trials_max in (1, 5, 12, 25):
        found = Rig(surface, trials_max=trials_max).run(start)
        assert surface(found.best) >= surface(start) * 0.999


@pytest.mark.parametrize("trials_max", [1, 4, 12, 40, 100])
def test_it_keeps_to_its_time(trials_max: int) -> None:
    rig = Rig(SURFACES[0], noise=0.1, trials_max=trials_max)
    rig.run()
    # A round that has started is completed; the caller cuts it off.
    assert len(rig.tried) <= trials_max + ROUNDS_MIN * max(map(len, SPACE.values()))


def test_a_value_that_is_clearly_worse_gets_no_second_round() -> None:
    rig = Rig(SURFACES[1])  # one process does a quarter of what four do
    found = rig.run()
    line = {line.value: line for line in found.race(Knob.WORKERS)}
    races = [race for race in found.races if race[0].knob is Knob.WORKERS]
    assert [len(one.rates) for one in races[0] if one.value == 1] == [1]
    assert len(line[4].rates) > 1


def test_values_that_are_equal_stay_as_they_were() -> None:
    found = Rig(lambda setup: 1000.0).run(Setup(workers=2, in_flight=256))
    assert found.best == Setup(workers=2, in_flight=256)
    assert found.gain is None
    assert all(len(line.rates) <= ROUNDS_MAX for race in found.races for line in race)


def test_a_gain_below_the_noise_changes_nothing() -> None:
    found = Rig(lambda setup: 1000.0 + 10 * (setup.workers == 6)).run()
    assert found.best.workers == 4


def test_a_setup_that_fails_is_not_chosen() -> None:
    found = Rig(lambda setup: 0.0 if setup.in_flight == 2048 else 1000.0 + setup.in_flight).run()
    assert found.best.in_flight == 256


def test_the_gain_is_that_over_the_first_setup() -> None:
    found = Rig(lambda setup: 1000.0 * setup.workers).run(Setup(workers=2))
    assert found.best.workers == 6
    assert found.gain is not None and 2.0 < found.gain < 4.5  # the made-up machine drifts


def test_no_batches_no_race_over_their_size() -> None:
    found = Rig(lambda setup: 2000.0 if setup.strategy == "single" else 1000.0).run()
    assert found.best.strategy == "single"
    assert Knob.BATCH_ROWS not in found.tried
    assert Found(best=Setup()).race(Knob.WORKERS) == []

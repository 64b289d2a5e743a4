"""Search for the fastest setup, one setting at a time, in interleaved rounds. Pure.

The machine and the cluster drift: caches, compaction, neighbours. So rates are only compared within
a round, in which every value of the setting that is still in the race runs once, and always beside
the best setup so far. A value's figure is the median of its ratios to that setup. Values that are
clearly worse are dropped after each round; the others get further rounds.

The search is a generator: it yields the setup to try, and is sent its rate. Its caller measures,
and says through `spent` how much of the time is used up.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from producer.tune.setup import Knob, Setup, Space, Value, applies

#: Rounds of one setting, at most.
ROUNDS_MAX = 5
#: After this many rounds, a value is dropped if its median is this much below the best one.
DROP = (0.40, 0.20, 0.10, 0.05)
#: Before a value replaces the best so far, both are measured in this many rounds, if there is
#: time, and in `ROUNDS_MIN` in any case: a busy neighbour may spoil a single round.
CONFIRMED = 3
ROUNDS_MIN = 2
#: A value replaces the best setup's value if it is this much faster: less is noise, and a setting
#: that is left alone needs no reason.
KEEP = 0.02
#: And if it was faster in this share of the rounds.
STEADY = 0.75
#: The settings in the order in which they are tried, and by when each is done, as a share of the
#: time; what has started gets `ROUNDS_MIN`. Requests in flight come first: the strategies differ
#: in what they usually have, and would be compared by that. The rest is for what the first pass has
#: changed.
DONE_BY: Mapping[Knob, float] = {
    Knob.IN_FLIGHT: 0.18,
    Knob.STRATEGY: 0.32,
    Knob.WORKERS: 0.50,
    Knob.BATCH_ROWS: 0.60,
    Knob.UNIT_BYTES: 0.70,
}
#: Settings that depend on each other, so that further passes may find more.
AGAIN = (Knob.IN_FLIGHT, Knob.WORKERS, Knob.BATCH_ROWS)
FURTHER_PASSES_BY = 0.85
#: Rounds of the winner beside the first setup, for the gain that is reported. Without a gain, the
#: first one stays.
FINAL_ROUNDS = 4

Trials = Generator[Setup, float, None]


@dataclass
class Line:
    """The measurements of one value of a setting."""

    knob: Knob
    setup: Setup
    ratios: list[float] = field(default_factory=list)  #: to the best setup then, by round
    rates: list[float] = field(default_factory=list)  #: rows/s
    chosen: bool = False

    @property
    def value(self) -> Value:
        return self.setup.value(self.knob)

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def confirmed(self) -> bool:
        """Whether it was measured in enough rounds to be chosen."""
        return len(self.ratios) >= ROUNDS_MIN

    @property
    def steady(self) -> bool:
        """Whether it was faster in nearly every round."""
        return sum(ratio > 1 for ratio in self.ratios) >= STEADY * len(self.ratios)

    @property
    def rate(self) -> float:
        """The median of the rates, in rows/s."""
        return statistics.median(self.rates)


@dataclass
class Found:
    """What the search has found; it is complete at any time, so that it may be cut off."""

    best: Setup
    #: Races in their order: the values of a setting, in the order of the space.
    races: list[list[Line]] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)  #: best setup's rate / first setup's, by round

    @property
    def gain(self) -> float | None:
        """How much faster the best setup is than the first: a ratio; None: not measured."""
        return statistics.median(self.gains) if self.gains else None

    @property
    def tried(self) -> set[Knob]:
        """The settings whose values were compared."""
        return {race[0].knob for race in self.races if any(line.chosen for line in race)}

    def race(self, knob: Knob) -> list[Line]:
        """Return the last race of a setting; empty: there was none."""
        return next((race for race in reversed(self.races) if race[0].knob is knob), [])


def search(found: Found, space: Space, spent: Callable[[], float]) -> Trials:
    """Yield setups to try, and be sent their rates in rows/s; 0: it failed. Improves `found`.

    `found.best`: the setup to begin with. `spent`: how much of the time is used up, 0 to 1.
    """
    first, clock = found.best, _Clock(spent)
    for knob, done_by in DONE_BY.items():
        setups = [found.best.having(knob, value) for value in space[knob]]
        yield from _race(found, knob, setups, clock, done_by)
    before: Setup | None = None
    while found.best != before and spent() < FURTHER_PASSES_BY:
        before = found.best
        for knob in AGAIN:
            setups = _near(found.best, knob, space)
            if knob is Knob.IN_FLIGHT:
                setups += _diagonal(found.best, space)
            yield from _race(found, knob, setups, clock, FURTHER_PASSES_BY)
    best = found.best
    for _ in range(FINAL_ROUNDS if best != first else 0):
        if spent() >= 1:
            return
        first_rate = yield first
        best_rate = yield best
        if first_rate:
            found.gains.append(best_rate / first_rate)
            found.best = best if statistics.median(found.gains) >= 1 else first


class _Clock:
    """Says whether rounds fit into the time, by what trials have cost so far."""

    def __init__(self, spent: Callable[[], float]) -> None:
        self.spent = spent
        self._began, self._trials = spent(), 0

    def count(self, trials: int) -> None:
        """Count trials that were made."""
        self._trials += trials

    def fit(self, trials: int, by: float) -> bool:
        """Return whether this many further trials end within a share of the time."""
        now = self.spent()
        return now + trials * (now - self._began) / max(1, self._trials) <= by


def _race(
    found: Found, knob: Knob, setups: Sequence[Setup], clock: _Clock, done_by: float
) -> Trials:
    """Compare setups that differ in a setting, and take the best one into `found.best`.

    Does nothing if there is no time for `ROUNDS_MIN` rounds; `done_by`: when it should be over.
    """
    base = found.best
    if len(setups) < 2 or not applies(knob, base):
        return
    if clock.spent() >= done_by or not clock.fit(ROUNDS_MIN * len(setups), FURTHER_PASSES_BY):
        return
    race = [Line(knob, setup) for setup in setups]
    found.races.append(race)
    running = list(race)
    for number in range(ROUNDS_MAX):
        if number >= ROUNDS_MIN and not clock.fit(len(running), done_by):
            break
        rates: dict[Setup, float] = {}
        # There and back: a drift that goes one way affects all alike.
        for line in reversed(running) if number % 2 else running:
            rates[line.setup] = yield line.setup
            clock.count(1)
        if not rates[base]:  # the best so far failed: this round says nothing
            continue
        for line in running:
            line.rates.append(rates[line.setup])
            line.ratios.append(rates[line.setup] / rates[base])
        if len(running[0].ratios) >= ROUNDS_MIN:
            _choose(found, race, base)
        running = _still_running(running, base)
        if len(running) < 2:
            _choose(found, race, base)
            break


def _choose(found: Found, race: Sequence[Line], base: Setup) -> None:
    """Take the fastest value so far; the value of `base` stays if the gain may be noise."""
    better = [line for line in race if line.confirmed and line.ratio > 1 + KEEP and line.steady]
    found.best = max(better, key=lambda line: line.ratio).setup if better else base
    for line in race:
        line.chosen = line.setup == found.best


def _still_running(running: Sequence[Line], base: Setup) -> list[Line]:
    """Drop what is clearly worse than the best. The base stays as long as others are compared with
    it, and until what is to replace it is confirmed."""
    best = max(line.ratio for line in running)
    rounds = len(running[0].ratios)
    bound = best * (1 - DROP[min(rounds, len(DROP)) - 1])
    kept = [line for line in running if line.ratio >= bound]
    if all(line.setup != base for line in kept) and (len(kept) > 1 or rounds < CONFIRMED):
        kept.insert(0, next(line for line in running if line.setup == base))
    return kept


def _near(setup: Setup, knob: Knob, space: Space) -> list[Setup]:
    """Return the setup, and its neighbours with the next lower and higher value of a setting."""
    values = list(space[knob])
    at = values.index(setup.value(knob))
    return [setup.having(knob, value) for value in values[max(at - 1, 0) : at + 2]]


def _diagonal(setup: Setup, space: Space) -> list[Setup]:
    """Return setups with more worker processes and fewer requests in flight each, and the reverse:
    what the cluster has to do is their product, so that neither alone may be better."""
    workers, in_flight = list(space[Knob.WORKERS]), list(space[Knob.IN_FLIGHT])
    at = workers.index(setup.workers), in_flight.index(setup.in_flight)
    found: list[Setup] = []
    for step in (1, -1):
        more, fewer = at[0] + step, at[1] - step
        if 0 <= more < len(workers) and 0 <= fewer < len(in_flight):
            moved = setup.having(Knob.WORKERS, workers[more])
            found.append(moved.having(Knob.IN_FLIGHT, in_flight[fewer]))
    return found

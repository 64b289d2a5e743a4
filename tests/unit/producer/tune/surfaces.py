"""Made-up clusters: the rate of each setup as a function, with noise."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from producer.tune.search import Found, search
from producer.tune.setup import Knob, Setup, Space, applies, make_space

Surface = Callable[[Setup], float]

SPACE = make_space(Setup(workers=4), worker_counts=(1, 2, 4, 6), sample_bytes=256 * 2**20)


def parts(setup: Setup) -> tuple[int, float, int]:
    """Return processes, rows a request, and requests in flight."""
    rows = {"pipeline": setup.batch_rows or 10, "single": 1, "token-batch": 8}[setup.strategy]
    window = setup.in_flight or 1024
    if setup.strategy == "token-batch":
        window = setup.in_flight or 128
    return setup.workers, min(rows, 10), window


def busy_server(setup: Setup) -> float:
    """A server that is saturated by little, and suffers from more than that."""
    workers, rows, window = parts(setup)
    load = workers * min(window, 1024)
    return 100_000 * min(1.0, load / 500) * (0.6 + 0.04 * rows) / (1 + load / 20_000)


def busy_client(setup: Setup) -> float:
    """Workers that need 10 us a row and 20 us a request, on four cores."""
    workers, rows, _ = parts(setup)
    driver = 3 if setup.strategy == "token-batch" else 1
    return min(workers, 4) * 1e6 / (10 + 20 / rows) / driver / (1 + 0.03 * max(workers - 4, 0))


def far_server(setup: Setup) -> float:
    """A server at a distance: what is on the way counts."""
    workers, rows, window = parts(setup)
    return min(workers * window * rows / 0.5, 300_000)


def overloaded_server(setup: Setup) -> float:
    """A server whose rate falls once some 600 requests wait, and that dislikes batches."""
    workers, rows, window = parts(setup)
    waiting = workers * window
    peak = 600
    return 50_000 * min(waiting / peak, (peak / waiting) ** 0.5) / (1 + 0.05 * rows)


def costly_units(setup: Setup) -> float:
    """Units that cost 50 ms each."""
    size = setup.unit_bytes or 2 * 2**20
    return busy_client(setup) * size / (size + 5 * 2**20)


SURFACES = (busy_server, busy_client, far_server, overloaded_server, costly_units)


def grid(space: Space = SPACE) -> list[Setup]:
    """Return every setup of a space."""
    found: list[Setup] = []
    for values in itertools.product(*(space[knob] for knob in Knob)):
        setup = Setup()
        for knob, value in zip(Knob, values, strict=True):
            setup = setup.having(knob, value)
        if applies(Knob.BATCH_ROWS, setup) or not setup.batch_rows:
            found.append(setup)
    return found


@dataclass
class Rig:
    """Runs a search against a surface; a trial costs the same share of the time each."""

    surface: Surface
    noise: float = 0.0
    trials_max: int = 80
    seed: int = 1
    space: Space = field(default_factory=lambda: SPACE)
    tried: list[Setup] = field(default_factory=list)

    def run(self, start: Setup = Setup(workers=4)) -> Found:  # noqa: B008 - it is frozen
        random_ = random.Random(self.seed)
        found = Found(best=start)
        trials = search(found, self.space, lambda: len(self.tried) / self.trials_max)
        rate: float | None = None
        while True:
            try:
                setup = next(trials) if rate is None else trials.send(rate)
            except StopIteration:
                return found
            self.tried.append(setup)
            # The machine drifts, by a fifth up and down.
            drift = 1 + 0.2 * math.sin(len(self.tried) / 10)
            rate = self.surface(setup) * drift * random_.lognormvariate(0, self.noise)


def share_of_best(surface: Surface, found: Found, setups: Sequence[Setup]) -> float:
    """Return the true rate of what was found, as a share of the best in a full grid."""
    return surface(found.best) / max(map(surface, setups))

"""Claim: what `ringhaul tune` chooses is within 10 % of the best of a full grid.

For a table of small rows and one of rows of 1 kB: `ringhaul tune` with its budget, then every
setup of a grid in interleaved rounds, with the choice among them. The best of many noisy medians is
partly luck, so it and the choice are compared again in further rounds; their ratio there is the
result.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import secrets
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from bench.command import run_command
from bench.data import KB1, SMALL
from bench.harness import claim, save_table
from bench.site import Site, make_site
from bench.stage import stage
from producer.commands.tune import tune_command, tune_options
from producer.options.tune import TuneOptions
from producer.report.reporter import Shown
from producer.services.start import start_tune
from producer.tune.preparation import first_loads, prepare
from producer.tune.sample import Sample
from producer.tune.setup import Knob, Setup
from producer.tune.table import setup_text
from producer.tune.trials import Trials

ROWS = {SMALL.name: 2_000_000, KB1.name: 400_000}
BUDGET_S = 300
ROUNDS = 3
#: Rounds in which the choice meets the best of the grid.
DUELS = 5
WITHIN = 0.9
#: The grid. Workers are added by the machine.
GRID: Mapping[Knob, Sequence[str | int]] = {
    Knob.STRATEGY: ("pipeline", "single", "token-batch"),
    Knob.WORKERS: (1, 2, 3),
    Knob.BATCH_ROWS: (2, 0),
    Knob.IN_FLIGHT: (64, 0, 2048),
    Knob.UNIT_BYTES: (0,),
}


class Outcome(NamedTuple):
    """The choice beside the best of the grid."""

    table: str
    tuned_s: float  #: how long `ringhaul tune` took
    choice: Setup
    best: Setup
    ratio: float  #: of the choice to the best, in the duels
    rank: int  #: of the choice among the medians of the grid, from 1
    setups: int


def setups_of(grid: Mapping[Knob, Sequence[str | int]]) -> list[Setup]:
    """Return every setup of a grid; without batches their size makes no difference."""
    found: list[Setup] = []
    for values in itertools.product(*(grid[knob] for knob in Knob)):
        setup = Setup()
        for knob, value in zip(Knob, values, strict=True):
            setup = setup.having(knob, value)
        if setup.strategy == "single":
            setup = setup.having(Knob.BATCH_ROWS, 0)
        if setup not in found:
            found.append(setup)
    return found


def tuned(site: Site, budget_s: int) -> tuple[Setup, float]:
    """Run the command; return its choice and how long it took. It must keep its budget."""
    began_s = time.monotonic()
    done = run_command(
        [
            *(sys.executable, "-P", "-m", "ringhaul", "tune", str(site.path), "-t", site.name),
            *("--budget", f"{budget_s}s", "--no-write", "--json"),
        ],
        site.stage.env_embedded,
    )
    took_s = time.monotonic() - began_s
    if took_s > budget_s:
        raise RuntimeError(f"tune took {took_s:.1f} s with a budget of {budget_s} s")
    print(done.err, flush=True)
    (message,) = map(json.loads, done.out.splitlines())
    setup = Setup()
    for knob in Knob:
        setup = setup.having(knob, message["best"][str(knob)])
    return setup, took_s


def compare(
    site: Site,
    choice: Setup,
    tuned_s: float,
    *,
    grid: Mapping[Knob, Sequence[str | int]],
    rounds: int,
    duels: int,
    budget_s: int,
) -> Outcome:
    """Run the grid and the choice in interleaved rounds, then the duels.

    `budget_s`: that of the command, as its trials are as long.
    """
    setups = list(dict.fromkeys([*setups_of(grid), choice]))
    most = max(setup.workers for setup in setups)
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, site.stage.env_embedded, clear=True))
        run = secrets.token_hex(3)
        options = _options(site, most, budget_s)
        services = start_tune(stack, options, run)
        far_s = time.monotonic() + 86_400
        prepared = prepare(
            stack, options, services, run, far_s, Shown(quiet=True), counts=_counts(setups)
        )
        sample, seconds, _ = first_loads(prepared, time.monotonic() + budget_s, repeat=True)
        rates = _rounds(prepared.trials, setups, sample, seconds, rounds)
        ranked = sorted(setups, key=lambda one: statistics.median(rates[one]), reverse=True)
        best = ranked[0]
        pair = _rounds(prepared.trials, [choice, best], sample, seconds, duels)
    ratios = [mine / other for mine, other in zip(pair[choice], pair[best], strict=True) if other]
    return Outcome(
        table=site.table.name,
        tuned_s=tuned_s,
        choice=choice,
        best=best,
        ratio=1.0 if choice == best else statistics.median(ratios),
        rank=ranked.index(choice) + 1,
        setups=len(setups),
    )


def _rounds(
    trials: Trials, setups: Sequence[Setup], sample: Sample, seconds: float, rounds: int
) -> dict[Setup, list[float]]:
    """Measure every setup once a round, there and back."""
    rates: dict[Setup, list[float]] = {setup: [] for setup in setups}
    for number in range(rounds):
        for setup in reversed(list(rates)) if number % 2 else rates:
            rates[setup].append(trials.measure(setup, sample, seconds))
        print(f"  round {number + 1}/{rounds} of {len(rates)} setups", flush=True)
    return rates


def _counts(setups: Sequence[Setup]) -> list[int]:
    return sorted({setup.workers for setup in setups})


def _options(site: Site, workers: int, budget_s: int) -> TuneOptions:
    """Return the options of the command that `tuned` runs."""
    argv = [str(site.path), "-t", site.name, "-c", str(workers), "--budget", f"{budget_s}s"]
    with tune_command.make_context("tune", argv) as context:
        return tune_options(context)


def report(found: Outcome) -> str:
    """Return an outcome for people."""
    what = f"{found.table}: the choice of tune to the best of {found.setups} setups"
    return "\n".join(
        [
            claim(what, found.ratio, at_least=WITHIN),
            f"          tune took {found.tuned_s:.0f} s; rank {found.rank}",
            f"          choice  {_text(found.choice)}",
            f"          best    {_text(found.best)}",
        ]
    )


def keep_outcomes(found: Sequence[Outcome], budget_s: int, rounds: int) -> Path:
    """Save the outcomes for the page of benchmarks; return the JSON's path."""
    return save_table(
        "tune_grid",
        f"`ringhaul tune` with a budget of {budget_s} s beside a grid, rounds of it: {rounds}",
        ["table", "its choice, of the grid's best", "rank", "setups of the grid", "tune, s"],
        [
            (one.table, round(one.ratio, 2), one.rank, one.setups, round(one.tuned_s))
            for one in found
        ],
    )


def _text(setup: Setup) -> str:
    return setup_text(setup, [knob for knob in Knob if knob is not Knob.UNIT_BYTES])


def run(budget_s: int, rounds: int, scale: float = 1.0) -> None:
    """Run the bench for both tables. `scale`: of the numbers of rows."""
    found: list[Outcome] = []
    with stage() as running:
        for table in (SMALL, KB1):
            site = make_site(running, table, int(ROWS[table.name] * scale), worker_pid=0)
            choice, took_s = tuned(site, budget_s)
            outcome = compare(
                site, choice, took_s, grid=GRID, rounds=rounds, duels=DUELS, budget_s=budget_s
            )
            print(report(outcome), flush=True)
            found.append(outcome)
    print(f"\nkept in {keep_outcomes(found, budget_s, rounds)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tune_grid", description=__doc__)
    parser.add_argument("--budget", type=int, default=BUDGET_S, help=f"seconds; {BUDGET_S}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--scale", type=float, default=1.0, help="of the rows; default 1")
    options = parser.parse_args()
    run(options.budget, options.rounds, options.scale)


if __name__ == "__main__":
    main()

"""The course of a bench: start servers, warm up the node, run the systems in turn, report."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from bench.harness import OURS, Median, System, interleave, medians, report, save
from bench.stage import HEAP, Stage, stage

#: Processes of the running worker, and of embedded ones: one for each core.
PROCESSES = 2
_WARM_UPS = 2

#: Gets the stage and the pid of the running worker, creates tables, and returns the systems.
Choose = Callable[[Stage, int], Sequence[System]]


def contest(
    name: str, title: str, choose: Choose, *, rounds: int, nodes: int = 1, heap: str = HEAP
) -> list[Median]:
    """Run the bench `name`, print its table, and return the medians."""
    with stage(nodes, heap) as running, running.worker(PROCESSES) as worker_pid:
        systems = choose(running, worker_pid)
        print(f"{title}: warming up the node ...", flush=True)
        # The server compiles its code under load; ringhaul retries the timeouts of a cold server.
        warming = next(system for system in systems if system.family == OURS)
        for _ in range(_WARM_UPS):
            warming.reset()
            warming.run()
        runs = interleave(systems, rounds)
    lines = medians(systems, runs)
    title = f"{title}, median of {rounds}"
    print(report(title, lines))
    path = save(name, title, lines, runs)
    print(f"\nkept in {path} and {path.with_suffix('.svg').name}", flush=True)
    return lines


def named(lines: Sequence[Median], name: str) -> Median:
    """Return the line of one system."""
    return next(line for line in lines if line.name == name)


def parser_of(name: str, doc: str | None, *, rows: int, rounds: int) -> argparse.ArgumentParser:
    """Return a bench's parser with `--rows` and `--rounds`, and their defaults."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=doc)
    parser.add_argument("--rows", type=int, default=rows, help=f"default {rows:,}")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"default {rounds}")
    return parser


def arguments(
    name: str, doc: str | None, *, rows: int, rounds: int, may_leave_out: bool = False
) -> argparse.Namespace:
    """Parse the options of a bench's command.

    `may_leave_out`: also `--without` and `--short`, for a line-up with systems that take minutes a
    round.
    """
    parser = parser_of(name, doc, rows=rows, rounds=rounds)
    if may_leave_out:
        parser.add_argument(
            "--without",
            action="append",
            default=[],
            metavar="WORD",
            help="leave out systems with this in their name; may be given several times",
        )
        parser.add_argument("--short", action="store_true", help="only one system of each kind")
    return parser.parse_args()

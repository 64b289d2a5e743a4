"""The same work with other numbers of processes and other bounds of requests in flight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from bench.harness import Median, System, interleave, medians, report, save, save_table
from bench.site import Site
from bench.stage import Stage, stage

PROCESSES = (1, 2, 4)
BOUNDS = (128, 1000, 8000)
#: 0 stands for what has no bound that one could set: ours adapts, and a pool of single queries has
#: one in flight in each process.
FREE = 0

#: Gets the stage and, by number of processes, the pids of workers; returns ours, then the others.
Choose = Callable[[Stage, dict[int, "Crew"]], Sequence[System]]


class Crew:
    """A running worker and the stage whose commands use it, and no other."""

    def __init__(self, stage: Stage, worker_pid: int) -> None:
        self.stage, self.worker_pid = stage, worker_pid

    def at(self, site: Site) -> Site:
        """Return the same table and file, for commands that use this worker."""
        return replace(site, stage=self.stage, worker_pid=self.worker_pid)


@contextmanager
def crews(stage: Stage, processes: Sequence[int] = PROCESSES) -> Iterator[dict[int, Crew]]:
    """Run a worker for each number of processes, each on a broker database to itself."""
    with ExitStack() as stack:
        found = {}
        for number, count in enumerate(processes, 1):
            apart = stage.apart(f"of-{count}", number)
            found[count] = Crew(apart, stack.enter_context(apart.worker(count)))
        yield found


def name_of(label: str, processes: int, bound: int = FREE) -> str:
    """Return the name of a system."""
    return f"{label}, {processes} proc., {bound or 'no bound'}"


def sweep(name: str, title: str, choose: Choose, *, rounds: int) -> list[Median]:
    """Run the bench `name`; print and save rows/s by processes and bound."""
    with stage() as running, crews(running) as found:
        systems = choose(running, found)
        print(f"{title}: warming up the node ...", flush=True)
        for _ in range(2):
            systems[0].reset()
            systems[0].run()
        runs = interleave(systems, rounds)
    lines = medians(systems, runs)
    title = f"{title}, median of {rounds}"
    print(report(title, lines))
    save(f"{name}_runs", title, lines, runs)
    labels = dict.fromkeys(line.name.partition(",")[0] for line in lines)
    columns = ["rows/s (CPU us a row), by rows in flight and processes"]
    columns += [f"{count} process{'es' * (count > 1)}" for count in PROCESSES]
    path = save_table(name, title, columns, [*_rows(lines, list(labels))])
    print(f"\nkept in {path}", flush=True)
    return lines


def _rows(lines: Sequence[Median], labels: Sequence[str]) -> Iterator[list[str]]:
    by_name = {line.name: line for line in lines}
    for label in labels:
        for bound in (FREE, *BOUNDS):
            of_one = [by_name.get(name_of(label, count, bound)) for count in PROCESSES]
            if any(of_one):
                what = label if bound == FREE else f"{label}, {bound:,} in flight"
                yield [what, *(_cell(line) for line in of_one)]


def _cell(line: Median | None) -> str:
    return "" if line is None else f"{line.rows_s:,.0f} ({line.cpu_us_per_row:,.0f})"

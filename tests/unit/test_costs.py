"""The costs of test files add up, and what children use is among them."""

import subprocess
import sys
from collections.abc import Iterable

import pytest

from tests.costs import DEAREST_SHOWN, Cost, Costs, Run, core_seconds, own_core_seconds

#: Uses 0.3 s of CPU, of which the kernel counts whole ticks.
COUNTED_S = 0.25
BURN = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_time_and_cpu_are_those_of_the_file_that_runs() -> None:
    clock = {"now": 0.0, "cpu": 0.0}
    costs = Costs(now=lambda: clock["now"], core_s=lambda shared: clock["cpu"])

    def passes(now: float, cpu: float) -> None:
        clock["now"] += now
        clock["cpu"] += cpu

    passes(5, 2)  # collection
    costs.enter("a", 0)
    passes(3, 1)
    costs.enter("a", 0)
    passes(4, 1)
    passes(10, 0)  # the next one waits for its turn
    costs.enter("b", 10)
    passes(1, 0.5)
    costs.enter("a", 0)
    passes(2, 1)
    costs.close()
    costs.close()
    assert costs.files == {"a": Cost(9, 3), "b": Cost(1, 0.5)}
    assert costs.total_s() == 5.5


def test_children_count_while_they_run_and_after() -> None:
    before_s, own_s = core_seconds(), own_core_seconds()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    ended_s = core_seconds()
    assert own_core_seconds() - own_s < COUNTED_S
    assert ended_s - before_s >= COUNTED_S
    running = subprocess.Popen(
        [sys.executable, "-c", f"{BURN}print(flush=True)\ninput()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with running:
        assert running.stdout is not None
        running.stdout.readline()
        assert core_seconds() - ended_s >= COUNTED_S
        assert core_seconds([running.pid]) - ended_s < COUNTED_S
        running.communicate(b"\n")


@pytest.mark.parametrize("files", [1, DEAREST_SHOWN + 1])
def test_a_run_sums_up_its_processes(files: int) -> None:
    now = iter([100.0, 220.0])
    run = Run(lambda: next(now))

    def spent(times: float) -> dict[str, Iterable[float]]:
        return {f"f{n}": [n * times, n * times * 10] for n in range(files)}

    run.add(spent(1), 60)
    run.add(spent(2), 90)
    lines = run.lines(servers_s=30)
    assert lines[0] == "2.0 minutes, 3.0 core-minutes (0.5 of shared servers)"
    if files == 1:
        assert len(lines) == 1
    else:
        assert lines[2].split() == ["450.0", "45.0", "f15"]
        assert len(lines) == 2 + DEAREST_SHOWN
    table = run.table().splitlines()
    assert table[0] == "core_s,wall_s,file"
    assert table[-1] == "0.0,0.0,f0"
    assert len(table) == 1 + files

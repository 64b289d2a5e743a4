"""Cost of a command with its children, and the report of one that fails."""

import os
import sys

import pytest

from bench.command import run_command


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_cost_is_that_of_the_command_and_its_children() -> None:
    work = "import subprocess, sys; sum(range(3 * 10**7)); subprocess.run([sys.executable, '-c', "
    done = run_command(python(work + "'x = b\"1\" * 10**8; print(len(x))'])"), os.environ)

    assert done.out == "100000000\n"
    assert 0.1 < done.cpu_s < 30
    assert done.whole_s > 0
    assert 10**8 < done.rss_bytes_max < 2 * 10**8


def test_cpu_of_a_killed_child_counts_without_a_wait() -> None:
    # The child signals that it has worked; its parent kills it and ends.
    child = "'sum(range(3 * 10**7)); print(1, flush=True); import time; time.sleep(60)'"
    begin = f"import subprocess, sys, os; p = subprocess.Popen([sys.executable, '-c', {child}], "
    end = "stdout=subprocess.PIPE); p.stdout.readline(); p.kill(); os._exit(0)"

    assert run_command(python(begin + end), os.environ).cpu_s > 0.1


def test_memory_of_the_bench_itself_is_not_counted() -> None:
    ballast = b"1" * (200 << 20)

    assert run_command(python("pass"), os.environ).rss_bytes_max < len(ballast) / 2


def test_a_failing_command_is_reported_with_its_output() -> None:
    failing = python("import sys; print('half of it'); sys.exit('no such table')")

    with pytest.raises(RuntimeError, match=r"(?s)ended 1:.*half of it.*no such table"):
        run_command(failing, os.environ)
    assert run_command(failing, os.environ, codes=(0, 1)).err == "no such table\n"

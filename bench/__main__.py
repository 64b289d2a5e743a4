"""Run the benches: the short form takes under ten minutes, `--full` all of them some hours.

Each bench of the line-up (`bench/full.py`) runs in a separate process and leaves a result in
`bench/results`. After `--full`, docs/explanation/benchmarks.md is written from these results.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence

from bench.full import FULL, SHORT, Bench


def run_all(benches: Sequence[Bench]) -> list[str]:
    """Run the benches one after the other; return the commands of those that did not succeed."""
    failed = []
    for number, bench in enumerate(benches, 1):
        command = f"python -m bench.{bench.command}"
        missing = [program for program in bench.needs if shutil.which(program) is None]
        if missing:
            print(f"\n{command} needs {' and '.join(missing)}, which is not on PATH", flush=True)
        else:
            print(f"\n[{number}/{len(benches)}] {command}", flush=True)
        if missing or subprocess.run([sys.executable, *shlex.split(command)[1:]]).returncode:
            failed.append(command)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all benches, more rounds")
    full = parser.parse_args().full
    failed = run_all(FULL if full else SHORT)
    if full:
        from bench.page import write_pages

        for path in write_pages():
            print(f"written: {path}", flush=True)
    if failed:
        raise SystemExit("\nnot run, or failed:\n  " + "\n  ".join(failed))


if __name__ == "__main__":
    main()

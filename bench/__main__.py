"""Run the benches. Short by default; `--full` adds the long ones."""

from __future__ import annotations

import argparse

from bench import load_memory, load_small


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all benches, more rounds")
    full = parser.parse_args().full
    load_small.run(rows=1_000_000, rounds=5 if full else 3)
    load_memory.run(size_bytes=2 << 30 if full else 256 << 20)


if __name__ == "__main__":
    main()

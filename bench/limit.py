"""The server's own limit of writing: prepared frames, replayed.

The denominator of every load figure. `python -m bench.limit HOST PORT KEYSPACE.TABLE FILE ROWS`
prints one JSON line. ROWS to a frame: 1 for EXECUTE frames, or more for batches. Native protocol
v4 (its specification, section 4): a VOID result is 13 bytes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.frames import batches_of, bound_rows, frames_of
from bench.replay import WINDOW, replay
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.tables import find_table

VOID = 13


def main() -> None:
    host, port, name, path, rows = sys.argv[1:6]
    keyspace, _, table = name.partition(".")
    session = open_session(ClusterConfig(contact_points=(host,), port=int(port)))
    schema = find_table(DriverView(session), keyspace, table)
    # Batches of rows with neighbouring tokens, which a server writes fastest.
    bound = bound_rows(session, schema, Path(path), by_token=rows != "1")
    close_session(session)
    # The same number of unanswered rows for any rows a frame.
    window = WINDOW // int(rows)
    frames = frames_of(bound, streams=WINDOW) if rows == "1" else batches_of(bound, int(rows))
    spent = replay(host, int(port), frames, voids, window=window)
    print(json.dumps({"rows": bound.count, "work_s": spent.work_s, "cpu_s": spent.cpu_s}))


def voids(data: bytes) -> tuple[int, int]:
    """Return the complete VOID results in `data` and their bytes. `RuntimeError` for others."""
    answers = len(data) // VOID
    whole = data[: answers * VOID]
    if whole[4::VOID] != b"\x08" * answers or whole[8::VOID] != b"\x04" * answers:
        raise RuntimeError(f"an answer that is no VOID result: {whole[:200]!r}")
    return answers, answers * VOID


if __name__ == "__main__":
    main()

"""The server's own limit of answering: EXECUTE frames of a SELECT, prepared and replayed.

The denominator of the figures of lookup and exec. `python -m bench.select_limit HOST PORT STATEMENT
FILE KEYS` prints one JSON line. The statement has one marker, a text or, if KEYS is more than 1, a
list of KEYS texts; the texts are the first column of FILE.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.frames import list_value, select_frames
from bench.replay import HEADER, RESULT, WINDOW, replay
from ringhaul.cluster.connect import ClusterConfig, close_session, open_session
from ringhaul.cql.decode.head import read_head


def main() -> None:
    host, port, statement, path, each = sys.argv[1:6]
    session = open_session(ClusterConfig(contact_points=(host,), port=int(port)))
    query_id = session.prepare(statement).query_id
    close_session(session)
    with Path(path).open(newline="", encoding="utf-8") as file:
        keys = [record[0].encode() for record in csv.reader(file)][1:]
    frames = select_frames(query_id, marker_values(keys, int(each)), streams=WINDOW)
    answers = Answers()
    spent = replay(host, int(port), frames, answers.count)
    result = {"rows": answers.rows, "bytes": answers.bytes_count}
    print(json.dumps(result | {"work_s": spent.work_s, "cpu_s": spent.cpu_s}))


def marker_values(keys: Sequence[bytes], each: int) -> list[bytes]:
    """Return the marker's values: the keys, or lists of `each` keys."""
    if each == 1:
        return list(keys)
    return [list_value(keys[first : first + each]) for first in range(0, len(keys), each)]


class Answers:
    """Counts rows and bytes of the answers."""

    def __init__(self) -> None:
        self.rows, self.bytes_count = 0, 0

    def count(self, data: bytes) -> tuple[int, int]:
        """Return the complete answers in `data`, and their bytes. Raise if one has no rows."""
        answers, at = 0, 0
        while len(data) - at >= HEADER.size:
            _, _, _, opcode, length = HEADER.unpack_from(data, at)
            end = at + HEADER.size + length
            if end > len(data):
                break
            body = memoryview(data)[at + HEADER.size : end]
            if opcode != RESULT:
                raise RuntimeError(f"an answer that is no result: {bytes(body[:200])!r}")
            self.rows += read_head(body).rows_count
            answers, at = answers + 1, end
        self.bytes_count += at
        return answers, at


if __name__ == "__main__":
    main()

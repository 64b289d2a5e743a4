"""Texts for null that do not fit the files."""

from __future__ import annotations

from pathlib import Path

from tests.planning import PlannedRinghaul

MYSQL = (
    b"1\tY\tplain\t10\n2\tN\tone\\\ttwo\t20\n3\tN\tline one\\\nline two\t\\N\n"
    b"4\t\tback\\\\slash\t7\n5\t\\N\t\\N\t\\N\n6\t\\\\N\ta\r\\\nb\x01\x1a\t1\n"
    b"7\tNULL\tends in \\\\\t-1\n8\tN\t\\\\n\\\\t \xc3\xa9 \xf0\x9f\x98\x80\t0\n"
)


def test_a_null_text_that_would_make_flags_null_is_refused(
    fleet: PlannedRinghaul, tmp_path: Path
) -> None:
    path = tmp_path / "people.txt"
    path.write_bytes(MYSQL)
    done = fleet.run("load", path, "-t", "a.b", "--escape", "\\", "--null", "N")
    assert done.code == 2
    assert r"give --null '\N' for dumps that write null like this" in done.err

"""Commands `lookup` and `exec` that cannot work: refused with a message and an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.planning import PlannedRinghaul


@pytest.fixture
def table(keyspace: str) -> str:
    """A table with the columns `id text` (the key), `n int` and `note text`."""
    return f"{keyspace}.notes"


REFUSED: dict[str, tuple[list[Any], int, str]] = {
    "nothing to run over": (
        ["exec", "SELECT n FROM {t} WHERE id = 'a'", "--range", "id:0..1"],
        2,
        "no marker",
    ),
    "no values": (["exec", "SELECT n FROM {t} WHERE id = ?"], 2, "--params FILE, or one --range"),
    "broken range": (
        ["exec", "SELECT n FROM {t} WHERE id = ?", "--range", "id:a..b"],
        2,
        "id:a..b",
    ),
    "no such keyspace": (["lookup", "-t", "nowhere.t", "--keys", "{keys}"], 4, "no keyspace"),
    "no key": (
        ["lookup", "-t", "{t}", "--key", "", "--keys", "{keys}"],
        2,
        "--key '' names no column",
    ),
    "no columns": (
        ["lookup", "-t", "{t}", "--columns", ",", "--keys", "{keys}"],
        2,
        "--columns ',' names no column",
    ),
    "schema change": (["exec", "DROP TABLE {t}", "--range", "id:0..1"], 2, "cannot run DROP"),
    "form of no answers": (
        ["exec", "DELETE FROM {t} WHERE id = ?", "--params", "{keys}", "--no-header", "-o", "out"],
        2,
        "--output, --header: this DELETE has no answers",
    ),
    "embedded workers": (
        ["exec", "DELETE FROM {t} WHERE id = ?", "--params", "{keys}", "-c", "2"],
        2,
        "-c applies to embedded workers, and a broker is configured",
    ),
    "no such column": (
        ["lookup", "-t", "{t}", "--columns", '"N"', "--keys", "{keys}"],
        2,
        "did you mean 'n'?",
    ),
    "column twice": (
        ["lookup", "-t", "{t}", "--columns", "n,note,n", "--keys", "{keys}"],
        2,
        "column 'n' is requested twice",
    ),
    "answers of one name": (
        ["exec", "SELECT id, n, note AS n FROM {t} WHERE id = ?", "--range", "id:0..1"],
        2,
        "two columns of the answers are called 'n': name one with AS",
    ),
    "no such file": (["lookup", "-t", "{t}", "--keys", "/nowhere.csv"], 2, "/nowhere.csv"),
    "no such field": (
        ["lookup", "-t", "{t}", "--keys", "{other}"],
        2,
        "no field is named 'id'; its fields are name; if the first record is data, give "
        "--no-values-header",
    ),
    "no record": (["lookup", "-t", "{t}", "--keys", "{empty}"], 2, "it has no header"),
    "a file and ranges": (
        ["exec", "SELECT n FROM {t} WHERE id = ?", "--params", "{keys}", "--range", "id:0..1"],
        2,
        "give --params FILE, or one --range for each marker",
    ),
    "a range twice": (
        ["exec", "SELECT n FROM {t} WHERE id = ?", "--range", "id:0..1", "--range", "id:2..3"],
        2,
        "--range is given for id, id, and the markers are id",
    ),
    "a marker without a field": (
        ["exec", "UPDATE {t} SET n = ? WHERE id = ?", "--params", "{keys}"],
        2,
        "no field is named 'n'; its fields are id",
    ),
    "compression": (
        ["lookup", "-t", "{t}", "--keys", "{keys}", "-o", "out", "--compression", "lzip"],
        2,
        "lzip",
    ),
    "no folder, but a page": (
        ["lookup", "-t", "{t}", "--keys", "{keys}", "-o", "http://localhost/out"],
        2,
        "http://localhost/out",
    ),
    "no bucket": (["lookup", "-t", "{t}", "--keys", "{keys}", "-o", "s3://"], 2, "s3://"),
    "name of a job": (["lookup", "-t", "{t}", "--keys", "{keys}", "--job-id", "a b"], 2, '"a b"'),
    "nulls of a SELECT": (
        *(["exec", "SELECT n FROM {t} WHERE id = ?", "--params", "{keys}", "--nulls", "unset"], 2),
        "--nulls applies to writes, and this SELECT writes nothing",
    ),
    "nulls of ranges": (
        ["exec", "DELETE FROM {t} WHERE id = ?", "--range", "id:0..1", "--nulls", "tombstone"],
        2,
        "the --values options and --nulls apply to a file",
    ),
    "values of ranges": (
        ["exec", "SELECT n FROM {t} WHERE id = ?", "--range", "id:0..1", "--values-null", "x"],
        2,
        "the --values options and --nulls apply to a file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_command_that_cannot_work_is_refused(
    fleet: PlannedRinghaul, table: str, tmp_path: Path, case: str
) -> None:
    (tmp_path / "keys.csv").write_text("id\nk1\n")
    (tmp_path / "other.csv").write_text("name\nk1\n")
    options, code, words = REFUSED[case]
    (tmp_path / "empty.csv").touch()
    names = {"t": table} | {name: tmp_path / f"{name}.csv" for name in ("keys", "other", "empty")}
    finished = fleet.run(*(str(option).format(**names) for option in options))
    assert finished.code == code, finished
    assert words in finished.err
    assert "Traceback" not in finished.err

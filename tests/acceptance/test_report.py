"""The report of a job: its figures are the ledger's, and there is nothing in it to keep secret."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import create_table
from tests.refusals import assert_refused, assert_usage

#: In a value that is not a number, and markup beside it.
SENTINEL = "Kx9-top-secret-value"
MARKUP = "<script>alert(1)</script>"


class Attributes(HTMLParser):
    """The `data-` attributes of a page, its elements, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.data: dict[str, list[str]] = {}
        self.figures: dict[str, str] = {}
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        found = {name: value or "" for name, value in attrs if name.startswith("data-")}
        for name, value in found.items():
            self.data.setdefault(name, []).append(value)
        if "data-figure" in found:
            self.figures[found["data-figure"]] = found["data-value"]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, total int")


def load(fleet: Ringhaul, table: str, *options: object) -> Finished:
    """Load 300 rows in several units, with two rejects."""
    rows = "".join(f"{n},{n * 7}\n" for n in range(300))
    bad = f'17,"{SENTINEL} {MARKUP}"\n18,{SENTINEL}\x1b[31m\n'
    (fleet.cwd / "in.csv").write_text(f"id,total\n{rows}{bad}")
    return fleet.run("load", "in.csv", "-t", table, "--unit-size", "64KiB", "--json", *options)


def test_a_report_has_the_figures_of_the_job_and_no_data(fleet: Ringhaul, table: str) -> None:
    done = load(fleet, table, "--report", "job.html")
    job = done.summary["job"]
    assert done.code == 1, done
    assert done.err.endswith(" report   job.html\n")
    page = (fleet.cwd / "job.html").read_text()
    newest = fleet.run("report", "-o", "newest.html")
    assert newest.err == f"{job}, the newest load:\nreport written to newest.html\n", newest
    assert f"<title>{job}" in (fleet.cwd / "newest.html").read_text()
    found = Attributes(page)

    # Each figure is that of `status --json`
    (summary,) = [json.loads(line) for line in fleet.run("status", job, "--json").out.splitlines()]
    single = {
        name: value
        for name, value in summary.items()
        if value is None or isinstance(value, (int, float, str))
    }
    del single["message_type"]
    assert set(found.figures) == set(single)
    for name, value in single.items():
        shown = found.figures[name]
        assert shown == (value if isinstance(value, str) else json.dumps(value)), name
    # and so are those at the top, of hosts, and of groups of rejects
    assert found.data["data-rows"] == ["300"] == [str(summary["rows"])]
    assert found.data["data-rejected"] == ["2"]
    assert sum(map(int, found.data["data-host-rows"])) == 300
    assert sum(map(int, found.data["data-rejects"])) == 2
    assert found.data["data-state"] == ["PARTIAL"]
    # It says which command made the job, and which is next
    assert f"ringhaul load in.csv -t {table}" in found.text
    assert "ringhaul errors" in found.text
    assert "is not a whole number" in found.text
    assert "first unit" in found.text

    # Nothing secret
    assert SENTINEL not in page
    assert (urlsplit(fleet.env["RINGHAUL_BROKER_URL"]).password or SENTINEL) not in page
    # Nothing to run or to fetch
    assert "script" not in found.elements and "link" not in found.elements
    assert {name for name in found.attributes if name in ("src", "href", "onload")} == set()
    assert "default-src 'none'" in page
    assert re.search(r"(?<!')https?://", page) is None
    assert list(fleet.cwd.glob(".*tmp")) == []


def test_a_report_with_data_shows_it_as_text(fleet: Ringhaul, table: str) -> None:
    job = load(fleet, table).summary["job"]
    printed = fleet.run("report", job, "-o", "-", "--show-data")
    assert printed.code == 0, printed
    found = Attributes(printed.out)
    assert f"{SENTINEL} {MARKUP}" in found.text
    assert f"{SENTINEL}\\x1b[31m" in found.text
    assert "\x1b" not in printed.out
    assert "script" not in found.elements
    # and without, there is none
    hidden = fleet.run("report", job, "-o", "-")
    assert SENTINEL not in hidden.out and MARKUP not in hidden.out


def test_a_folder_gets_a_report_of_each_job(fleet: Ringhaul, table: str) -> None:
    folder = fleet.cwd / "reports"
    folder.mkdir()
    job = load(fleet, table, "--report", folder).summary["job"]
    count = fleet.run("count", "-t", table, "--report", folder)
    assert (count.code, count.out.strip().splitlines()[-1].strip()) == (0, "300"), count
    unloaded = fleet.run("unload", "-t", table, "-o", "out", "--report", folder, "--json")
    (fleet.cwd / "keys.csv").write_text("id\n1\n2\n9999\n")
    looked_up = fleet.run(
        *("lookup", "-t", table, "--keys", "keys.csv", "-o", "found", "--json"),
        *("--report", folder),
    )
    assert (unloaded.code, looked_up.code) == (0, 0), (unloaded, looked_up)
    pages = {path.stem: Attributes(path.read_text()) for path in folder.iterdir()}
    assert len(pages) == 4 and job in pages
    for one in (unloaded, looked_up):
        summary: dict[str, Any] = one.summary
        shown = pages[summary["job"]].figures
        assert (shown["rows"], shown["units"]) == (str(summary["rows"]), str(summary["units"]))
    # A job that has ended is reported later, too, by its own command and by others
    for name, command in {
        "a.html": ("report", job, "-o", "a.html"),
        "b.html": ("status", "-f", job, "--report", "b.html"),
    }.items():
        assert fleet.run(*command).code in (0, 1)
        again = Attributes((fleet.cwd / name).read_text())
        assert again.figures == pages[job].figures


def test_a_report_that_cannot_be_written_is_refused_or_told(fleet: Ringhaul, table: str) -> None:
    gone = fleet.cwd / "gone"
    refused = load(fleet, table, "--report", gone / "x.html")
    assert_usage(refused, f"Invalid value for '--report': there is no folder {gone}")
    folder = load(fleet, table, "--report", f"{gone}/")
    assert_usage(folder, f"Invalid value for '--report': there is no folder {gone}/")
    dash = load(fleet, table, "--report", "-")
    assert_usage(
        dash,
        "Invalid value for '--report': standard output is for data; `ringhaul report JOB -o -` "
        "prints a report",
    )
    detached = load(fleet, table, "--report", "x.html", "--detach")
    assert (detached.code, "--report is written at the end" in detached.err) == (2, True)
    # The outcome of the job is reported before the file that fails
    full = load(fleet, table, "--report", "/dev/full")
    assert full.code == 4
    assert full.summary["rows"] == 300
    assert full.err.endswith("error: /dev/full: cannot be written: No space left on device\n")
    assert_refused(
        fleet.run("report", full.summary["job"], "-o", gone / "x.html"),
        2,
        f"{gone / 'x.html'}: cannot be written: No such file or directory",
    )
    lost = fleet.run("report", full.summary["job"], "-o", f"{gone}/")
    assert (lost.code, f"there is no folder {gone}/" in lost.err) == (2, True)
    unknown = fleet.run("report", "ld-000000", "-o", "x.html")
    assert (unknown.code, "there is no job ld-000000" in unknown.err) == (2, True)
    assert not Path(fleet.cwd / "x.html").exists()
    both = fleet.run("status", "--report", "x.html")
    assert_refused(both, 2, "--report writes one job: name it (`ringhaul status` lists them)")

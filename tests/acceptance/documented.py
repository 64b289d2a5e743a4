"""Run lines of the docs in a shell, and read the files that they leave."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.acceptance.command import Finished, Ringhaul
from tests.unit.test_docs import shared_options

#: The section of docs/reference about options that every job has.
OF_EVERY_JOB = shared_options("Options of every job")


def in_keyspace(shop: str, line: str) -> str:
    """Return a line of the docs, with the test's keyspace and transforms."""
    line = line.replace("shop.", f"{shop}.").replace("-k shop", f"-k {shop}")
    return line.replace("--transform etl:", "--transform rh_etl:")


def run_line(fleet: Ringhaul, shop: str, line: str) -> Finished:
    """Run a line of the docs in a shell."""
    return fleet.run_script(in_keyspace(shop, line))


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def listed(folder: Path) -> tuple[int, list[Path]]:
    """Return the manifest's row count and its files."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    return manifest["totals"]["rows"], [folder / part["name"] for part in manifest["parts"]]

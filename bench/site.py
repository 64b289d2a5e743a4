"""The place of a measurement: one table, its file, and the running worker."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.data import Table, data_file
from bench.harness import Run, System
from bench.stage import KEYSPACE, Stage
from config.sections import cache_dir_default
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.tables import find_table


@dataclass(frozen=True)
class Site:
    """An existing table, and the file to load into it, or from which it was filled."""

    stage: Stage
    table: Table
    path: Path
    rows: int
    worker_pid: int

    @property
    def name(self) -> str:
        """The table's name with its keyspace."""
        return f"{KEYSPACE}.{self.table.name}"

    @property
    def schema(self) -> TableSchema:
        """The table's schema from the cluster."""
        return find_table(DriverView(self.stage.session), KEYSPACE, self.table.name)

    def system(self, name: str, family: str, run: Callable[[], Run]) -> System:
        """Return a system that loads this site's file."""
        return System(name, family, lambda: self.stage.truncate(self.table), run)

    def reader(self, name: str, family: str, run: Callable[[Path], Run]) -> System:
        """Return a system that reads this site's table. Each run gets an empty folder."""
        folder = self.stage.folder / "out"

        def reset() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()

        return System(name, family, reset, lambda: run(folder))

    def check(self, rows: int) -> None:
        """Raise if the table does not hold so many rows: a load that lost rows does not count."""
        found = self.stage.count(self.table)
        if found != rows:
            raise RuntimeError(f"{found} rows are in {self.name}, {rows} were reported")

    def bytes_of(self, rows: int) -> int:
        """Return the bytes of the file's first `rows` records, assuming equal sizes."""
        return self.path.stat().st_size * rows // self.rows


def make_site(stage: Stage, table: Table, rows: int, worker_pid: int) -> Site:
    """Generate the file if it is missing, and create the table again."""
    path = data_file(cache_dir_default() / "bench", table, rows=rows)
    stage.create(table)
    return Site(stage, table, path, rows, worker_pid)

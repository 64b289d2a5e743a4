"""What a load's options say about its destination."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from producer.options.load import LoadOptions
from ringhaul.destination.cql import Cql
from ringhaul.destination.files import Files
from ringhaul.errors import UsageError
from ringhaul.sstables.version import SSTableVersion


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The destination that the options of a load name."""

    name: str = Cql.name
    folder: Path | None = None  #: folder of SSTables, if the load writes files
    version: SSTableVersion = SSTableVersion.NB  #: version of the SSTables in `folder`


def wanted_destination(options: LoadOptions) -> Wanted:
    """Return the destination of a load. Raises `UsageError` for options that it has no use for."""
    folder = options.to_sstables
    name = options.via if folder is None else Files.name
    if "sstable_size" in options.given and name == Cql.name:
        raise UsageError(
            "--sstable-size needs --to-sstables, or a --via other than cql: give one of "
            "them, or leave it out"
        )
    if "sstable_version" in options.given and folder is None:
        raise UsageError(
            "--sstable-version needs --to-sstables (with --via streaming the nodes decide): "
            "give both, or leave it out"
        )
    if options.via != Cql.name:
        _refuse_beside(f"--via {options.via}", options.given)
    return Wanted(name=name, folder=folder, version=SSTableVersion(options.sstable_version))


def _refuse_beside(via: str, given: Collection[str]) -> None:
    """Raise `UsageError` for an option that does not go with SSTables."""
    if "strategy" in given:
        raise UsageError(
            f"--strategy says how requests are sent, and {via} sends none: leave one of them out"
        )
    if "create_table" in given:
        raise UsageError(
            f"{via} needs the table's options, such as its compression: create the table "
            "first (`--create-table --dry-run` prints a statement for what the files hold)"
        )

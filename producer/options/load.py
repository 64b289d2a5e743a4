"""Options of `load`, most of which `verify` and `tune` share."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path

from producer.options.groups import Group
from producer.options.job import JobOptions
from producer.options.kinds import FLAG, Choice, PathOf, PlaceList, Sources, Whole
from producer.options.option import again, argument, option
from producer.options.preserving import Preserving
from producer.options.spelling import Spelling
from ringhaul.ledger.kinds import JobKind

#: An option of `load` alone, which a verification and trials lack.
_of_load = partial(option, commands=("load",))


@dataclass(frozen=True, kw_only=True)
class LoadOptions(JobOptions, Spelling, Preserving):
    """`load` and `verify`: a verification is a load that compares rows instead of writing them."""

    sources: tuple[str, ...] = argument(
        "SOURCE...",
        Sources(),
        help="Files, globs, folders, URLs, or - for standard input.",
        group=Group.ROWS,
    )
    keyspace: str | None = option(
        "-k --keyspace",
        metavar="NAME",
        help="Keyspace of the table.",
        group=Group.ROWS,
        common=True,
    )
    table: str = option(
        "-t --table",
        default=MISSING,
        metavar="NAME",
        help="Table, or KEYSPACE.TABLE.",
        group=Group.ROWS,
        common=True,
    )
    urlfile: str | None = option(
        "--urlfile",
        PlaceList(),
        metavar="FILE",
        help="Read further sources from this file, one on each line; -: from standard input.",
        group=Group.ROWS,
        eager=True,
    )
    where: str | None = option(
        "--where",
        metavar="CONDITION",
        help="Only rows for which this holds, as in SQL.",
        group=Group.ROWS,
        common=True,
    )
    transforms: tuple[str, ...] = option(
        "--transform",
        repeated=True,
        metavar="MODULE:FUNCTION",
        help="Put records through a function that the workers' settings allow; may be repeated.",
        group=Group.ROWS,
    )
    hive_partitioning: bool = option(
        "--hive-partitioning",
        FLAG,
        help="Folders such as year=2023/region=north give these columns, as Hive and Spark do.",
        group=Group.ROWS,
        said="columns in the names of folders",
    )
    nulls: str = option(
        "--nulls",
        Choice(("unset", "tombstone")),
        "unset",
        help="unset: leave the column as it is; tombstone: delete its value.",
        group=Group.ROWS,
    )
    max_errors: str | None = option(
        "--max-errors",
        metavar="N|N%",
        help="Stop when more records are rejected [1000]; -1: never.",
        brief="Stop when more records are rejected [1000].",
        group=Group.JOB,
        common=True,
        how=True,
        setting="load.max_errors",
    )
    consistency: str | None = again(
        JobOptions, "consistency", help="Consistency level for writes [LOCAL_QUORUM]."
    )
    unit_size: str | None = option(
        "--unit-size",
        metavar="BYTES",
        help="Size of one unit of work, e.g. 16M [adaptive].",
        group=Group.JOB,
        commands=("load", "verify"),
        how=True,
        setting="load.unit_bytes",
    )
    kind: JobKind = JobKind.LOAD
    times: bool = option(
        "--times",
        FLAG,
        help="Also compare write times and TTLs: the fields writetime(COLUMN) and ttl(COLUMN).",
        group=Group.ROWS,
        brief="Also compare write times and TTLs.",
        common=True,
        commands=("verify",),
    )
    ttl: int = _of_load(
        "--ttl",
        Whole(),
        0,
        metavar="S",
        help="Seconds until rows expire.",
        group=Group.ROWS,
        common=True,
    )
    ttl_field: str | None = _of_load(
        "--ttl-field",
        metavar="FIELD",
        help="Field with the seconds until each row expires; empty: --ttl.",
        group=Group.ROWS,
    )
    timestamp: str | None = _of_load(
        "--timestamp",
        metavar="US|ISO|now",
        help="Write timestamp of the first record; each next is 1 us later [a little before now].",
        group=Group.ROWS,
    )
    timestamp_field: str | None = _of_load(
        "--timestamp-field",
        metavar="FIELD",
        help="Field with each row's write time: a name, or a position from 0.",
        group=Group.ROWS,
    )
    exact_timestamps: bool = _of_load(
        "--exact-timestamps",
        FLAG,
        help="Never re-send rows with a list column at a later time; reject those without an "
        "answer.",
        group=Group.ROWS,
    )
    strategy: str | None = _of_load(
        "--strategy",
        Choice(("pipeline", "single", "token-batch")),
        help="Small batches or single rows to the replicas, or batches through the driver "
        "[pipeline].",
        group=Group.JOB,
        how=True,
        setting="load.strategy",
    )
    create_table: bool = _of_load(
        "--create-table",
        FLAG,
        help="Create the table first: types from a sample of the files, shown and confirmed.",
        brief="Create the table first, as a sample of the files suggests.",
        group=Group.NEW_TABLE,
        common=True,
        # How the table came about. Its key counts: rows of one key overwrite each other.
        how=True,
        no_step="a step loads into a table that exists",
    )
    primary_key: str | None = _of_load(
        "--primary-key",
        metavar="A,B|(A,B),C",
        help="Key of the new table: partition key, clustering columns [id, or the first column].",
        group=Group.NEW_TABLE,
    )
    types: tuple[str, ...] = _of_load(
        "--type",
        repeated=True,
        metavar="COLUMN=TYPE",
        help="Type of a column of the new table, instead of the type that its values suggest.",
        group=Group.NEW_TABLE,
    )
    yes: bool = _of_load(
        "--yes", FLAG, help="Create the table without asking.", group=Group.NEW_TABLE, how=True
    )
    to_sstables: Path | None = _of_load(
        "--to-sstables",
        PathOf(file=False),
        metavar="FOLDER",
        help="Write SSTables for `nodetool import` to this folder, and no rows to the cluster.",
        group=Group.SSTABLES,
    )
    via: str = _of_load(
        "--via",
        Choice(("cql", "streaming", "import")),
        "cql",
        help="cql: as requests; streaming: as SSTables to the nodes' storage port; import: by a "
        "folder from which nodes import SSTables.",
        group=Group.SSTABLES,
    )
    sstable_size: str | None = _of_load(
        "--sstable-size",
        metavar="BYTES",
        help="Size of one SSTable, unless rows go over CQL, e.g. 256M [1 GiB].",
        group=Group.SSTABLES,
        how=True,
        setting="sstables.size_bytes",
    )
    sstable_version: str = _of_load(
        "--sstable-version",
        Choice(("nb", "oa")),
        "nb",
        help="For --to-sstables; oa stores TTLs beyond 2038, but not all nodes of 5.0 read it.",
        group=Group.SSTABLES,
    )

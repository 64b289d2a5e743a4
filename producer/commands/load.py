"""`ringhaul load`: options in, exit code out. The work is in `producer.run.load`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import rich_click as click

from producer.commands.job_command import job_command
from producer.commands.options import (
    connection_options,
    following_options,
    preserving_options,
    sharing_options,
)
from producer.commands.record_options import record_options
from producer.request.options import LoadOptions
from ringhaul.ledger.kinds import JobKind


@click.command("load")
@record_options
@click.option(
    "--nulls",
    type=click.Choice(["unset", "tombstone"]),
    default="unset",
    show_default=True,
    help="unset: leave the column as it is; tombstone: delete its value.",
)
@click.option(
    "--max-errors", metavar="N|N%", help="Stop when more records are rejected [1000]; -1: never."
)
@click.option("--consistency", metavar="LEVEL", help="Consistency level for writes [LOCAL_QUORUM].")
@click.option("--ttl", type=int, default=0, metavar="S", help="Seconds until rows expire.")
@click.option(
    "--timestamp",
    metavar="US|ISO|now",
    help="Write timestamp of the first record; each next is 1 us later [a little before now].",
)
@click.option(
    "--timestamp-field",
    metavar="FIELD",
    help="Field with each row's write time: a name, or a position from 0.",
)
@click.option(
    "--ttl-field",
    metavar="FIELD",
    help="Field with the seconds until each row expires; empty: --ttl.",
)
@click.option(
    "--exact-timestamps",
    is_flag=True,
    help="Rows with a list keep their write times: one that is not answered is a reject.",
)
@preserving_options
@click.option(
    "--strategy",
    type=click.Choice(["pipeline", "single", "token-batch"]),
    help="Small batches or single rows to the replicas, or batches through the driver [pipeline].",
)
@click.option(
    "--via",
    type=click.Choice(["cql", "streaming", "import"]),
    default="cql",
    show_default=True,
    help="cql: as requests; streaming: as SSTables to the nodes' storage port; import: by a folder "
    "from which nodes import SSTables.",
)
@click.option(
    "--to-sstables",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write SSTables for `nodetool import` to this folder, and no rows to the cluster.",
)
@click.option(
    "--sstable-size",
    metavar="BYTES",
    help="Size of one SSTable, unless rows go over CQL, e.g. 256M [1 GiB].",
)
@click.option(
    "--sstable-version",
    type=click.Choice(["nb", "oa"]),
    default="nb",
    show_default=True,
    help="For --to-sstables; oa stores TTLs beyond 2038, but not all nodes of 5.0 read it.",
)
@click.option("--unit-size", metavar="BYTES", help="Size of one unit of work, e.g. 16M [adaptive].")
@click.option(
    "--create-table",
    is_flag=True,
    help="Create the table first: types from a sample of the files, shown and confirmed.",
)
@click.option(
    "--primary-key",
    metavar="A,B|(A,B),C",
    help="Key of the new table: partition key, clustering columns [id, or the first column].",
)
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=TYPE",
    help="Type of a column of the new table, instead of the one that its values suggest.",
)
@click.option("--yes", is_flag=True, help="Create the table without asking.")
@click.option("--dry-run", is_flag=True, help="Check a sample, print the plan, write nothing.")
@click.option("--detach", is_flag=True, help="Leave the job to the workers and return.")
@sharing_options
@following_options
@connection_options
@job_command(JobKind.LOAD)
def load_command(options: LoadOptions) -> int:
    """Load CSV, JSON Lines or Parquet files into a table.

    SOURCE is a file, a glob, a folder, a URL or - for standard input; .gz, .zst, .bz2, .xz, .lz4,
    .br, .lzma and the files in a .zip are unpacked while they are read.
    """
    from producer.services.start import start_load

    with ExitStack() as stack:
        services = start_load(stack, options)
        # Imported now, while the services start: both take as long.
        from producer.run.load import run_load

        return run_load(options, services)

"""Plan a load that writes SSTables to a folder, and move them there at its end."""

from __future__ import annotations

import os

from producer.destination.layout import in_version, layout_of
from producer.destination.version import check_reads
from producer.destination.way import LoadFacts, Way
from ringhaul.destination.files import Files
from ringhaul.errors import UsageError
from ringhaul.ledger.reading import Reader
from ringhaul.load.publish_sstables import publish_sstables
from ringhaul.sstables.components import DATA
from ringhaul.storage.access import check_place

OPTION = "--to-sstables"


class FilesWay(Way[Files]):
    """A folder for SSTables, which may be imported later."""

    def plan(self, facts: LoadFacts) -> Files:
        folder, version, table = facts.wanted.folder, facts.wanted.version, facts.table
        assert folder is not None
        layout = in_version(
            version,
            layout_of(OPTION, table, facts.cluster, facts.sources),
            OPTION,
            facts.ttl_s,
            or_else=", or --sstable-version oa for nodes with storage_compatibility_mode NONE",
        )
        output = Files(
            folder=str(folder.absolute()), keyspace=table.keyspace, table=table.table, layout=layout
        )
        check_place(output.final)
        if os.path.isdir(output.final) and any(n.endswith(DATA) for n in os.listdir(output.final)):
            raise UsageError(
                f"{OPTION} {folder}: {output.final} has SSTables already; import and remove them, "
                "or name another folder"
            )
        check_reads(facts.cluster, version)
        return output

    def publish(self, ledger: Reader, job_id: str, destination: Files) -> None:
        publish_sstables(ledger, job_id, destination)


WAY = FilesWay()

"""Bring one SSTable to one node by its import, and wait until its rows can be read there.

A session blocks; `ringhaul.streaming.delivery` runs each in a thread.
"""

from __future__ import annotations

from collections.abc import Callable

from ringhaul.imports.command import ImportCall, ImportCommand, ImportRefused
from ringhaul.imports.folder import ImportFolders
from ringhaul.streaming.allowance import unlimited
from ringhaul.streaming.owners import Node
from ringhaul.streaming.session import StreamedSSTable


class ImportSession:
    """One import by one node."""

    def __init__(self, node: Node, folders: ImportFolders, command: ImportCommand) -> None:
        self._node, self._folders = node, folders
        self._call = ImportCall(command, node)

    def send(self, sstable: StreamedSSTable, take: Callable[[int], int] = unlimited) -> None:
        """Return when the node serves the SSTable's rows. Nothing is left in the folder.

        `take` is called before bytes are written, with their number, and returns how many may go.

        Each call writes the files again: what became of a failed call's files is not known, and a
        node finds nothing wrong with an empty folder.

        Raises as `ImportCall.run` and `ImportFolders.new` do.
        """
        left_bytes = sstable.bytes_count
        while left_bytes:
            left_bytes -= take(left_bytes)
        drop = self._folders.new(self._node)
        try:
            drop.write(sstable.version, sstable.components, self._call.check)
            self._call.run(self._folders.keyspace, self._folders.table, drop.seen)
            if drop.withdraw(sstable.version):
                raise ImportRefused(
                    f"{self._node.address} says that it imported {drop.seen}, and the files were "
                    "still there: does it see the same folder (imports.node_folder)?"
                )
        finally:
            drop.remove()

    def probe(self) -> None:
        """Have the node import an empty folder: it does so only if it is reachable, knows the table
        and may change the folder. Raises as `send` does."""
        drop = self._folders.new(self._node)
        try:
            self._call.run(self._folders.keyspace, self._folders.table, drop.seen)
        finally:
            drop.remove()

    def abort(self) -> None:
        """End the session, from another thread."""
        self._call.abort()

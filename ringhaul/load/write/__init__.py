"""Write strategies behind one small interface: rows in, answers counted, faults told by row."""

from __future__ import annotations

from collections.abc import Callable

from cassandra.cluster import Session
from cassandra.query import PreparedStatement

from ringhaul.load.write.base import TICK_S, WriteOptions, Writer, WriterHooks
from ringhaul.load.write.concurrent import ConcurrentWriter
from ringhaul.load.write.token_batch import TokenBatchWriter

WriterFactory = Callable[[Session, PreparedStatement, str, WriteOptions, WriterHooks], Writer]

#: Strategy name -> writer. The names are what `--strategy` takes.
WRITERS: dict[str, WriterFactory] = {
    "token-batch": TokenBatchWriter,
    "concurrent": ConcurrentWriter,
}

__all__ = ["TICK_S", "WRITERS", "WriteOptions", "Writer", "WriterFactory", "WriterHooks"]

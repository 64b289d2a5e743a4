"""Write strategies behind one small interface: rows in, answers counted, errors by row."""

from __future__ import annotations

from collections.abc import Callable

from ringhaul.dataplane.base import RequestBounds, RequestOptions, Target
from ringhaul.load.write.base import Writer, WriterHooks
from ringhaul.load.write.pipeline import PipelineWriter, SingleWriter
from ringhaul.load.write.token_batch import TokenBatchWriter

WriterFactory = Callable[[Target, RequestOptions, WriterHooks], Writer]

#: Strategy name -> writer. The names are the values of `load.strategy`.
WRITERS: dict[str, WriterFactory] = {
    "pipeline": PipelineWriter,
    "single": SingleWriter,
    "token-batch": TokenBatchWriter,
}

__all__ = [
    "WRITERS",
    "RequestBounds",
    "RequestOptions",
    "Target",
    "Writer",
    "WriterFactory",
    "WriterHooks",
]

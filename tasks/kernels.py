"""The compiled kernels: numba compiles them once per machine and then loads them from its cache."""

from __future__ import annotations

import importlib
import logging

from ringhaul.formats import json_documents, record_end

log = logging.getLogger(__name__)

#: Modules that contain or import kernels.
_MODULES = (
    "ringhaul.cql.decode.columns",
    "ringhaul.cql.spell.digits",
    "ringhaul.cql.spell.kernels",
    "ringhaul.formats.fixed_kernels",
    "ringhaul.formats.footer_kernels",
    "ringhaul.formats.write.row_kernels",
    "ringhaul.sstables.build",
    "ringhaul.statements.kernels",
    "tasks.child.scan",
    "tasks.child.statements",
    "tasks.child.verify",
)


def warm_up() -> None:
    """Load all kernels (about 0.4 s), or compile them (some seconds, the first time on a machine).

    A failure is only logged, since a worker without kernels can still load files; the first read
    reports it.
    """
    try:
        for name in _MODULES:
            importlib.import_module(name)
        record_end.warm_up()
        json_documents.warm_up()
    except Exception:
        log.exception("the compiled kernels of the read side cannot be loaded")

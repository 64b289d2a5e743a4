"""The compiled kernels: numba compiles them once per machine and then loads them from its cache."""

from __future__ import annotations

import importlib
import logging

log = logging.getLogger(__name__)


def warm_up() -> None:
    """Load all kernels (about 0.4 s), or compile them (some seconds, the first time on a machine).

    A failure is only logged, since a worker without kernels can still load files; the first read
    reports it.
    """
    try:
        from ringhaul.cql import decode, spell
        from ringhaul.formats import json_documents, record_end, write
        from ringhaul.statements import replies

        for name in (
            "tasks.child.scan",
            "tasks.child.statements",
            "tasks.child.verify",
            "ringhaul.formats.fixed_kernels",
            "ringhaul.formats.footer_kernels",
            "ringhaul.sstables.build",
        ):
            importlib.import_module(name)
        decode.warm_up()
        spell.warm_up()
        write.warm_up()
        record_end.warm_up()
        json_documents.warm_up()
        replies.warm_up()
    except Exception:
        log.exception("the compiled kernels of the read side cannot be loaded")

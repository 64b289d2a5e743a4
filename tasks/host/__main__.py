"""Report about this host: run as a script by a worker's parent process, which must not block and
must not open a driver session.

Standard input: `{"sys_path": [...]}`. Standard output: lines of JSON, each with the parts of a
`HostReport` that are ready. Ends within `LIMIT_S`, whatever hangs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 7.0
#: Sessions that open at the same time over all hosts, see `ringhaul.ledger.openings`: more than
#: workers may, since these stay open for a moment only.
OPENINGS_FACTOR = 4
OPENING_WAIT_S = 2.0
OPENING_TTL_MS = 10_000
#: How long Redis is tried.
PATIENCE_MS = 2000

_lock = threading.Lock()


def main() -> None:
    from config.secrets import mask
    from config.settings import load_settings
    from tasks.command_line import spell_as
    from tasks.host.machine import comparable_settings, measure_machine, versions

    # Modules are imported here: threads that import block each other.
    from tasks.host.report import HostReport, pack_report

    spell_as(None)
    loaded = load_settings()

    def say(**parts: Any) -> None:
        line = json.dumps(pack_report(HostReport(**parts))).encode() + b"\n"
        with _lock:
            os.write(1, line)

    say(versions=versions(), settings=comparable_settings(loaded))
    machine = _start(lambda: say(machine=measure_machine(loaded.settings)))

    from ringhaul.ledger.rights import describe_refused, refused_commands, user_of
    from tasks.connect import cluster_config, open_ledger
    from tasks.host.clock import broker_offset
    from tasks.host.cluster import view_cluster
    from tasks.host.report import ClusterView

    def look_at_broker() -> None:
        caller = open_ledger(loaded.settings, PATIENCE_MS).caller
        say(broker_clock=broker_offset(caller))
        refused = refused_commands(caller, loaded.settings.broker.key_prefix)
        say(refused=describe_refused(refused, user_of(caller)))

    def look_at_cluster() -> None:
        from ringhaul.ledger.openings import Openings

        openings = Openings(open_ledger(loaded.settings, PATIENCE_MS).caller)
        places = OPENINGS_FACTOR * loaded.settings.worker.session_openings_max
        token = openings.acquire("doctor", places, OPENING_TTL_MS, OPENING_WAIT_S)
        if token is None:
            return  # many hosts look at once: this part is not checked
        try:
            try:
                say(cluster=view_cluster(cluster_config(loaded.settings)))
            except Exception as error:  # settings that cannot be used, such as a missing file
                say(cluster=ClusterView(error=mask(str(error))))
        finally:
            openings.release("doctor", token)

    parts = [machine, _start(look_at_broker), _start(look_at_cluster)]
    give_up = _started + LIMIT_S
    for part in parts:
        part.join(max(0.0, give_up - time.monotonic()))


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    _started = time.monotonic()
    sys.path[:] = json.loads(sys.stdin.buffer.read())["sys_path"]
    from ringhaul.own_packages import find_own_packages

    find_own_packages()
    main()
    os._exit(0)  # a thread may hang on a mount or a node

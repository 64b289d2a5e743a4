"""Report about this host: run as a script by a worker's parent process, which must not block and
must not open a driver session. See `examination`.

Standard input: `{"sys_path": [...]}`.
"""

from __future__ import annotations

import json
import os
import sys
import time

if __name__ == "__main__":
    _started = time.monotonic()
    sys.path[:] = json.loads(sys.stdin.buffer.read())["sys_path"]
    from ringhaul.own_packages import find_own_packages

    find_own_packages()
    from tasks.host.examination import report_host

    report_host(_started)
    os._exit(0)  # a thread may hang on a mount or a node

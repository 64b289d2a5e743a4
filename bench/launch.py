"""Run one command and write what it cost to a file descriptor, as JSON.

`python -I -S launch.py FD COMMAND...`. A process of its own, and a small one: the kernel counts
the memory of whoever starts a program into that program's peak, and a bench is larger than some
of what it measures.
"""

import json
import os
import sys
import time

told, command = int(sys.argv[1]), sys.argv[2:]
os.set_inheritable(told, False)
started = time.perf_counter()
pid = os.posix_spawnp(command[0], command, os.environ)
_, status, usage = os.wait4(pid, 0)
cost = {
    "whole_s": time.perf_counter() - started,
    "cpu_s": usage.ru_utime + usage.ru_stime,
    "rss_bytes_max": usage.ru_maxrss * 1024,
    "code": os.waitstatus_to_exitcode(status),
}
os.write(told, json.dumps(cost).encode())

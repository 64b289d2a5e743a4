"""Run one command and write what it cost to a file descriptor, as JSON.

`python -I -S launch.py FD COMMAND...`. A process of its own, and a small one: the kernel counts
the memory of whoever starts a program into that program's peak, and a bench is larger than some
of what it measures.

What the command leaves behind without waiting for it (workers that it killed) is waited for here.
"""

import ctypes
import json
import os
import sys
import time

#: Of prctl(2).
PR_SET_CHILD_SUBREAPER = 36
#: What was killed when the command ended is gone after this.
GONE_S = 0.1

told, command = int(sys.argv[1]), sys.argv[2:]
os.set_inheritable(told, False)
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
started = time.perf_counter()
pid = os.posix_spawnp(command[0], command, os.environ)
_, status, usage = os.wait4(pid, 0)
whole_s = time.perf_counter() - started
usages = [usage]
time.sleep(GONE_S)
try:
    while (ended := os.wait4(-1, os.WNOHANG))[0]:
        usages.append(ended[2])
except ChildProcessError:  # nobody is left, not even one that goes on
    pass
cost = {
    "whole_s": whole_s,
    "cpu_s": sum(one.ru_utime + one.ru_stime for one in usages),
    "rss_bytes_max": max(one.ru_maxrss for one in usages) * 1024,
    "code": os.waitstatus_to_exitcode(status),
}
os.write(told, json.dumps(cost).encode())

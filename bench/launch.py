"""Run one command and write what it cost to a file descriptor, as JSON.

`python -I -S launch.py FD COMMAND...`. A small, separate process: the kernel counts the memory of
a program's parent into the program's peak, and a bench is larger than some of the programs that it
measures.

It also waits for children that the command did not wait for (workers that it killed).
"""

import ctypes
import json
import os
import sys
import time

#: From prctl(2).
PR_SET_CHILD_SUBREAPER = 36
#: Children killed at the end of the command are gone after this time.
GONE_S = 0.1

cost_fd, command = int(sys.argv[1]), sys.argv[2:]
os.set_inheritable(cost_fd, False)
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
except ChildProcessError:  # no child is left, not even a running one
    pass
cost = {
    "whole_s": whole_s,
    "cpu_s": sum(one.ru_utime + one.ru_stime for one in usages),
    "rss_bytes_max": max(one.ru_maxrss for one in usages) * 1024,
    "code": os.waitstatus_to_exitcode(status),
}
os.write(cost_fd, json.dumps(cost).encode())

"""Be a command that is forked: `python -I -S fork_client.py SOCKET ARGUMENT...`, for shell scripts.

SOCKET is an inherited descriptor of `fork_server.ForkServer`. The command gets the standard
streams, the environment and the folder of this process, which ends as the command does. It reads no
module that a process can do without: it takes a fiftieth of the time of a command.
"""

import json
import os
import signal
import socket
import sys


def main() -> int:
    reply, theirs = socket.socketpair()
    request = {
        "arguments": sys.argv[2:],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }
    with socket.socket(fileno=int(sys.argv[1])) as control, reply.makefile("rw") as lines:
        socket.send_fds(control, [b"\n"], [0, 1, 2, theirs.fileno()])
        theirs.close()
        lines.write(json.dumps(request) + "\n")
        lines.flush()
        lines.readline()  # its process id
        # What reads from it or writes to it must see its end, not that of this process.
        for stream in (0, 1, 2):
            os.close(stream)
        code = os.waitstatus_to_exitcode(int(lines.readline()))
    if code < 0:  # ended by a signal
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    os._exit(main())  # without the streams that it has closed

"""A process between a program and its command: it ends the command when the program is gone.

It is run by its path; its arguments are the folder of the call and the command line. The program
holds the other end of this process's standard input, and writes one byte for each signal: `i` for
Ctrl-C, `k` for SIGKILL. When that end is closed, or another process has become the parent, the
program was killed: the command gets Ctrl-C, later another, at last SIGKILL. The exit code is
the command's; 128 + N after a signal N, as in a shell. If the program is gone, the folder is
removed, which may hold a password.

The program starts this process in a new session, so that Ctrl-C on a terminal, which goes to
all processes there, reaches the command only once.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

#: Seconds that an abandoned command has for its end after each Ctrl-C. Workers finish a block.
PATIENCE_S = 20.0
#: How often to look for the program: a process that it forked may keep its end of the pipe open.
LOOK_EVERY_S = 1.0
#: Exit code of a shell for a program that does not exist or cannot be run.
NOT_STARTED = 127


def main(folder: str, argv: list[str]) -> int:
    """Run the command to its end; return the exit code."""
    parent = os.getppid()
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    # In the background of a shell Ctrl-C is ignored, and the command would inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        command = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched, pressed, press_at = [ended, 0], 0, float("inf")
    while command.poll() is None:
        ready = select.select(watched, [], [], LOOK_EVERY_S)[0]
        if ended in ready:
            os.read(ended, 4096)
        keys = os.read(0, 4096) if 0 in ready else b""
        if 0 in watched and (os.getppid() != parent or (0 in ready and not keys)):
            watched = [ended]
            press_at = time.monotonic()
        if time.monotonic() >= press_at:
            pressed, press_at = pressed + 1, time.monotonic() + PATIENCE_S
            keys = b"i" if pressed <= 2 else b"k"
        for key in keys:
            with contextlib.suppress(ProcessLookupError):
                command.send_signal(signal.SIGKILL if key == ord("k") else signal.SIGINT)
    if watched == [ended]:
        import shutil  # rarely needed, and this process starts with each call

        shutil.rmtree(folder, ignore_errors=True)
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))

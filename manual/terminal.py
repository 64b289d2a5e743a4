"""Run a command on a terminal of a given size, and keep what its screen shows.

The screen knows what `rich` writes: line ends, cursor up, erasing, colours. Other sequences have no
effect.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

_SEQUENCE = re.compile(
    r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[\]P].*?(?:\x07|\x1b\\)|\x1b[()].|\x1b[=>]", re.DOTALL
)
#: The beginning of one, at the end of a text.
_UNFINISHED = re.compile(r"\x1b(?:\[[?0-9;]*|[\]P](?:(?!\x07|\x1b\\).)*|[()])?\Z", re.DOTALL)
#: A character and the SGR parameters with which it was written.
_Cell = tuple[str, str]


class Screen:
    """What a terminal shows, with its scrollback."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._lines: list[list[_Cell]] = [[]]
        self._row = self._column = 0
        self._style = ""
        self._unfinished = ""

    def write(self, text: str) -> None:
        """Show what a program writes. A sequence may be split between two calls."""
        text = self._unfinished + text
        unfinished = _UNFINISHED.search(text)
        self._unfinished = unfinished[0] if unfinished else ""
        text = text.removesuffix(self._unfinished)
        at = 0
        for match in _SEQUENCE.finditer(text):
            self._put(text[at : match.start()])
            if match[2]:
                self._obey(match[1], match[2])
            at = match.end()
        self._put(text[at:])

    def ansi(self) -> str:
        """Return the lines as text with colours, without empty ones at the end."""
        lines = []
        for cells in self._lines:
            line, style = "", ""
            for char, wanted in cells:
                if wanted != style:
                    line += f"\x1b[0m\x1b[{wanted}m" if wanted else "\x1b[0m"
                    style = wanted
                line += char
            lines.append(line.rstrip() + ("\x1b[0m" if style else ""))
        while lines and not re.sub(r"\x1b\[[0-9;]*m", "", lines[-1]).strip():
            lines.pop()
        return "\n".join(lines)

    def text(self) -> str:
        """Return the lines without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.ansi())

    def _put(self, text: str) -> None:
        for char in text:
            if char == "\r":
                self._column = 0
            elif char == "\n":
                self._row, self._column = self._row + 1, 0
            elif char == "\b":
                self._column = max(0, self._column - 1)
            elif char >= " ":
                if self._column >= self._columns:
                    self._row, self._column = self._row + 1, 0
                line = self._line()
                line += [(" ", "")] * (self._column + 1 - len(line))
                line[self._column] = (char, self._style)
                self._column += 1

    def _line(self) -> list[_Cell]:
        self._lines += [[] for _ in range(self._row + 1 - len(self._lines))]
        return self._lines[self._row]

    def _obey(self, parameters: str, command: str) -> None:
        number = int(parameters) if parameters.isdecimal() else 0
        if command == "m":
            codes = parameters.split(";") if parameters else ["0"]
            if codes[0] in ("0", ""):
                self._style, codes = "", codes[1:]
            self._style = ";".join(filter(None, [self._style, *codes]))
        elif command == "A":
            self._row = max(0, self._row - (number or 1))
        elif command == "G":
            self._column = max(0, number - 1)
        elif command == "K":
            line = self._line()
            line[:] = [] if number == 2 else line[: self._column]
        elif command == "J":
            del self._lines[self._row + 1 :]
            self._line()[self._column :] = []
        elif command == "H":
            self._row = self._column = 0


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    columns: int,
    *,
    lines: int = 40,
    for_s: float = 120.0,
    until: str = "",
) -> Screen:
    """Run a command on a terminal, to its end or for so long; return its screen.

    With `until` the command is stopped by Ctrl-C once its screen has this pattern.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvpe(argv[0], list(argv), {**env, "TERM": "xterm-256color"})
        finally:
            os._exit(127)
    # A character may be split between two reads.
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    screen, end_s = Screen(columns), time.monotonic() + for_s
    try:
        while time.monotonic() < end_s:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:  # EIO: the command has ended
                break
            screen.write(decode(data))
            if until and re.search(until, screen.text()):
                os.kill(pid, signal.SIGINT)
                break
        else:
            os.kill(pid, signal.SIGKILL)
        _drain(terminal)
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    return screen


def _drain(terminal: int) -> None:
    """Read to the end, so that the command is not held up by a full terminal.

    Not for long: a process that it started and left running may keep the terminal open.
    """
    try:
        while select.select([terminal], [], [], 5.0)[0] and os.read(terminal, 65536):
            pass
    except OSError:
        return

"""The screen that pictures and tests of live displays are taken from."""

from __future__ import annotations

from manual.terminal import Screen

#: A bar that is drawn twice and erased, a window's title, character sets, and coloured text.
WRITTEN = (
    "\x1b[?25l\x1b]0;a title\x07\x1b(B\x1b=one \x1b[1;32mbar\x1b[0m\r\n two\r\x1b[1A\x1b[2K"
    "\x1b]8;;http://h/\x1b\\\x1b[31mred\x1b[0m text\x1b[?25h"
)


def shown(*parts: str) -> str:
    screen = Screen(80)
    for part in parts:
        screen.write(part)
    return screen.ansi()


def test_a_screen_shows_what_is_left_after_its_sequences() -> None:
    assert shown(WRITTEN) == "\x1b[0m\x1b[31mred\x1b[0m text\n two"


def test_sequences_that_are_read_in_parts_are_sequences() -> None:
    whole = shown(WRITTEN)
    for cut in range(1, len(WRITTEN)):
        assert shown(WRITTEN[:cut], WRITTEN[cut:]) == whole, repr(WRITTEN[:cut])
    assert shown(*WRITTEN) == whole

"""The kinds of values that options have; `producer.commands.click_options` parses them."""

from __future__ import annotations


class Kind:
    """What an option's value is."""


class Text(Kind):
    """Any text."""


class Place(Text):
    """A file, a folder, the URL of either, or - for a standard stream."""


class PlaceList(Place):
    """A file that lists places, one on each line."""


class Flag(Kind):
    """True if the option is given; a switch such as `--header/--no-header` chooses either."""


class Choice(Kind):
    """One of some words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words


class Whole(Kind):
    """A whole number, `least` to `most`; None: no bound."""

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self.least, self.most = least, most


class Positive(Kind):
    """A number above 0, with decimals."""


class Rate(Kind):
    """Rows or bytes a second; see `producer.request.rate`."""


class Duration(Kind):
    """A time such as 90s or 10m, as whole seconds, of which there are `least_s` or more."""

    def __init__(self, least_s: int) -> None:
        self.least_s = least_s


class PathOf(Kind):
    """The path of a file or a folder. `file`, `folder`: whether an existing path may be that."""

    def __init__(self, *, file: bool = True, folder: bool = True, writable: bool = False) -> None:
        self.file, self.folder, self.writable = file, folder, writable


class NewFile(PathOf):
    """A file to write, in a folder that exists."""

    def __init__(self) -> None:
        super().__init__(folder=False, writable=True)


class ReportPlace(Kind):
    """A file to write a report into, or a folder that gets it under the name of the job."""


class Password(Kind):
    """A flag for a password prompt. The record does not hold its value."""


class Table(Kind):
    """A table, by the option, or by an argument in front of all others. `required`: by either."""

    def __init__(self, *, required: bool) -> None:
        self.required = required


class Sources(Place):
    """An argument: the places to read, which may be none if `--urlfile` lists them."""


TEXT = Text()
PLACE = Place()
FLAG = Flag()

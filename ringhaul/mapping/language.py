"""The text of a mapping, in parts. Pure: `targets.py` says what the parts mean for a file.

```
mapping  = entry, entry, ...
entry    = source = column | source : column | name
         | * = * | * = -name | * = [-name, -name]
source   = name | position | literal | function
literal  = 'text' | (type)value
function = name(...), also with the names of fields within
name     = any characters but , = : | "any characters", with quotes doubled
```

This is the language of DataStax Bulk Loader, with one addition: a name may hold blanks, parentheses
and colons without quotes where that is not ambiguous, as `FIELD=COLUMN` always allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ringhaul.errors import UsageError
from ringhaul.option_names import job_option
from ringhaul.records.wildcard import EVERY

_OPENING, _CLOSING = "([{", ")]}"
_CALL = re.compile(r'(?:(?:\w+|"(?:[^"]|"")*+")\.)?(?:\w+|"(?:[^"]|"")*+")\s*\(.*\)', re.DOTALL)
_TYPED = re.compile(r"\(\s*([a-zA-Z][\w<>, ]*)\)\s*(\S.*)", re.DOTALL)
#: A function about the time or the life of columns: its name, and what is within the parentheses.
_TIMES = re.compile(r"(writetime|ttl)\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
#: Function -> the option that adds it for each column.
PRESERVING = {"writetime": "preserve-timestamp", "ttl": "preserve-ttl"}
#: No record has more fields; and longer numbers are not read in linear time.
_POSITION_DIGITS_MAX = 9


class Term(NamedTuple):
    """One side of an entry."""

    text: str  #: without quotes
    quoted: bool = False  #: it was in double quotes, so it is a name

    @property
    def position(self) -> int | None:
        """The position, from 0, that the term may mean."""
        plain = not self.quoted and self.text.isascii() and self.text.isdecimal()
        return int(self.text) if plain and len(self.text) <= _POSITION_DIGITS_MAX else None

    @property
    def literal(self) -> str | None:
        """The text of a literal in single quotes."""
        if self.quoted or not self.text.startswith("'"):
            return None
        return self.text[1:-1].replace("''", "'")

    @property
    def typed(self) -> tuple[str, str] | None:
        """Type and value of a literal such as `(int)42`."""
        found = None if self.quoted else _TYPED.fullmatch(self.text)
        return None if found is None else (found[1].strip(), found[2].strip())

    @property
    def call(self) -> bool:
        """Whether the term may be a call of a function."""
        return not self.quoted and _CALL.fullmatch(self.text) is not None

    @property
    def times(self) -> tuple[str, list[str]] | None:
        """Function and columns of `writetime(a, b)` or `ttl(*)`."""
        found = None if self.quoted else _TIMES.fullmatch(self.text)
        if found is None:
            return None
        names = [_term(part, self.text).text for part in _parts(found[2], ",")]
        return found[1].lower(), names


class Entry(NamedTuple):
    """One entry that is not a wildcard."""

    left: Term
    right: Term | None = None  #: None: a name alone, or times alone

    @property
    def text(self) -> str:
        return self.left.text if self.right is None else f"{self.left.text}={self.right.text}"


@dataclass(frozen=True)
class MappingText:
    """A mapping; false if it is empty."""

    entries: tuple[Entry, ...] = ()
    rest: bool = False  #: all other fields go to the columns of their names
    excluded: tuple[str, ...] = ()  #: fields that `rest` leaves out
    preserved: tuple[str, ...] = ()  #: functions of `every_time` that an option added

    def __bool__(self) -> bool:
        return bool(self.entries) or self.rest

    @property
    def named(self) -> list[str]:
        """The names on the left, which may be names of fields."""
        return [entry.left.text for entry in self.entries]

    @property
    def paths(self) -> list[str]:
        """The names with dots, which may be paths into objects. Names in quotes are no paths."""
        sides = [e.right if e.left.times is not None else e.left for e in self.entries]
        return [
            side.text
            for side in sides
            if side is not None
            and not side.quoted
            and not _no_field(Entry(side))
            and len(side.text.split(".")) > 1
            and all(side.text.split("."))
        ]

    @property
    def positional(self) -> bool:
        """Whether fields are named only by their positions."""
        fields = [entry for entry in self.entries if not _no_field(entry)]
        if self.rest or not fields:
            return False
        return all(entry.right is not None and entry.left.position is not None for entry in fields)

    @property
    def every_time(self) -> tuple[str, ...]:
        """The functions that stand for a time of each column: `writetime(*)`, `ttl(*)`."""
        alone = (entry.left.times for entry in self.entries if entry.right is None)
        return tuple(times[0] for times in alone if times is not None and EVERY in times[1])

    def source_of(self, function: str) -> str:
        """Return the option or the part of the mapping that asks for a time of each column."""
        if function not in self.preserved:
            return f"{job_option('mapping')} {function}({EVERY})"
        return job_option(PRESERVING[function])

    @property
    def positions_count(self) -> int:
        """How many fields a record needs to have all fields that `positional` or `listed` entries
        name."""
        if self.listed:
            return len(self.entries)
        sides = [entry.left for entry in self.entries]
        sides += [e.right for e in self.entries if e.left.times is not None and e.right is not None]
        positions = (side.position for side in sides)
        return 1 + max((place for place in positions if place is not None), default=0)

    @property
    def listed(self) -> bool:
        """Whether the mapping is a list of columns, for fields in this order."""
        return not self.rest and any(
            entry.right is None and entry.left.times is None for entry in self.entries
        )

    @property
    def plain(self) -> dict[str, str] | None:
        """Field -> column, if the mapping has nothing but such pairs, each of another field."""
        if self.rest or any(entry.right is None or _no_field(entry) for entry in self.entries):
            return None
        pairs = {e.left.text: e.right.text for e in self.entries if e.right is not None}
        return pairs if len(pairs) == len(self.entries) else None


def _no_field(entry: Entry) -> bool:
    left = entry.left
    return left.literal is not None or left.typed is not None or left.call


def parse_mapping(
    text: str | None, option: str | None = None, *, reads: bool = False
) -> MappingText:
    """Parse a mapping. `reads`: it belongs to an unload, whose fields may be functions and
    constants without another name. Raises `UsageError`, which names the part at fault and `option`
    (None: the job's)."""
    option = option or job_option("mapping")
    entries: list[Entry] = []
    rest, excluded = False, list[str]()
    for part in _parts(text or "", ",", option):
        left_text, right_text = _sides(part)
        if left_text == EVERY:
            rest = True
            excluded += _exclusions(right_text, part, option)
            continue
        left = _term(left_text, part, option)
        if right_text is None:
            if not reads and _no_field(Entry(left)) and left.times is None:
                raise UsageError(
                    f"{option} {part!r}: give the column that it fills, as in {part}=COLUMN"
                )
            entries.append(Entry(left))
            continue
        right = _term(right_text, part, option)
        if not left.text.strip() or not right.text.strip():
            raise UsageError(f"{option} {part!r}: expected FIELD=COLUMN, separated by commas")
        if Entry(left, right) not in entries:
            entries.append(Entry(left, right))
    mapping = MappingText(tuple(entries), rest, tuple(excluded))
    paired = [entry for entry in entries if entry.right is not None and not _no_field(entry)]
    if mapping.listed and paired:
        alone = next(entry.text for entry in entries if entry.right is None)
        raise UsageError(f"{option} {alone!r}: expected FIELD=COLUMN, separated by commas")
    return mapping


def _exclusions(text: str | None, part: str, option: str) -> Iterator[str]:
    if text in (None, EVERY):
        return
    assert text is not None
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    for name in _parts(inner, ",", option):
        if not name.startswith("-"):
            raise UsageError(
                f"{option} {part!r}: after *= give *, -NAME or [-NAME,-NAME]: names to leave out"
            )
        yield _term(name[1:].strip(), part, option).text


def _sides(part: str) -> tuple[str, str | None]:
    """Return both sides of an entry; None: there is only a left side."""
    for separator in "=:":
        found = list(_parts(part, separator))
        if len(found) > 1:
            # A second separator belongs to the column's name.
            left = found[0]
            return left, part[part.index(separator, len(left)) + 1 :].strip()
        if part.rstrip().endswith(separator) or part.startswith(separator):
            left, _, right = part.partition(separator)
            return left.strip(), right.strip()
    return part, None


def _term(text: str, part: str, option: str = "") -> Term:
    option = option or job_option("mapping")
    if text.startswith('"') and _CALL.fullmatch(text) is None:
        if len(text) < 2 or not text.endswith('"') or '"' in text[1:-1].replace('""', ""):
            raise UsageError(
                f'{option} {part!r}: a name in quotes ends with them, and "" is a quote'
            )
        return Term(text[1:-1].replace('""', '"'), quoted=True)
    if text.startswith("'") and not re.fullmatch(r"'(?:[^']|'')*+'", text):
        raise UsageError(f"{option} {part!r}: a text in quotes ends with them, and '' is a quote")
    return Term(text)


def _parts(text: str, separator: str, option: str = "") -> Iterator[str]:
    """Yield the parts between separators outside of quotes and brackets, without blanks around.

    A quote counts at the beginning of a side and within brackets; empty parts are left out. Raises
    `UsageError` for quotes and brackets that are not closed.
    """
    begin, depth, quote, at_start = 0, 0, "", True
    for at, character in enumerate(text):
        if quote:
            # A doubled quote closes and opens again.
            quote = "" if character == quote else quote
        elif character in "\"'" and (at_start or depth or (at and text[at - 1] == character)):
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= depth > 0
        elif character == separator and not depth:
            if part := text[begin:at].strip():
                yield part
            begin = at + 1
        at_start = character in ",=:)" or (at_start and character.isspace())
    if quote or depth:
        what = f"the quote {quote}" if quote else "a bracket"
        option = option or job_option("mapping")
        raise UsageError(f"{option} {text[begin:].strip()!r}: {what} is not closed")
    if part := text[begin:].strip():
        yield part

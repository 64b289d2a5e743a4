"""A command of another tool as a command of ringhaul, and what differs. Pure."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ringhaul.formats.suffixes import suffixes_of


class NotTranslatable(ValueError):
    """The text is not a command that can be translated; the message says why."""


def suggest(written: str, known: Iterable[str]) -> str:
    """Return `; did you mean -delim?`, in the spelling of `known`, or "" if no name is near."""
    spellings = {name.lower(): name for name in known}
    near = difflib.get_close_matches(written.lower(), list(spellings), n=1)
    return f"; did you mean {spellings[near[0]]}?" if near else ""


class Kind(StrEnum):
    """What a note means for the rows; the words are printed before it."""

    NOTE = "note"  #: nothing changes
    DIFFERS = "may differ"  #: some rows or files may differ from the other tool's
    LOST = "no counterpart"  #: and so the rows may differ
    REFUSED = "refused"  #: ringhaul refuses the command


class Need(StrEnum):
    """What the table's schema can settle about a note."""

    COLUMNS = "columns"  #: the names of all columns, in the order of COPY
    TOKENS = "tokens"  #: the partition key
    NULLS = "nulls"  #: whether the table has counters, which have no nulls
    NESTED = "nested"  #: whether there are collections, tuples, user types or vectors


@dataclass(frozen=True)
class Note:
    """What a user has to know about one option."""

    option: str  #: as it was written, such as `MAXBATCHSIZE` or `--codec.geo`
    text: str
    kind: Kind = Kind.NOTE
    need: Need | None = None
    value: str = ""  #: what `need` checks: a comparison with the token, such as `> 5`

    @property
    def lost(self) -> bool:
        """Whether the command does not do what the other tool's does."""
        return self.kind in (Kind.LOST, Kind.REFUSED)


@dataclass(frozen=True)
class Translation:
    """A command of ringhaul."""

    words: tuple[str, ...]  #: after `ringhaul`
    notes: tuple[Note, ...] = ()
    #: The draft of `words`: a caller who knows more finishes a copy of it again.
    draft: Draft | None = field(default=None, compare=False, repr=False)

    @property
    def line(self) -> str:
        """The command for a shell."""
        return shlex.join(["ringhaul", *self.words])

    @property
    def complete(self) -> bool:
        """Whether every option that may change the rows has a counterpart, and the command runs."""
        return not any(note.lost for note in self.notes)

    @property
    def exact(self) -> bool:
        """Whether it is complete, and no note says that rows may differ."""
        return all(note.kind is Kind.NOTE for note in self.notes)

    def refused(self, why: str) -> Translation:
        """Return the translation with the reason why ringhaul refuses the command."""
        return replace(self, notes=(*self.notes, Note("ringhaul", why, Kind.REFUSED)))


@dataclass
class Draft:
    """A translation that is being made: option by option."""

    command: str = "load"  #: load, unload, exec or count
    #: A folder or file that an unload writes, the files that a load reads, a statement.
    operands: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    true_words: list[str] = field(default_factory=list)
    false_words: list[str] = field(default_factory=list)
    _options: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    #: The option that is being translated, as it was written.
    option: str = ""

    def add(self, name: str, *values: str) -> None:
        """Set an option, in place of what an earlier one set."""
        self._options[name] = [values]

    def repeat(self, name: str, value: str) -> None:
        """Set an option once more."""
        self._options.setdefault(name, []).append((value,))

    def drop(self, name: str) -> None:
        self._options.pop(name, None)

    def rename(self, name: str, new: str) -> None:
        """Give an option another name, in its place."""
        self._options = {(new if one == name else one): uses for one, uses in self._options.items()}

    def names(self) -> tuple[str, ...]:
        """Return the options that are set."""
        return tuple(self._options)

    def has(self, name: str) -> bool:
        return name in self._options

    def values(self, name: str) -> list[str]:
        """Return the values of an option, of all its uses."""
        return [value for values in self._options.get(name, ()) for value in values]

    @property
    def is_json(self) -> bool:
        """Whether the files are JSON."""
        return self.values("--format") == ["jsonl"]

    def note(self, text: str, need: Need | None = None) -> None:
        """Explain the present option."""
        self.notes.append(Note(self.option, text, need=need))

    def differ(self, text: str, need: Need | None = None) -> None:
        """Explain in which case the present option gives other rows."""
        self.notes.append(Note(self.option, text, Kind.DIFFERS, need))

    def lose(self, text: str, need: Need | None = None, value: str = "") -> None:
        """Explain why the present option has no counterpart."""
        self.notes.append(Note(self.option, text, Kind.LOST, need, value))

    def copy(self) -> Draft:
        """Return a draft that can be changed without this one."""
        return replace(
            self,
            operands=list(self.operands),
            notes=list(self.notes),
            _options={name: list(uses) for name, uses in self._options.items()},
        )

    def set_words(self) -> None:
        """Set the words for true and false, which several options of other tools make up."""
        if self.true_words or self.false_words:
            self.add("--true-words", ",".join(dict.fromkeys(self.true_words)))
            self.add("--false-words", ",".join(dict.fromkeys(self.false_words)))

    def finish(self) -> Translation:
        """Return the command, its options in the order in which they were set."""
        made_of = self.copy()
        self._name_table()
        self._name_folder()
        if self.has("--user") and not (self.has("--password") or self.has("--cqlshrc")):
            self.add("--password")  # cqlsh and Bulk Loader also ask for it
        words = [self.command, *self.operands]
        for name, uses in self._options.items():
            for values in uses:
                words += [name, *values]
        return Translation(tuple(words), tuple(self.notes), made_of)

    def _name_table(self) -> None:
        """Put keyspace and table into one option, unless a dot in a name forbids it, and first."""
        if not self.has("--table"):
            return
        names = [
            str(self._options[name][0][0]) for name in ("--keyspace", "--table") if self.has(name)
        ]
        if len(names) == 2 and "." not in "".join(names):
            self.drop("--keyspace")
            names = [".".join(names)]
        self.drop("--table")
        self._options = {"--table": [(names[-1],)], **self._options}

    def _name_folder(self) -> None:
        """Name a folder where a name like a file's would make the unload write a single file."""
        several = [one for one in ("--max-rows-per-file", "--file-name-format") if self.has(one)]
        place = next(iter(self.values("--output")), "")
        is_file = os.path.splitext(place)[1] in suffixes_of("auto")
        if place == "-":
            for name in (*several, "--single-file"):
                self.drop(name)
        elif several and is_file:
            self.add("--output", f"{place}/")
        if self.has("--max-rows-per-file") and self.has("--single-file"):
            self.drop("--single-file")
            self.option = "--max-rows-per-file"
            self.note("files of so many rows are written at once, not one after the other")

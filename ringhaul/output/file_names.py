"""Names of an unload's files as a user wants them: a pattern such as `orders-{number:06}.csv`.

Workers write parts under names of their own. The files get the pattern's names when all are there,
in the order of their tokens: the same rows in the same units have the same names each time.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from ringhaul.errors import UsageError
from ringhaul.formats.suffixes import SUFFIXES
from ringhaul.option_names import job_option
from ringhaul.storage.hidden import MANIFESTS, is_hidden_file

#: What a pattern may have in braces.
FIELDS = ("number", "keyspace", "table", "job")
#: Names of files have at most 255 bytes on a disk; a temporary name adds a few.
NAME_BYTES_MAX = 240
#: The largest number in a name, for checks in advance.
_NUMBER_MAX = 10**9
_WIDTH_MAX = 20
#: Bulk Loader's `%06d`.
_PERCENT = re.compile(r"%(0?[0-9]{0,2})d")
_WIDTH = re.compile(r"0?([0-9]{1,2})")


@dataclass(frozen=True)
class FileNames:
    """The names of an unload's files.

    Raises `UsageError` for a pattern that could give no file name, or two files one name.
    """

    pattern: str
    suffix: str  #: the end of each name, such as `.csv.gz`
    single: bool = False  #: there is one file, so that it needs no number

    def __post_init__(self) -> None:
        fields = self._fields()
        if "number" not in fields and not self.single:
            raise self._error("gives all files one name; add {number}, such as {number:06}")
        longest = self.name(_NUMBER_MAX, keyspace="k" * 48, table="t" * 48, job="j" * 20)
        if len(longest.encode()) > NAME_BYTES_MAX:
            raise self._error(f"may give names of more than {NAME_BYTES_MAX} bytes")
        literal = _literal(self.pattern)
        if re.search(r"[/\\]", literal):
            raise self._error("has a slash; it names files in the folder of -o, not folders")
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in literal):
            raise self._error("has a control character")
        if is_hidden_file(self.pattern):
            raise self._error(
                f"begins with {self.pattern[0]}; such files are hidden: a load of the folder skips "
                "them, as Spark and pandas do"
            )
        if (name := self.name(1, keyspace="k", table="t", job="j")) in MANIFESTS:
            raise self._error(f"is the name of the list of files, {name}")

    def name(self, number: int, *, keyspace: str, table: str, job: str) -> str:
        """Return the name of a file; `number` counts from 1."""
        text = _braces(self.pattern).format(number=number, keyspace=keyspace, table=table, job=job)
        return text + _missing_end(text, self.suffix)

    def _fields(self) -> set[str]:
        """Check the fields in braces; return their names."""
        try:
            parsed = list(string.Formatter().parse(_braces(self.pattern)))
        except ValueError as error:
            raise self._error(f"is not a pattern ({error}); double a brace to write it") from None
        found = set()
        for _, field, spec, conversion in parsed:
            if field is None:
                continue
            if field not in FIELDS or conversion:
                known = ", ".join(f"{{{name}}}" for name in FIELDS)
                raise self._error(f"has {{{field}}}, which is not one of {known}")
            self._check_width(field, spec or "")
            found.add(field)
        return found

    def _check_width(self, field: str, spec: str) -> None:
        if not spec:
            return
        width = _WIDTH.fullmatch(spec)
        if field != "number" or width is None or int(width[1]) > _WIDTH_MAX:
            raise self._error(f"has {{{field}:{spec}}}; only a number has a width, such as :06")

    def _error(self, what: str) -> UsageError:
        return UsageError(f"{job_option('file-name-format')} {self.pattern!r} {what}")


def _braces(pattern: str) -> str:
    return _PERCENT.sub(lambda found: f"{{number:{found[1]}}}" if found[1] else "{number}", pattern)


def _literal(pattern: str) -> str:
    return "".join(text for text, _, _, _ in string.Formatter().parse(_braces(pattern)))


def _missing_end(text: str, suffix: str) -> str:
    """Return what of the suffix a name lacks: `.gz` of `a.csv` if all files end with `.csv.gz`.

    `a.json` lacks nothing of `.jsonl`."""
    json = SUFFIXES["jsonl"]
    usual = next((one for one in json if suffix == one or suffix.startswith(f"{one}.")), None)
    if usual is not None:
        packed = suffix.removeprefix(usual)
        if text.endswith(tuple(f"{one}{packed}" for one in json)):
            return ""
        if text.endswith(json):
            return packed
    for cut in range(len(suffix), 0, -1):
        if suffix[:cut].endswith(text[-cut:]) and suffix[cut : cut + 1] in ("", "."):
            return suffix[cut:]
    return suffix

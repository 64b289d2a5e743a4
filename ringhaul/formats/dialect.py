"""How a CSV source is written: its special characters, its encoding, its leniency.

The grammar follows pyarrow's CSV parser, because that parser finally reads the fields, and the
splitter must agree with it on every byte:

- a record ends at LF, CRLF or a lone CR; empty lines and comment lines are not records;
- a quote is special only as the first character of a field; inside quotes a doubled quote
  stands for one; text between the closing quote and the delimiter is kept as written;
- the escape character, if there is one, makes the next byte ordinary, inside and outside quotes;
  what the two stand for depends on the escape style (`escapes.py`).

pyarrow cannot read a delimiter of several bytes, or drop blanks: `csv_escaped` can. Such a
delimiter is searched from left to right, without overlaps: with `||` the record `a|||b` is `a` and
`|b`.
"""

import codecs
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from encodings import normalize_encoding
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal

from ringhaul.errors import UsageError
from ringhaul.formats.escapes import PLAIN, QUOTED, STYLES, has_meaning
from ringhaul.formats.json_layouts import JSON_LAYOUTS
from ringhaul.option_names import input_option, job_option

Decoding = Literal["none", "block", "stream"]
#: Which characters end a record: LF, CRLF and a lone CR, or LF alone.
LINE_ENDS = ("any", "lf")
#: Where blanks (spaces and tabs) around fields are dropped: ``text``: outside quotes, so that a
#: field may be quoted after blanks; ``quoted``: also inside quotes.
TRIMS = ("none", "text", "quoted")
BLANKS = " \t"
#: Longer delimiters are typing errors.
DELIMITER_CHARACTERS_MAX = 16

#: pyarrow keeps null strings in a trie with 16-bit nodes; these bounds stay well inside it.
NULL_STRING_BYTES_MAX = 200
NULL_STRINGS_MAX = 100
#: Cassandra's largest mutation is 16 MiB by default, and a text takes up to six times as many bytes
#: in JSON (``\\u0001``), a blob twice as many. A third more is for the rest of a record: names in
#: JSON, delimiters, other columns.
RECORD_BYTES_MAX = 128 * 2**20
#: Encodings of Python that are for host names or of no use, not for files.
_NO_FILES = ("idna", "punycode", "undefined")


#: Delimiters by the names that people give them.
_DELIMITER_NAMES = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "pipe": "|",
    "space": " ",
}
#: A character typed as \t, a tab, or by its number, as in \x01.
_TYPED = re.compile(r"\\(?:t|x([0-9A-Fa-f]{2}))")


@dataclass(frozen=True, kw_only=True)
class CsvDialect:
    """The dialect of a source. Raises `UsageError` naming the option that cannot be used."""

    #: Separates fields: one or several characters, such as ``||``; may be given by name, or with
    #: ``\\t`` and ``\\x01`` for characters that are hard to type.
    delimiter: str = ","
    #: Encloses fields; None: quotes are ordinary characters.
    quote: str | None = '"'
    #: Makes the next character ordinary; None (or the quote itself): only doubled quotes.
    escape: str | None = None
    #: What the character after the escape character stands for: one of `escapes.STYLES`.
    escape_style: str = PLAIN
    #: One of `LINE_ENDS`. With ``lf`` a CR is an ordinary character.
    line_end: str = "any"
    #: Lines that begin with this character are skipped; None: no comments.
    comment: str | None = None
    #: Any text encoding Python knows.
    encoding: str = "utf-8"
    #: Unquoted texts that mean null, compared with fields as written: escapes are not decoded yet.
    null_strings: tuple[str, ...] = ("",)
    #: Whether quoted fields are also compared with `null_strings`.
    null_quoted: bool = False
    #: Unquoted text that stands for the empty text; None: no word does.
    empty_word: str | None = None
    #: Texts that replace an empty field, and an empty field in quotes; None: nothing does.
    fill_empty: str | None = None
    fill_quoted: str | None = None
    #: One of `TRIMS`.
    trim: str = "none"
    #: Records with more fields than the header: True drops the extra ones, False rejects.
    allow_extra_fields: bool = False
    #: Records with fewer fields: True makes the missing ones null, False rejects.
    allow_missing_fields: bool = False
    #: NUL bytes in values: True keeps them, False rejects the record.
    allow_nul: bool = False
    #: How JSON objects lie in a file: one of `JSON_LAYOUTS`.
    json_layout: str = "lines"
    #: Longer records are rejected without being parsed.
    record_bytes_max: int = RECORD_BYTES_MAX

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "delimiter", _delimiter(self.delimiter))
        if self.escape is not None and self.escape == self.quote:
            set_field(self, "escape", None)
        set_field(self, "encoding", _canonical_encoding(self.encoding))
        set_field(self, "null_strings", tuple(self.null_strings))
        self._check_characters()
        self._check_delimiter()
        self._check_style()
        self._check_null_strings()
        self._check_empty_word()
        if self.record_bytes_max < 1:
            raise UsageError(f"record_bytes_max: {self.record_bytes_max} is not at least 1")

    def _check_characters(self) -> None:
        single = len(self.delimiter) <= 1 and self.delimiter.isascii()
        taken: dict[str, str] = {}
        for option in ("delimiter", "quote", "escape", "comment")[not single :]:
            character = getattr(self, option)
            if character is None:
                continue
            if len(character) != 1 or not character.isascii() or character in "\r\n\0":
                raise UsageError(
                    f"{option}: {character!r} cannot be used; give one ASCII character "
                    "that is not a line end"
                )
            if character in taken:
                raise UsageError(
                    f"{option}: {character!r} is already the {taken[character]}; "
                    "give another character"
                )
            taken[character] = option

    def _check_delimiter(self) -> None:
        """Raise `UsageError` for a delimiter of several characters that cannot be used."""
        delimiter = self.delimiter
        if len(delimiter) <= 1 and delimiter.isascii():
            if self.trim != "none" and delimiter == " ":
                raise UsageError("trim: blanks are dropped, and the delimiter is one")
            return
        shown = repr(delimiter[:20])
        if len(delimiter) > DELIMITER_CHARACTERS_MAX:
            raise UsageError(
                f"delimiter: {shown}... has {len(delimiter)} characters, and at most "
                f"{DELIMITER_CHARACTERS_MAX} can divide fields"
            )
        if delimiter.isascii() and delimiter.isalnum():
            raise UsageError(
                f"delimiter: {shown} is not a name of one, and letters and digits alone cannot "
                f"divide fields; give characters such as ; or ||, \\x with two digits, ^A, or "
                f"{', '.join(_DELIMITER_NAMES)}"
            )
        for option, used in (
            ("quote", self.quote),
            ("escape", self.escape),
            ("comment character", self.comment),
            ("end of a line", "\n"),
            ("end of a line", "\r"),
            ("NUL character", "\0"),
        ):
            if used is not None and used in delimiter:
                raise UsageError(f"delimiter: {shown} holds the {option}; give other characters")
        if self.trim != "none" and any(blank in delimiter for blank in BLANKS):
            raise UsageError(
                f"trim: blanks are dropped, and the delimiter {shown} holds one; leave "
                f"{job_option('trim')} out, or give a delimiter without blanks"
            )
        try:
            delimiter.encode(self.encoding)
        except UnicodeEncodeError:
            raise UsageError(
                f"delimiter: {shown} cannot be written in {self.encoding}; give another encoding "
                "or delimiter"
            ) from None

    def _check_style(self) -> None:
        for option, known in (
            ("escape_style", STYLES),
            ("line_end", LINE_ENDS),
            ("json_layout", JSON_LAYOUTS),
            ("trim", TRIMS),
        ):
            if getattr(self, option) not in known:
                raise UsageError(
                    f"{option}: {getattr(self, option)!r} is not one of {', '.join(known)}"
                )
        if self.escape_style == QUOTED and self.quote is None:
            raise UsageError(
                "escape_style: quoted is about escapes within quotes, and there is no quote; give "
                "another style"
            )
        others = (("quote", self.quote), ("escape", self.escape), ("comment", self.comment))
        for option, character in (*(("delimiter", one) for one in self.delimiter), *others):
            if character is not None and has_meaning(character, self.escape_style):
                raise UsageError(
                    f"{option}: {character!r} after the escape character means another character "
                    f"in escape style {self.escape_style}; give another character or style"
                )

    def _check_null_strings(self) -> None:
        if len(self.null_strings) > NULL_STRINGS_MAX:
            raise UsageError(
                f"null_strings: {len(self.null_strings)} given, at most {NULL_STRINGS_MAX} allowed"
            )
        for text in self.null_strings:
            if len(text.encode()) > NULL_STRING_BYTES_MAX:
                raise UsageError(
                    f"null_strings: {text[:20]!r}... is longer than {NULL_STRING_BYTES_MAX} bytes"
                )
            if reason := self._never_a_field(text):
                raise UsageError(
                    f"null_strings: {text!r} {reason}, so no field can match it; give another text"
                )
        escape = self.bare_escape
        nulls = self.null_strings
        if escape is not None and "N" in nulls and f"{escape}N" not in nulls:
            null = input_option("null")
            raise UsageError(
                f"null_strings: 'N' with the escape {escape!r} makes a flag N null, and "
                f"{escape}N the text N; give {null} '{escape}N' for dumps that write null like "
                f"this, or {null} N {null} '{escape}N' if both are null"
            )

    def _check_empty_word(self) -> None:
        word = self.empty_word
        if word is None:
            return
        reason = self._never_a_field(word)
        if word in self.null_strings:
            reason = f"is null by {input_option('null')}"
        if not word:
            reason = "is what an empty field holds anyway"
        if reason:
            raise UsageError(f"empty_word: {word!r} {reason}; give another text")

    def _never_a_field(self, text: str) -> str:
        """Return why no unquoted field can be written as `text`; empty if one can."""
        escape, quote = self.bare_escape, self.quote
        if quote is not None and text.startswith(quote):
            return f"begins with the quote {quote!r}, and a quoted field is never null"
        bare = text if escape is None else re.sub(rf"{re.escape(escape)}.", "", text, flags=re.S)
        if escape is not None and escape in bare:
            return f"ends with the escape {escape!r}, which takes the next character"
        if self.delimiter in bare:
            return f"holds the delimiter {self.delimiter!r}"
        if "\n" in bare or ("\r" in bare and self.line_end == "any"):
            return "holds a line end"
        if self.comment is not None and text == self.comment:
            return f"is the comment character {self.comment!r}, which makes a line a comment"
        return ""

    @property
    def end_of_data(self) -> str | None:
        """The two characters of a line that PostgreSQL writes after the last record, or None."""
        if self.escape_style != "postgresql" or self.escape is None:
            return None
        return f"{self.escape}."

    @property
    def has_plain_backslash(self) -> bool:
        """Whether a backslash makes the next character ordinary, letters included."""
        return self.escape == "\\" and self.escape_style == PLAIN

    @property
    def bare_escape(self) -> str | None:
        """The escape character outside of quotes; None: there it is an ordinary character."""
        return None if self.escape_style == QUOTED else self.escape

    @property
    def decoding(self) -> Decoding:
        """Where text becomes UTF-8.

        ``none``: it is UTF-8. ``block``: the encoding has one byte per character, and ASCII only at
        its usual place, so records are found in the raw bytes and each block is decoded when it is
        read. ``stream``: anything else (UTF-16, UTF-32, GBK, EBCDIC ...), decoded while the file
        is read.
        """
        return _decoding(self.encoding)

    @property
    def raw_delimiter(self) -> bytes:
        """The delimiter as it is in the bytes in which records are found."""
        return self.delimiter.encode(self.encoding if self.decoding == "block" else "utf-8")

    @property
    def beyond_pyarrow(self) -> bool:
        """Whether the text has what pyarrow's parser cannot read, or reads in another way."""
        return (
            self.escape is not None
            or self.line_end != "any"
            or self.trim != "none"
            or len(self.delimiter.encode()) > 1
            or self.replaces_empty
        )

    @property
    def replaces_empty(self) -> bool:
        """Whether fields without text become texts, or texts become empty ones."""
        return any(
            text is not None for text in (self.empty_word, self.fill_empty, self.fill_quoted)
        )

    def to_json(self) -> dict[str, Any]:
        """Return a dict of JSON types that `from_json` takes."""
        fields = asdict(self)
        fields["null_strings"] = list(self.null_strings)
        return fields

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "CsvDialect":
        """Return the dialect `to_json` described. Raises `UsageError` naming an unknown option."""
        fields = {name: value for name, value in fields.items() if name != "option_prefix"}
        unknown = sorted(set(fields) - set(cls.__dataclass_fields__))
        if unknown:
            raise UsageError(f"{unknown[0]}: no such CSV option")
        return cls(**{**fields, "null_strings": tuple(fields.get("null_strings", ("",)))})


def _delimiter(typed: str) -> str:
    """Return the delimiter that a user typed: its characters, its name such as `tab`, or `^A`.

    Otherwise `\\t` is a tab, and `\\x` with two hexadecimal digits the character of that number.
    """
    if typed in _DELIMITER_NAMES:
        return _DELIMITER_NAMES[typed]
    if re.fullmatch(r"\^[A-Za-z]", typed):
        return chr(ord(typed[1].upper()) - ord("@"))
    return _TYPED.sub(lambda found: chr(int(found[1] or "09", 16)), typed)


def _canonical_encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        if not getattr(codec, "_is_text_encoding", True) or codec.name in _NO_FILES:
            raise LookupError
    except (LookupError, ValueError):
        raise UsageError(
            f"encoding: {name!r} is not known; give for example utf-8, utf-16, latin-1 or cp1252"
        ) from None
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


@lru_cache
def _decoding(encoding: str) -> Decoding:
    if encoding == "utf-8":
        return "none"
    # Python's single-byte encodings are those made of a table. Probing with bytes instead would
    # miss the stateful ones (ISO-2022-JP), in which ASCII is ASCII until an escape.
    table = encoding == "ascii"
    with suppress(ImportError):
        module = import_module(f"encodings.{normalize_encoding(encoding)}")
        table = table or hasattr(module, "decoding_table")
    if not table:
        return "stream"
    low, high = (bytes(half).decode(encoding, "replace") for half in (range(128), range(128, 256)))
    # The Mac encoding of Arabic has a second quote and a second comma, for right-to-left text.
    twice = any(character.isascii() for character in high)
    return "block" if low == "".join(map(chr, range(128))) and not twice else "stream"


#: RFC 4180, for callers without requirements.
RFC_4180 = CsvDialect()

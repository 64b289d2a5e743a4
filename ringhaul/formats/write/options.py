"""How rows are written: format, special characters and compression, as the user gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.escapes import PLAIN, has_meaning
from ringhaul.option_names import job_option

#: Format -> compressions it can have, the first being its default.
COMPRESSIONS: Mapping[str, tuple[str, ...]] = {
    "csv": ("none", "gzip", "zstd", "bz2", "xz", "lz4", "brotli"),
    "jsonl": ("none", "gzip", "zstd", "bz2", "xz", "lz4", "brotli"),
    "parquet": ("zstd", "snappy", "none"),
}
#: How objects lie in a written file, beside one on each line.
JSON_WRITTEN = ("array", "pretty")
#: What a compression adds to the name of a text file; the loader relies on it.
SUFFIXES: Mapping[str, str] = {
    "none": "",
    "gzip": ".gz",
    "zstd": ".zst",
    "bz2": ".bz2",
    "xz": ".xz",
    "lz4": ".lz4",
    "brotli": ".br",
}


#: The most digits of Parquet's decimals, as Arrow writes them.
DECIMAL_DIGITS_MAX = 76
_DECIMAL_TYPE = re.compile(r"\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*")


@dataclass(frozen=True, kw_only=True)
class OutputFormat:
    """How rows are written. Raises `UsageError` that names the option that cannot be used.

    Options that are not given take the format's default, so that equal formats compare equal.
    """

    #: csv, jsonl or parquet.
    kind: str = "csv"
    #: One of the format's `COMPRESSIONS`; empty: its default.
    compression: str = ""
    #: CSV only, like all options that follow: write the column names first, in every part.
    header: bool | None = None
    #: Separates fields: one character, or several such as ``||``.
    delimiter: str | None = None
    #: Encloses fields that need it: one ASCII character. Empty: none, and `escape` does the work.
    quote: str | None = None
    #: Precedes special characters, in place of quotes and of doubled quotes; empty: none.
    escape: str | None = None
    #: One of `escapes.STYLES`.
    escape_style: str | None = None
    #: lf or crlf.
    line_end: str | None = None
    #: Whether a byte order mark precedes the header.
    bom: bool | None = None
    #: Text for null, never quoted; a value with the same text is quoted.
    null: str | None = None
    #: Whether all values but null have quotes.
    quote_all: bool | None = None
    #: Text for the empty text, never quoted; None: two quotes. An equal value is quoted.
    empty_word: str | None = None
    #: Lines that begin with this character are comments to a reader: such values are quoted.
    comment: str | None = None
    #: Whether blanks around texts are dropped, and where: see `dialect.TRIMS`.
    trim: str | None = None
    #: Encoding of the text, also of JSON; None: UTF-8.
    encoding: str | None = None
    #: JSON only: array or pretty; None: one object on each line.
    json_layout: str | None = None
    #: JSON only: False leaves out members that are null.
    json_nulls: bool | None = None
    #: Parquet only: `P,S`, precision and scale of columns of decimals; None: they are text.
    decimal_type: str | None = None
    #: How values are spelled in text; None: in the usual way. Not for Parquet.
    values: TextFormat | None = None

    def __post_init__(self) -> None:
        if self.kind not in COMPRESSIONS:
            raise UsageError(f"format: {self.kind!r} is not one of {_listed(tuple(COMPRESSIONS))}")
        allowed = COMPRESSIONS[self.kind]
        if not self.compression:
            object.__setattr__(self, "compression", allowed[0])
        if self.compression not in allowed:
            raise UsageError(
                f"compression: {self.kind} can have {_listed(allowed)}, not {self.compression!r}"
            )
        for option in (*_CSV_DEFAULTS, *_CSV_ODD):
            given = getattr(self, option)
            if self.kind != "csv" and given is not None:
                name = option.replace("_", "-")
                raise UsageError(f"{name}: applies only to CSV, and the format is {self.kind}")
            # The usual value is left out, so that equal formats compare equal.
            if given == _CSV_ODD.get(option):
                object.__setattr__(self, option, None)
        self._check_json()
        self._check_encoding()
        self._check_decimals()
        for option, default in _CSV_DEFAULTS.items():
            if self.kind == "csv" and getattr(self, option) is None:
                object.__setattr__(self, option, default)
        if self.kind == "csv":
            self._check_characters()

    def _check_json(self) -> None:
        if self.json_layout == "lines":
            object.__setattr__(self, "json_layout", None)
        if self.json_nulls is True:
            object.__setattr__(self, "json_nulls", None)
        for name, given in (("json-layout", self.json_layout), ("json-nulls", self.json_nulls)):
            if given is not None and self.kind != "jsonl":
                raise UsageError(f"{name}: applies only to jsonl, and the format is {self.kind}")
        if self.json_layout not in (None, *JSON_WRITTEN):
            raise UsageError(f"json-layout: {self.json_layout!r} is not lines, array or pretty")
        if self.values == TextFormat():
            object.__setattr__(self, "values", None)
        if self.values is not None and self.kind == "parquet":
            raise UsageError(
                "format: Parquet has types, and options that spell values are for text: leave them "
                "out"
            )

    def _check_decimals(self) -> None:
        if self.decimal_type is None:
            return
        if self.kind != "parquet":
            raise UsageError(
                f"decimal-type: applies only to Parquet, and the format is {self.kind}"
            )
        precision, scale = self.decimal_digits or (0, 0)
        if not 1 <= precision <= DECIMAL_DIGITS_MAX or scale > precision:
            raise UsageError(
                f"decimal-type: {self.decimal_type!r}: give all digits and those after the "
                f"point, such as 20,4; at most {DECIMAL_DIGITS_MAX} in all"
            )

    @property
    def decimal_digits(self) -> tuple[int, int] | None:
        """Digits of decimals in Parquet, in all and after the point; None if they are text or the
        option is wrong."""
        found = _DECIMAL_TYPE.fullmatch(self.decimal_type or "")
        return (int(found[1]), int(found[2])) if found else None

    def _check_encoding(self) -> None:
        if self.encoding is None:
            return
        if self.kind == "parquet":
            raise UsageError("encoding: Parquet is not text: leave it out")
        try:
            encoding = CsvDialect(encoding=self.encoding).encoding
        except UsageError as error:
            raise UsageError(str(error)) from error
        object.__setattr__(self, "encoding", None if encoding == "utf-8" else encoding)

    def _check_characters(self) -> None:
        dialect = self._checked_dialect(())
        object.__setattr__(self, "delimiter", dialect.delimiter)
        # The quote as its own escape means doubled quotes, as in RFC 4180.
        object.__setattr__(self, "escape", dialect.escape)
        assert self.null is not None
        for character in (dialect.delimiter[:1], dialect.quote, "\r", "\n"):
            if character and character in self.null:
                raise UsageError(
                    f"null: {self.null!r} holds {character!r}, which has a special meaning in "
                    "the file; give another text"
                )
        for what, text in (("null", self.null), ("empty-word", self.empty_word)):
            if text and self.comment and text.startswith(self.comment):
                raise UsageError(
                    f"{what}: {text!r} begins with the comment character, and a line that begins "
                    "with it would be a comment; give another text"
                )
        if self.empty_word is not None and not dialect.quote:
            raise UsageError(
                f"empty-word: without quotes the text {self.empty_word!r} cannot be distinguished "
                f"from the empty text; give {job_option('quote')}, or leave it out"
            )
        if self.line_end not in (None, "crlf"):
            raise UsageError(f"line-end: {self.line_end!r} is neither lf nor crlf")
        if self.quote_all and not dialect.quote:
            raise UsageError(
                f"quote-all: there is no quote; give {job_option('quote')}, or leave it out"
            )
        if dialect.quote is None:
            self._check_unquoted(self.null)
        if dialect.escape is None and self.escape_style is not None:
            object.__setattr__(self, "escape_style", None)  # nothing is escaped
        if dialect.escape is not None:
            self._check_escaped(self.null, dialect.escape)
        self._checked_dialect((self.null,))

    def _checked_dialect(self, nulls: tuple[str, ...]) -> CsvDialect:
        try:
            return self._dialect(nulls)
        except UsageError as error:
            option, colon, words = str(error).partition(":")
            option = "null" if option == "null_strings" else option.replace("_", "-")
            raise UsageError(f"{option}{colon}{words}") from error

    def _check_unquoted(self, null: str) -> None:
        if null == "":
            raise UsageError(
                "quote: without quotes an empty text cannot be distinguished from null; give "
                f"{job_option('null')} '\\N', or another text for null"
            )

    def _check_escaped(self, null: str, escape: str) -> None:
        style = self.style
        others = (*(self.delimiter or ""), self.quote, escape)
        if escape in null:
            marker = len(null) == 2 and null[0] == escape and null[1] not in others
            if marker and not has_meaning(null[1], style):
                return
            raise UsageError(
                f"null: {null!r} may also be another text, written with the escape {escape!r}; "
                f"give {escape}N, or a text without {escape}"
            )
        if not self.quote and null_guard(null, escape, style) is None:
            raise UsageError(
                f"null: {null!r} cannot be distinguished from the text {null!r} in escape style "
                f"{style}; give {job_option('null')} '{escape}N'"
            )

    @property
    def style(self) -> str:
        """What characters after the escape character stand for: one of `escapes.STYLES`."""
        return self.escape_style or PLAIN

    @property
    def dialect(self) -> CsvDialect:
        """The dialect in which the loader reads what is written. Only CSV has one."""
        assert self.null is not None
        return self._dialect((self.null,))

    def _dialect(self, nulls: tuple[str, ...]) -> CsvDialect:
        assert self.delimiter is not None
        return CsvDialect(
            delimiter=self.delimiter,
            quote=self.quote or None,
            escape=self.escape,
            escape_style=self.style,
            null_strings=nulls,
            empty_word=self.empty_word,
            comment=self.comment or None,
            trim=self.trim or "none",
            encoding=self.encoding or "utf-8",
            allow_nul=True,
        )

    def encode(self, text: bytes | memoryview, *, first: bool = False) -> bytes | memoryview:
        """Return UTF-8 text in the encoding of the files. `first`: it is the beginning of one.

        Raises `UnicodeEncodeError` for a character that the encoding lacks.
        """
        if self.encoding is None:
            return text
        decoded = str(text, "utf-8")
        if self.encoding in _ENDIAN:
            # With a mark only at the beginning, parts can be put one after the other.
            mark = "\ufeff" if first and decoded and not decoded.startswith("\ufeff") else ""
            return f"{mark}{decoded}".encode(_ENDIAN[self.encoding])
        if first and not self.encoding.startswith("utf"):
            decoded = decoded.removeprefix("\ufeff")
        return decoded.encode(self.encoding)

    @property
    def suffix(self) -> str:
        """The end of a file's name, such as `.csv.gz`; Parquet keeps its compression inside."""
        return f".{self.kind}" + (SUFFIXES[self.compression] if self.kind != "parquet" else "")

    def to_json(self) -> dict[str, Any]:
        """Return a dict of JSON types that `from_json` takes."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return fields | ({"values": self.values.to_json()} if self.values is not None else {})

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> OutputFormat:
        """Return the format `to_json` described. Raises `UsageError` naming an unknown option."""
        unknown = sorted(set(fields) - set(cls.__dataclass_fields__))
        if unknown:
            raise UsageError(f"{unknown[0]}: no such option of an output format")
        values = fields.get("values")
        known = {**fields, "values": values and TextFormat.from_json(values)}
        return cls(**known)


def refuse_blank_lines(fmt: OutputFormat, names: Sequence[str]) -> None:
    """Raise `UsageError` if rows of the nullable columns `names` may become blank lines.

    CSV readers skip blank lines, so the row would be lost.
    """
    if fmt.kind == "csv" and fmt.null == "" and len(names) == 1:
        raise UsageError(
            f"a CSV of {names[0]} alone would have a blank line for each null, which is not a "
            f"record: give {job_option('null')} NULL, or another column beside it"
        )


def null_guard(null: str, escape: str, style: str) -> str | None:
    """Return how to write the text that reads as `null` without quotes; None: it cannot be.

    An escape character goes before one of its characters that stands for itself.
    """
    for i, character in enumerate(null):
        if character.isascii() and not has_meaning(character, style):
            return f"{null[:i]}{escape}{null[i:]}"
    return None


#: Encodings that have a byte order mark -> the same in one order, without it.
_ENDIAN = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
#: Options that are stored as None if they have this value.
_CSV_ODD: Mapping[str, Any] = {
    "empty_word": None,
    "comment": "",
    "trim": "none",
    "escape": "",
    "escape_style": PLAIN,
    "line_end": "lf",
    "bom": False,
    "quote_all": False,
}
_CSV_DEFAULTS: Mapping[str, Any] = {"header": True, "delimiter": ",", "quote": '"', "null": ""}


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"

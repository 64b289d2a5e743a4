"""How rows are written: the format, its characters and its compression, as the user gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect

#: Format -> compressions it can have, the first being its default.
COMPRESSIONS: Mapping[str, tuple[str, ...]] = {
    "csv": ("none", "gzip", "zstd", "bz2", "xz"),
    "jsonl": ("none", "gzip", "zstd", "bz2", "xz"),
    "parquet": ("zstd", "snappy", "none"),
}
#: What a compression adds to the name of a text file: the loader goes by it.
SUFFIXES: Mapping[str, str] = {
    "none": "",
    "gzip": ".gz",
    "zstd": ".zst",
    "bz2": ".bz2",
    "xz": ".xz",
}


@dataclass(frozen=True, kw_only=True)
class OutputFormat:
    """How rows are written. Raises `UsageError` that names the option that cannot be used.

    What is not given takes the format's default, so that equal formats compare equal.
    """

    #: csv, jsonl or parquet.
    kind: str = "csv"
    #: One of the format's `COMPRESSIONS`; empty: its default.
    compression: str = ""
    #: CSV only, as all that follow. The names of the columns first, in every part.
    header: bool | None = None
    #: Between fields: one ASCII character.
    delimiter: str | None = None
    #: Around fields that need it: one ASCII character.
    quote: str | None = None
    #: Stands for null, never quoted; a value that reads the same is quoted.
    null: str | None = None

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
        for option, default in _CSV_DEFAULTS.items():
            given = getattr(self, option)
            if self.kind != "csv" and given is not None:
                raise UsageError(f"{option}: only CSV has it, and the format is {self.kind}")
            if self.kind == "csv" and given is None:
                object.__setattr__(self, option, default)
        if self.kind == "csv":
            self._check_characters()

    def _check_characters(self) -> None:
        dialect = self.dialect
        object.__setattr__(self, "delimiter", dialect.delimiter)
        assert self.null is not None
        for character in (dialect.delimiter, dialect.quote, "\r", "\n"):
            if character and character in self.null:
                raise UsageError(
                    f"null: {self.null!r} holds {character!r}, which has a meaning of its own in "
                    "the file; give another text"
                )

    @property
    def dialect(self) -> CsvDialect:
        """The dialect in which the loader reads what is written. Only CSV has one."""
        assert self.delimiter is not None and self.null is not None
        return CsvDialect(
            delimiter=self.delimiter,
            quote=self.quote,
            null_strings=(self.null,),
            allow_nul=True,
        )

    @property
    def suffix(self) -> str:
        """The end of a file's name, such as `.csv.gz`; Parquet keeps its compression inside."""
        return f".{self.kind}" + (SUFFIXES[self.compression] if self.kind != "parquet" else "")

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON types that `from_json` takes."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> OutputFormat:
        """The format `to_json` described. Raises `UsageError` naming an unknown option."""
        unknown = sorted(set(fields) - set(cls.__dataclass_fields__))
        if unknown:
            raise UsageError(f"{unknown[0]}: no such option of an output format")
        return cls(**fields)


def refuse_blank_lines(fmt: OutputFormat, names: Sequence[str]) -> None:
    """Raise `UsageError` if rows of the columns `names`, which may be null, may be blank lines.

    Readers of CSV take a blank line for no record, so the row would be lost.
    """
    if fmt.kind == "csv" and fmt.null == "" and len(names) == 1:
        raise UsageError(
            f"a CSV of {names[0]} alone would have a blank line for each null, and that is no "
            "record: give --null NULL, or another column beside it"
        )


_CSV_DEFAULTS: Mapping[str, Any] = {"header": True, "delimiter": ",", "quote": '"', "null": ""}


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"

"""The draft of a job's input: what options say about files before any of them is seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ringhaul.formats.fixed_layout import FixedField
from ringhaul.mapping.field_columns import RowFields, find_row_fields, row_functions
from ringhaul.mapping.language import MappingText
from ringhaul.records.load_rules import InputRules

#: A `header_at` that finds the line by the names of columns.
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class InputDraft(InputRules):
    """The files to read, their fields, and the columns that these fill, as options name them."""

    file_format: str = "auto"  #: csv | jsonl | parquet | fixed | auto: by each file's suffix
    #: fixed: where the fields are. Their names are `columns`, and there is no header.
    layout: Sequence[FixedField] = ()
    header: bool = True
    #: The line of each CSV file with the header, from 1, or `AUTO`; None: the first record.
    header_at: int | str | None = None
    partitioned: bool = False  #: the names of folders give columns their values, as in Hive
    columns: Sequence[str] = ()
    mapping: MappingText = field(default_factory=MappingText)
    skip_columns: Sequence[str] = ()
    #: Without `mapping`, a column is filled by the field of its name, other fields are unused.
    by_name: bool = False
    #: Columns -> whether an empty field is a text there; None: all others (--empty).
    empty: Mapping[str | None, bool] = field(default_factory=dict)
    #: Records that are skipped, and most that are read, see `bounds_per_source`.
    skip_rows: int = 0
    max_rows: int | None = None

    @property
    def verifies(self) -> bool:
        """Whether rows are compared with a table's instead of written."""
        return False

    @property
    def estimates(self) -> bool:
        """Whether the job needs an estimate of its records, for their write times."""
        return False

    @property
    def wanted_row_fields(self) -> RowFields:
        """The fields with write times and TTLs, as the options name them."""
        return RowFields(None, None)

    def skipped(self, fields: Collection[str], columns: Collection[str]) -> Sequence[str]:
        """Return the fields to leave out: `skip_columns` and, in a verification, write times and
        TTLs, which it does not read. `columns`: columns of the table."""
        if not self.verifies or self.mapping or self.by_name:
            return self.skip_columns
        own = (name for name in row_functions(fields, columns) if name not in self.skip_columns)
        return [*self.skip_columns, *own]

    def row_fields(
        self, fields: Sequence[str], source: str, *, positions: bool = True
    ) -> RowFields:
        """Return the wanted fields that a source has. Raises `UsageError` for a missing field."""
        return find_row_fields(fields, self.wanted_row_fields, source=source, positions=positions)


AnyDraft = TypeVar("AnyDraft", bound=InputDraft)

"""Read the rows of a row group in batches of bounded size in memory, whatever the footer says.

The footer cannot be relied on: it counts a value that many rows share once, it does not show which
rows are long, and it may be wrong. Page headers can be relied on. Where they are at hand they say
how many rows are sure to fit (`parquet_sure_rows`), mostly as many as a batch should have. Beyond
these, decoded bytes are measured: the first batch has few rows, and each later batch as many as fit
at the size of the last rows, but not many times more than its predecessor. Shared values are
examined before they are expanded: the dictionary of each byte-array column shows its longest value.
If that value is too long for many rows at once, rows are read as indices and expanded part by part.
Small batches are joined again, so that callers get few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ringhaul.formats.expanded_sizes import (
    dictionaries,
    has_dictionary,
    has_shared,
    longest_shared,
    own_bytes,
    places_count,
    row_bytes,
    value_bytes,
)
from ringhaul.formats.parquet_file import ParquetSource
from ringhaul.formats.parquet_leaves import Leaf, leaves_of
from ringhaul.formats.parquet_sure_rows import ELEMENT_BYTES, SureRows

BATCH_ROWS = 64 * 1024
#: Rows of the first batch: with 1 MiB each they take 16 MiB.
FIRST_ROWS = 16
#: The next batch may have this many times the rows of the last batch.
GROWTH = 8
#: Largest size of a batch, if all its values are as long as the longest of their dictionaries: this
#: many times the target size, but at most `WORST_BYTES_MAX`.
WORST_TIMES = 8
WORST_BYTES_MAX = 256 * 2**20
#: Columns are read as indices if fewer rows than this could be read at once with values expanded.
#: Values that are not in a dictionary take 12 times as long to read as indices.
PLAIN_ROWS_MIN = 1024
#: The remaining rows include long ones, at unknown places, if by the footer they have this many
#: times the bytes per row of those already read.
SKEW_TIMES = 4
#: In that case this many times fewer rows are read at once.
SKEW_PARTS = 8


def bounded_batches(
    file: ParquetSource, group: int, names: Sequence[str], bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a row group, with only the columns `names`.

    A batch has at most `BATCH_ROWS` rows and takes about `bytes_max` with its values expanded, at
    most twice that unless it is one row. Raises what pyarrow raises, and `pa.ArrowInvalid` if the
    number of rows differs from the footer's.
    """
    rows_count = file.footer.rows_of(group)
    leaves = leaves_of(file.footer, group, names)
    worst_bytes = max(bytes_max, min(WORST_TIMES * bytes_max, WORST_BYTES_MAX))
    sure = SureRows(file.stored, leaves, rows_count) if file.stored is not None else None
    longest: dict[str, int] = {}
    if rows_count > FIRST_ROWS:
        longest = _longest_shared(file, group, names, leaves, sure, worst_bytes)
    as_indices = _long_ones(leaves, longest, worst_bytes)
    pace = _Pace(rows_count, leaves, longest, as_indices, bytes_max, worst_bytes, sure)
    if not as_indices:
        yield from _glued(file, group, names, pace)
        return
    with file.with_dictionaries([leaf.path for leaf in as_indices]) as again:
        yield from _glued(again, group, names, pace, file.schema_arrow)


def _glued(
    file: pq.ParquetFile,
    group: int,
    names: Sequence[str],
    pace: _Pace,
    spelled: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield joined batches. `spelled`: final types of columns that are read as dictionaries."""
    waiting: list[pa.RecordBatch] = []
    rows_count = bytes_ = 0
    for read, read_bytes in _read(file, group, names, pace):
        # Without shared values, the decoded size is also the expanded size.
        whole = spelled is None and not pace.shares and read_bytes <= 2 * pace.bytes_max
        for batch in (read,) if whole else _parts(read, pace.bytes_max):
            batch = _spell_out(batch, spelled)
            # Batches with shared values are not joined: their dictionaries would have to be merged.
            alone = pace.shares and any(has_shared(field.type) for field in batch.schema)
            size = read_bytes if whole else int(batch.nbytes)
            size = max(size, ELEMENT_BYTES * pace.elements(batch))
            if waiting and (alone or bytes_ + size > 2 * pace.bytes_max):
                yield _joined(waiting)
                waiting, rows_count, bytes_ = [], 0, 0
            if alone:
                yield batch
                continue
            waiting.append(batch)
            rows_count, bytes_ = rows_count + batch.num_rows, bytes_ + size
            if rows_count >= BATCH_ROWS or 2 * bytes_ > pace.bytes_max:
                yield _joined(waiting)
                waiting, rows_count, bytes_ = [], 0, 0
        pace.room(rows_count, bytes_)
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _read(
    file: pq.ParquetFile, group: int, names: Sequence[str], pace: _Pace
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield batches as read, each of as many rows as `pace` says by then, and their bytes."""
    done = 0
    batches = file.iter_batches(
        batch_size=pace.rows(), row_groups=[group], columns=list(names), use_threads=False
    )
    for read in batches:
        # pyarrow takes a name as the beginning of a path too, and may have read other columns.
        try:
            batch = read.select(list(names))
        except KeyError as error:
            raise pa.ArrowInvalid(f"its columns are others than planned: {error.args[0]}") from None
        if any(len(column) != batch.num_rows for column in batch.columns):
            break
        done += batch.num_rows
        yield batch, pace.took(batch)
        if done < pace.rows_count:
            # pyarrow looks at this size before each batch.
            file.reader.set_batch_size(pace.rows())
    if done != pace.rows_count:
        raise pa.ArrowInvalid(
            f"row group {group} has {done:,} complete rows, but its footer says {pace.rows_count:,}"
        )


class _Pace:
    """Decides how many rows to read next."""

    def __init__(
        self,
        rows_count: int,
        leaves: Sequence[Leaf],
        longest: dict[str, int],
        as_indices: Sequence[Leaf],
        bytes_max: int,
        worst_bytes: int,
        sure: SureRows | None,
    ) -> None:
        """`longest`: bytes of the longest value, by path, of leaves that share values."""
        self.rows_count, self.bytes_max = rows_count, bytes_max
        self._sure = sure
        # Columns read as indices are measured separately, once they are expanded.
        self._trusts_sure = not as_indices
        self._longest, self._worst_bytes = longest, worst_bytes
        spelled = [leaf for leaf in leaves if leaf not in as_indices]
        # The footer ignores what rows share, and is only a hint for the rest.
        self._left_bytes = sum(leaf.plain_bytes for leaf in spelled)
        self._left_rows = rows_count
        fixed = sum(leaf.width for leaf in leaves if leaf.flat)
        shared = sum(_worst_row(leaf, longest, rows_count) for leaf in spelled)
        self._worst_rows = min(bytes_max // max(fixed, 1), worst_bytes // max(shared, 1))
        lists = {leaf.place for leaf in leaves if not leaf.flat}
        # A column with lists has as many elements as its leaf with the most values.
        self._lists = sorted(lists)
        self._left_elements = sum(
            max(leaf.values_count for leaf in leaves if leaf.place == place) for place in lists
        )
        self._last_rows = self._last_bytes = self._read_rows = self._read_bytes = 0
        self._last_elements = 0
        self._waiting_rows = self._waiting_bytes = 0
        #: Whether rows may take more bytes expanded than they did when they were decoded.
        self.shares = True

    def room(self, rows: int, bytes_: int) -> None:
        """Note how many rows wait to be joined with the next ones, and their bytes."""
        self._waiting_rows, self._waiting_bytes = rows, bytes_

    def elements(self, batch: pa.RecordBatch) -> int:
        """Return how many elements a batch's lists have: by column, at the deepest level."""
        return sum(places_count(batch.column(place)) for place in self._lists)

    def took(self, batch: pa.RecordBatch) -> int:
        """Note how many bytes a batch took when it was decoded, and return them."""
        if not self._read_rows:
            self.shares = any(has_shared(field.type) for field in batch.schema)
        decoded = sum(map(_decoded, batch.columns)) if self.shares else int(batch.nbytes)
        self._last_rows, self._last_bytes = batch.num_rows, decoded
        self._read_rows += self._last_rows
        self._read_bytes += self._last_bytes
        self._left_rows -= self._last_rows
        self._left_bytes -= self._last_bytes
        self._last_elements = self.elements(batch)
        self._left_elements -= self._last_elements
        return decoded

    def rows(self) -> int:
        """Return how many rows to read next; at least 1."""
        sure_rows = 0
        if self._sure is not None:
            done = self.rows_count - self._left_rows
            # Always call it: it checks the pages of these rows before they are decompressed.
            sure_rows = self._sure.rows(
                done, BATCH_ROWS, self._longest, 2 * self.bytes_max, self._worst_bytes
            )
            sure_rows = sure_rows if self._trusts_sure else 0
        ahead = max(self._left_bytes, 0) / max(self._left_rows, 1)
        if not self._read_rows:
            ahead += ELEMENT_BYTES * self._left_elements / max(self._left_rows, 1)
            if sure_rows > FIRST_ROWS and self._sure is not None:
                ahead = max(ahead, self._sure.likely_row_bytes())
            rows = min(max(FIRST_ROWS, sure_rows), self._worst_rows, self.bytes_max / max(ahead, 1))
            return int(max(1, rows))
        seen = max(
            self._last_bytes / max(self._last_rows, 1), self._read_bytes / self._read_rows, 1.0
        )
        careful: float = GROWTH * self._last_rows
        if ahead > SKEW_TIMES * seen:
            careful = min(careful, self.bytes_max / SKEW_PARTS / ahead)
        rows = min(
            BATCH_ROWS - self._waiting_rows,
            self._worst_rows,
            (self.bytes_max - self._waiting_bytes) / seen,
        )
        if self._lists:
            elements_max = self.bytes_max / ELEMENT_BYTES
            elements_seen = max(self._last_elements / max(self._last_rows, 1), 1.0)
            elements_ahead = max(self._left_elements, 0) / max(self._left_rows, 1)
            rows = min(rows, elements_max / elements_seen)
            if elements_ahead > SKEW_TIMES * elements_seen:
                careful = min(careful, elements_max / SKEW_PARTS / elements_ahead)
        return int(max(1, min(rows, max(careful, sure_rows))))


def _worst_row(leaf: Leaf, longest: dict[str, int], rows_count: int) -> int:
    """Return the bytes of a row in one column if its values are the longest of its dictionary."""
    of_row = 1 if leaf.flat else max(1, leaf.values_count // max(rows_count, 1))
    return longest.get(leaf.path, 0) * of_row


def _longest_shared(
    file: ParquetSource,
    group: int,
    names: Sequence[str],
    leaves: Sequence[Leaf],
    sure: SureRows | None,
    worst_bytes: int,
) -> dict[str, int]:
    """Return the bytes of the longest value that rows share, by leaf, where it is known."""
    shared = [leaf for leaf in leaves if leaf.physical == "BYTE_ARRAY"]
    if sure is None:
        return _longest_read(file, group, names, shared)
    rows_count = max((leaf.values_count for leaf in leaves), default=0)
    enough = worst_bytes // (2 * max(rows_count, 1) * max(len(shared), 1))
    longest = {}
    for leaf in shared:
        found = sure.longest(leaf, enough)
        if found is not None:
            longest[leaf.path] = found
    slow = [leaf for leaf in shared if leaf.path not in longest]
    return {**longest, **_longest_read(file, group, names, slow)}


def _longest_read(
    file: ParquetSource, group: int, names: Sequence[str], leaves: Sequence[Leaf]
) -> dict[str, int]:
    """Find the longest shared values by reading one row with its dictionaries.

    All leaves of one column get the longest value of any of them.
    """
    leaves = [leaf for leaf in leaves if not leaf.delta]
    wanted = sorted({leaf.place for leaf in leaves})
    if not wanted:
        return {}
    columns = [names[place] for place in wanted]
    try:
        with file.with_dictionaries([leaf.path for leaf in leaves]) as again:
            batches = again.iter_batches(
                batch_size=1, row_groups=[group], columns=columns, use_threads=False
            )
            first = next(batches, None)
    except NotImplementedError:
        # pyarrow cannot read a DELTA_BYTE_ARRAY page into a dictionary, and the footer, which need
        # not list every encoding, did not show that there is one. Without the longest value, the
        # bounds in `_worst_rows` and the measured bytes of each batch must suffice.
        return {}
    if first is None:
        return {}
    longest = {place: longest_shared(first[names[place]]) for place in wanted}
    return {leaf.path: longest[leaf.place] for leaf in leaves}


def _long_ones(leaves: Sequence[Leaf], longest: dict[str, int], worst_bytes: int) -> list[Leaf]:
    """Return the leaves to read as indices: the fewest that will do, longest values first."""
    rows_count = max((leaf.values_count for leaf in leaves), default=0)
    plain = sorted(
        (leaf for leaf in leaves if leaf.path in longest and not leaf.delta),
        key=lambda leaf: longest[leaf.path],
    )
    chosen = []
    least = min(PLAIN_ROWS_MIN, rows_count)
    while plain and least * sum(longest[leaf.path] for leaf in plain) > worst_bytes:
        chosen.append(plain.pop())
    return chosen


def _decoded(column: Any) -> int:
    """Return a column's decoded bytes, without its dictionary, which all batches share."""
    if has_dictionary(column.type):
        return own_bytes(column)
    return int(value_bytes(column).sum() if has_shared(column.type) else column.nbytes)


def _parts(batch: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in parts of `bytes_max` expanded, if it is far above that. Rows stay whole."""
    if batch.num_rows < 2 or _spelled_at_most(batch) <= 2 * bytes_max:
        yield batch
        return
    ends = np.cumsum(row_bytes(batch))
    if ends[-1] <= 2 * bytes_max:
        yield batch
        return
    first = 0
    while first < batch.num_rows:
        before = int(ends[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + bytes_max, side="right")))
        yield batch.slice(first, end - first)
        first = end


def _spelled_at_most(batch: pa.RecordBatch) -> int:
    """Return the expanded bytes of a batch, or slightly more."""
    total = 0
    for column in batch.columns:
        if not has_shared(column.type):
            total += int(column.nbytes)
        elif has_dictionary(column.type):
            indices = sum(len(each) for each in dictionaries(column))
            total += own_bytes(column) + indices * longest_shared(column)
        else:
            total += int(value_bytes(column).sum())
    return total


def _spell_out(batch: pa.RecordBatch, spelled: pa.Schema | None) -> pa.RecordBatch:
    """Cast a batch to the types of `spelled`."""
    if spelled is None:
        return batch
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        wanted = spelled.field(name).type
        if column.type != wanted:
            if not pa.types.is_dictionary(column.type):
                # Casting a slice of a nested array would also expand the values outside of it.
                column = column.take(pa.array(np.arange(len(column))))
            # Arrow casts dictionaries to views only by way of full values.
            column = column.cast(_without_views(wanted)).cast(wanted)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _without_views(arrow: pa.DataType) -> pa.DataType:
    """Return a type with strings and binaries in place of views."""
    if pa.types.is_string_view(arrow):
        return pa.string()
    if pa.types.is_binary_view(arrow):
        return pa.binary()
    if pa.types.is_struct(arrow):
        return pa.struct([_field_without_views(arrow.field(n)) for n in range(arrow.num_fields)])
    if pa.types.is_map(arrow):
        key, item = map(_field_without_views, (arrow.key_field, arrow.item_field))
        return pa.map_(key, item)
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(_field_without_views(arrow.value_field), arrow.list_size)
    if pa.types.is_large_list(arrow):
        return pa.large_list(_field_without_views(arrow.value_field))
    if pa.types.is_list(arrow):
        return pa.list_(_field_without_views(arrow.value_field))
    return arrow


def _field_without_views(field: pa.Field) -> pa.Field:
    return field.with_type(_without_views(field.type))

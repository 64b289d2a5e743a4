"""Ready-made transforms: mask columns, split wide records into rows.

Each is made by a call in your own module, which the host's settings must allow:

    from ringhaul.transform.examples import hashed, split_wide

    mask = hashed("email", key_file="/etc/ringhaul/mask.key")
    census = split_wide(["logrecno"], dictionary="/etc/ringhaul/sf1.csv")

All of them process complete columns: a batch costs a few calls, however many rows it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ringhaul.transform import RECORD

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]

#: The longest key that BLAKE2b takes, and the shortest that cannot be guessed.
KEY_BYTES_MAX, KEY_BYTES_MIN = 64, 16
#: Length of a hash: among a billion values two collide with a probability of 1 in 10**20.
DIGEST_BYTES = 16


def hashed(*columns: str, key_file: str) -> BatchFunction:
    """Replace each value of text columns by a keyed hash (BLAKE2b, 32 hexadecimal digits).

    Equal values give equal hashes, so that masked values can still be counted and joined; without
    the key (the file's content) a value cannot be found by trying. Null stays null. Raises
    `ValueError` for a key that is too short or too long.
    """
    key = Path(key_file).read_bytes().rstrip(b"\r\n")
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(
            f"{key_file}: a key of {len(key)} bytes; give {KEY_BYTES_MIN} to {KEY_BYTES_MAX}"
        )

    def digest(value: str) -> str:
        return hashlib.blake2b(value.encode(), key=key, digest_size=DIGEST_BYTES).hexdigest()

    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        for name in columns:
            # Each distinct value is hashed once.
            encoded = pc.dictionary_encode(_texts(batch, name))
            digests = pa.array(map(digest, encoded.dictionary.to_pylist()), pa.string())
            batch = _with(batch, name, digests.take(encoded.indices))
        return batch

    return run


def starred(column: str, *, keep: int = 4) -> BatchFunction:
    """Replace all characters of a text column but the last `keep` by stars; a value that is not
    longer than `keep` becomes all stars. Null stays null.
    """
    if keep < 0:
        raise ValueError(f"keep={keep}: expected 0 or more, the number of characters to keep")

    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        texts = _texts(batch, column)
        lengths = pc.utf8_length(texts)
        hidden = pc.if_else(pc.greater(lengths, keep), pc.subtract(lengths, keep), lengths)
        stars = pc.binary_repeat("*", hidden)
        tails = pc.utf8_slice_codeunits(texts, -keep) if keep else pc.binary_repeat("", hidden)
        tails = pc.if_else(pc.greater(lengths, keep), tails, "")
        return _with(batch, column, pc.binary_join_element_wise(stars, tails, ""))

    return run


def split_wide(
    keys: Sequence[str],
    *,
    dictionary: str,
    item: str = "item",
    value: str = "value",
    keep_null: bool = False,
) -> BatchFunction:
    """Split each wide record into rows, one for each of its fields that a dictionary names.

    `dictionary`: a CSV file with a header, whose first column names fields of the records; its
    other columns become columns of the rows, beside the fields `keys` of the record, the field's
    name (`item`) and its value (`value`). Null fields give no row unless `keep_null`. The rows of a
    batch are in the order of the fields.
    """
    names, columns_known = _read_dictionary(dictionary)
    fields = columns_known[0].to_pylist()
    looked_up = dict(zip([item, *names[1:]], columns_known, strict=True))

    def run(batch: pa.RecordBatch) -> pa.RecordBatch:
        # Field by field: neighbouring rows come from different records, so mostly from different
        # partitions. Cassandra takes 30 % more rows this way, as rows of one partition queue up.
        of_record = pa.array(np.tile(np.arange(batch.num_rows), len(fields)))
        of_field = pa.array(np.repeat(np.arange(len(fields)), batch.num_rows))
        columns = {name: batch.column(name).take(of_record) for name in (*keys, RECORD)}
        columns |= {name: known.take(of_field) for name, known in looked_up.items()}
        columns[value] = pa.concat_arrays([batch.column(name) for name in fields])
        rows = pa.RecordBatch.from_pydict(columns)
        if keep_null or not columns[value].null_count:
            return rows
        return rows.filter(columns[value].is_valid())

    return run


def _read_dictionary(path: str) -> tuple[list[str], list[pa.Array]]:
    """Return the names and columns of a CSV file, all as text: a code like 007 is not a number."""
    with pyarrow.csv.open_csv(path) as reader:
        names = list(reader.schema.names)
    types = dict.fromkeys(names, pa.string())
    table = pyarrow.csv.read_csv(
        path, convert_options=pyarrow.csv.ConvertOptions(column_types=types)
    )
    return names, [column.combine_chunks() for column in table.columns]


def _texts(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return a column of text. Raises `TypeError` if it has another type."""
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_string(column.type):
        raise TypeError(f"column {name!r} is {column.type}, and only text can be masked")
    return column


def _with(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, column)

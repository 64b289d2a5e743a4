"""Words for true and false in columns of numbers: 1 and 0, if the format accepts booleans."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.column import Mask, TextColumn
from ringhaul.cql.hints import hint, known
from ringhaul.cql.text_format import TextFormat

_WORD_BYTES_MAX = 64  #: longer values are not words


def with_numbers(column: TextColumn, fmt: TextFormat) -> TextColumn:
    """Return the column with 1 and 0 in place of the words for true and false.

    A word that is a number stays what it is. Free unless the format accepts booleans.
    """
    if not fmt.accepts("booleans") or not len(column.data):
        return column
    words = {word.casefold(): b"1" for word in fmt.true_words}
    words |= {word.casefold(): b"0" for word in fmt.false_words}
    lengths = column.lengths
    firsts = column.data[np.minimum(column.offsets[:-1], len(column.data) - 1)]
    # Most values are numbers, which are not words.
    among = (lengths > 0) & (lengths <= _WORD_BYTES_MAX) & ~_begins_number(firsts)
    if not among.any():
        return column
    array = column.array()
    distinct = array.filter(pa.array(among)).dictionary_encode()
    numbers = [
        words.get(raw.decode("utf-8", "replace").casefold(), raw)
        for raw in distinct.dictionary.to_pylist()
    ]
    if numbers == distinct.dictionary.to_pylist():
        return column
    found = pa.array(numbers, pa.binary()).take(distinct.indices)
    return TextColumn.of(pc.replace_with_mask(array, pa.array(among), found))


def _begins_number(firsts: NDArray[np.uint8]) -> Mask:
    signs: Mask = (firsts == ord("-")) | (firsts == ord("+")) | (firsts == ord("."))
    return signs | (firsts - np.uint8(0x30) <= 9)


def number_hint(text: str, fmt: TextFormat) -> str:
    """Return the end of a message that refuses `text` as a number: which option reads the word."""
    word = text.casefold()
    for words, number in ((fmt.true_words, "1"), (fmt.false_words, "0")):
        if word in {one.casefold() for one in words}:
            return hint([known({"accept": "booleans"}, number)])
    return ""

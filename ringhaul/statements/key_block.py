"""Keys looked up together: which are duplicates, and which share a list in one request. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells, fixed_binary, join_rows
from ringhaul.cql.column import TextColumn
from ringhaul.statements.replies import Ints, KeyLists

#: Keys per list. Measured: up to 20 the server still works for the list rather than its keys, above
#: 100 it gets no faster, and a failed list costs more.
LIST_KEYS = 50

SetsAndTokens = tuple[NDArray[np.int32], NDArray[np.int64]]


@dataclass(eq=False)
class KeyBlock:
    """Keys that were given together; each distinct key is requested once."""

    numbers: Ints  #: numbers of the keys as given
    settled: NDArray[np.bool_]  #: per distinct key: a row came, or it was refused
    key_lists: KeyLists | None = None  #: keys that are requested in lists
    joined: pa.BinaryArray | None = None  #: each distinct key as an element of a list
    #: Given keys equal to distinct key i have the places places[starts[i]:starts[i + 1]].
    places: Ints | None = None
    starts: Ints | None = None
    left: int = 0  #: unanswered requests

    @classmethod
    def of_single_keys(cls, numbers: Ints) -> KeyBlock:
        return cls(numbers, np.zeros(len(numbers), np.bool_))

    @classmethod
    def of_lists(
        cls, numbers: Ints, keys: Cells, replica_sets: Callable[[pa.BinaryArray], SetsAndTokens]
    ) -> tuple[KeyBlock, Ints, Ints]:
        """Return a block, and where its lists begin and end among its distinct keys."""
        coded = keys.values.dictionary_encode()
        sets, tokens = replica_sets(coded.dictionary)
        # By token: neighbours in a list are neighbours on disk.
        order = np.lexsort((tokens, sets))
        distinct = coded.dictionary.take(pa.array(order))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        codes = place[coded.indices.to_numpy()]
        places = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[places], np.arange(len(order) + 1))
        text = TextColumn.of(distinct)
        data = np.frombuffer(text.data.tobytes(), np.uint8)
        settled = np.zeros(len(order), np.bool_)
        joined = join_rows([Cells.variable(distinct)])
        lists = KeyLists(np.ascontiguousarray(text.offsets), data, settled)
        block = cls(numbers, settled, lists, joined, places, starts)
        firsts, begin = [], 0
        for count in np.bincount(sets).tolist():
            firsts.append(np.arange(begin, begin + count, LIST_KEYS))
            begin += count
        first = np.concatenate(firsts)
        return block, first, np.append(first[1:], begin)

    def each(self) -> Ints:
        """Return the positions of the distinct keys."""
        return np.arange(len(self.settled))

    def lists(self, first: Ints, last: Ints) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        """Return bound lists of the consecutive keys first[i]..last[i]-1, and their routing keys.

        A list is an int count followed by the elements, each an int length and its bytes (section
        6).
        """
        assert self.joined is not None and self.key_lists is not None
        joined = TextColumn.of(self.joined)
        offsets = joined.offsets[np.append(first, last[-1:])]
        head = np.empty(len(first), np.dtype([("length", ">i4"), ("count", ">i4")]))
        head["length"] = np.diff(offsets) + 4
        head["count"] = last - first
        elements = pa.BinaryArray.from_buffers(
            pa.binary(),
            len(first),
            [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(joined.data))],
        )
        bound = pc.binary_join_element_wise(
            fixed_binary(head), elements, pa.scalar(b"", pa.binary())
        )
        keys = pa.BinaryArray.from_buffers(
            pa.binary(),
            len(self.settled),
            [None, pa.py_buffer(self.key_lists.offsets), pa.py_buffer(self.key_lists.data)],
        )
        return bound, keys.take(pa.array(first))

    def numbers_of(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return (row, number) of rows of these keys, for each time that the key was given."""
        each = np.arange(len(keys))
        if self.places is None or self.starts is None:
            return each, self.numbers[keys]
        if len(self.settled) == len(self.numbers):
            return each, self.numbers[self.places[keys]]
        counts = self.starts[keys + 1] - self.starts[keys]
        rows = np.repeat(each, counts)
        # The n-th row of a key's run belongs to the n-th time that the key was given.
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, self.numbers[self.places[self.starts[keys[rows]] + nth]]

    def missing(self) -> Ints:
        """Return the numbers of the keys without a row."""
        return np.sort(self.numbers_of(np.flatnonzero(~self.settled))[1])

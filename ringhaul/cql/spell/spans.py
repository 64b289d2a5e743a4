"""Format durations as `1y2mo3d4h5m6s7ms8us9ns`, as Cassandra itself writes and reads them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Part of a duration -> its units from the largest on, each with its size in that part.
_UNITS = (
    ("months", (("y", 12), ("mo", 1))),
    ("days", (("d", 1),)),
    (
        "nanoseconds",
        (
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ),
    ),
)


def spell_durations(array: pa.StructArray) -> pa.StringArray:
    """Format durations without zero units; `0ns` if all are zero. A leading minus is for all parts.

    A duration never has parts of both signs: the server refuses them.
    """
    if not len(array):
        return pa.array([], pa.string())
    negative = np.zeros(len(array), np.bool_)
    pieces: list[pa.Array] = []
    for number, (_, units) in enumerate(_UNITS):
        part = array.field(number).fill_null(0).to_numpy().astype(np.int64)
        negative |= part < 0
        # Unsigned numbers can also hold the magnitude of the smallest int64.
        left = np.where(part < 0, -part.view(np.uint64), part.view(np.uint64))
        for unit, size in units:
            amount, left = np.divmod(left, np.uint64(size))
            if not amount.any():
                continue
            text = pc.binary_join_element_wise(pa.array(amount).cast(pa.string()), unit, "")
            pieces.append(pc.if_else(pa.array(amount != 0), text, ""))
    sign = pc.if_else(pa.array(negative), "-", "")
    joined = pc.binary_join_element_wise(sign, *pieces, "")
    joined = pc.if_else(pc.equal(joined, ""), "0ns", joined)
    return joined if not array.null_count else pc.if_else(array.is_valid(), joined, None)

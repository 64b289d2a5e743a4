"""Walk a Parquet footer, which is a struct in Thrift's compact protocol: what it says about chunks.

pyarrow has the same figures, but ends the process where it cannot show one: for a chunk that is
encrypted, with a codec that it does not know, with statistics of another size than it expects.
"""

from __future__ import annotations

from typing import Any

#: Columns of the table of chunks.
(
    FLAGS,
    TYPE,
    CODEC,
    VALUES,
    UNPACKED_BYTES,
    STORED_BYTES,
    DATA_START,
    DICTIONARY_START,
    WIDTH,
) = range(9)
#: Bits of `FLAGS`: the chunk has metadata, is encrypted, has a dictionary, has differences.
DESCRIBED, ENCRYPTED, HAS_DICTIONARY, DELTA = 1, 2, 4, 8
#: What a walk returns instead of where the footer ends.
DAMAGED = -1

#: Most structs and lists within each other.
DEPTH_MAX = 24


def walk_footer(data: Any, groups: Any, chunks: Any, stack: Any) -> int:
    """Note the rows of each row group and the figures of each chunk; return where the footer ends.

    `data`: `bytes`, or an array of them. `groups`: an item for each group. `chunks`: `WIDTH` zeros
    for each chunk of each group. `stack`: `DEPTH_MAX` times 5 numbers. These are lists, or arrays
    for the compiled form. Returns `DAMAGED` unless the footer has exactly these groups and chunks.
    """
    end = len(data)
    at = depth = 0
    group = chunk = -1
    per_group = len(chunks) // max(len(groups), 1)
    # The struct or list that is read: what it is (0: the file, 1: a row group or the list of them,
    # 2: a chunk or the list of them, 3: its metadata, 4: its encodings, 5: anything else), the last
    # field of a struct or -1 for a list, how many elements are left of a list, their type, and the
    # type of every second one of a map, or -1.
    what = last = left = one = other = 0
    while True:
        if last < 0:
            if left == 0:
                depth -= 1
                what, last, left = stack[depth][0], stack[depth][1], stack[depth][2]
                one, other = stack[depth][3], stack[depth][4]
                continue
            left -= 1
            kind = one
            if other >= 0:
                one, other = other, one
        else:
            if at >= end:
                return -1
            head = int(data[at])
            at += 1
            if head == 0:
                if what == 1 and chunk + 1 != (group + 1) * per_group:
                    return -1
                depth -= 1
                if depth < 0:
                    break
                what, last, left = stack[depth][0], stack[depth][1], stack[depth][2]
                one, other = stack[depth][3], stack[depth][4]
                continue
            kind = head & 15
            if head > 15:
                last += head >> 4
            else:
                number = shift = 0
                while True:
                    if at >= end or shift > 14:
                        return -1
                    byte = int(data[at])
                    at += 1
                    number |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
                last = (number >> 1) ^ -(number & 1)
                if last < 0:
                    return -1
        if kind == 8 or 4 <= kind <= 6:  # the length of bytes, or a number
            if at >= end:
                return -1
            number = int(data[at])
            at += 1
            if number > 127:
                number &= 127
                shift = 7
                while True:
                    if at >= end or shift > 63:
                        return -1
                    byte = int(data[at])
                    at += 1
                    if shift < 63:  # larger numbers stand for nothing that is noted
                        number |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
            if kind == 8:
                if number > end - at:
                    return -1
                at += number
                continue
            if what == 3 and last > 0:
                number = (number >> 1) ^ -(number & 1)
                if last == 1:
                    chunks[chunk][1] = number
                elif last == 4:
                    chunks[chunk][2] = number
                elif last == 5:
                    chunks[chunk][3] = number
                elif last == 6:
                    chunks[chunk][4] = number
                elif last == 7:
                    chunks[chunk][5] = number
                elif last == 9:
                    chunks[chunk][6] = number
                elif last == 11:
                    chunks[chunk][7] = number
                    chunks[chunk][0] |= 4
            elif what == 4:
                if 10 <= number <= 14:  # encodings 5 to 7
                    chunks[chunk][0] |= 8
            elif what == 1 and last == 3:
                groups[group] = (number >> 1) ^ -(number & 1)
        elif kind == 12 or 9 <= kind <= 11:  # a struct, a list, a set or a map
            inner = 5
            if last < 0:
                inner = what
            elif what == 0:
                if last == 4:
                    inner = 1
            elif what == 1:
                if last == 1:
                    inner = 2
            elif what == 2:
                if last == 3:
                    inner = 3
                    chunks[chunk][0] |= 1
                elif last == 8:
                    chunks[chunk][0] |= 2
            elif what == 3 and last == 2:
                inner = 4
            if depth + 1 >= len(stack):
                return -1
            stack[depth][0], stack[depth][1], stack[depth][2] = what, last, left
            stack[depth][3], stack[depth][4] = one, other
            depth += 1
            if kind == 12:
                if last < 0 and inner == 1:
                    group += 1
                    if group >= len(groups):
                        return -1
                elif last < 0 and inner == 2:
                    chunk += 1
                    if group < 0 or chunk >= (group + 1) * per_group:
                        return -1
                what, last = inner, 0
                continue
            if at >= end:
                return -1
            head = int(data[at])
            left = head >> 4
            if kind == 11 or left == 15:
                at += kind != 11
                left = shift = 0
                while True:
                    if at >= end or shift > 28:
                        return -1
                    byte = int(data[at])
                    at += 1
                    left |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
            else:
                at += 1
            one, other = head & 15, -1
            if kind == 11 and left:
                if at >= end:
                    return -1
                head = int(data[at])
                at += 1
                one, other = head >> 4, head & 15
                left *= 2
            if left > end - at:  # each element has a byte at least
                return -1
            what, last = inner, -1
        elif kind == 1 or kind == 2:  # a boolean: in the header of a field, a byte in a list
            at += last < 0
        elif kind == 3:
            at += 1
        elif kind == 7:
            at += 8
        elif kind == 13:
            at += 16
        else:
            return -1
    if at > end or group + 1 != len(groups) or chunk + 1 != len(chunks):
        return -1
    return at

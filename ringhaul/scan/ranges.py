"""The ring to units: lists of token ranges, in token order, of about the same work. Pure.

A range is (lo, hi] over signed 64-bit tokens, as `token(pk) > lo AND token(pk) <= hi` selects it.
No row has the least token (Murmur3 gives the greatest instead), so (MIN_TOKEN, MAX_TOKEN] is the
whole ring.

The work of each stretch of the ring is what the server's estimates say, in bytes; where they say
nothing the mean of what they do say, and without any the stretch's length. The ring's work is cut
into even units, and a cut that falls near the end of a range of the ring moves there: a unit has
one set of replicas where it can.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MIN_TOKEN = -(2**63)
MAX_TOKEN = 2**63 - 1

#: A cut moves to the end of a range of the ring that is this near, in parts of a unit's work: not
#: so far that units become uneven.
SNAP = 0.2
#: Of all work, the part that is laid out evenly whatever the estimates say: they can be old, and
#: a stretch that was empty then must not all go to one unit.
EVEN = 1 / 8
#: What the estimates do not cover is guessed to hold at most this many times what they tell of: a
#: few tokens that hold much say little of all the others.
GUESS_MAX = 8


class TokenRange(NamedTuple):
    """The tokens (lo, hi]."""

    lo: int
    hi: int


FULL_RING = TokenRange(MIN_TOKEN, MAX_TOKEN)


class RingToken(NamedTuple):
    """A token of the ring; the range that ends there is its host's."""

    token: int
    owner: str  #: id of the host
    replicas: tuple[str, ...]  #: ids of all hosts that hold the range, sorted


class SizeEstimate(NamedTuple):
    """What a node says of the range of one of its tokens; a row of system.size_estimates."""

    lo: int
    hi: int  #: at or before `lo` where the range goes around the end of the ring
    partitions: int
    partition_bytes: int  #: mean

    @property
    def bytes(self) -> int:
        return self.partitions * self.partition_bytes


class RangeUnit(NamedTuple):
    """The ranges of one unit, in token order."""

    ranges: tuple[TokenRange, ...]
    bytes: int  #: estimated; 0 where nothing is known


class _Stretch(NamedTuple):
    """A part of the ring over which the work is even."""

    lo: int
    hi: int
    work: float


def plan_ranges(
    ring: Sequence[RingToken],
    sizes: Iterable[SizeEstimate],
    *,
    units_min: int,
    bytes_per_unit: int,
    bounds: TokenRange = FULL_RING,
) -> list[RangeUnit]:
    """The units that cover `bounds` once, in token order.

    `ring` is in order of its tokens; empty, it stands for one range. There are `units_min` units
    or more, of about `bytes_per_unit` each; fewer only where a few tokens hold all the work.
    """
    lo, hi = max(bounds.lo, MIN_TOKEN), min(bounds.hi, MAX_TOKEN)
    if lo >= hi:
        return []
    known = list(_clip(_known(sizes), lo, hi))
    told = sum(stretch.work for stretch in known)
    stretches = list(_stretches(known, lo, hi)) if told else [_Stretch(lo, hi, float(hi - lo))]
    bytes_all = sum(stretch.work for stretch in stretches) if told else 0.0
    units = max(units_min, round(bytes_all / bytes_per_unit), 1)
    owned = list(_owned(ring, lo, hi))
    ends = [piece.hi for piece, _ in owned]
    cuts = _cuts(stretches, units, ends)
    return [
        RangeUnit(tuple(_ranges_between(owned, ends, first, last)), round(work))
        for first, last, work in _spans(cuts, stretches, told > 0)
    ]


def split_range(whole: TokenRange, after: int | None = None) -> tuple[TokenRange, TokenRange]:
    """Two ranges that make up `whole`, cut in the middle of what is after token `after`.

    Raises ValueError where no token is left to cut between.
    """
    # The first may end at `after` itself: rows of that partition may still be to come.
    middle = ((whole.lo if after is None else after) + whole.hi) // 2
    if not whole.lo < middle < whole.hi:
        raise ValueError(f"nothing to cut in {whole} after {after}")
    return TokenRange(whole.lo, middle), TokenRange(middle, whole.hi)


def spread_ranges(ranges: Iterable[TokenRange], count: int) -> list[TokenRange]:
    """The same tokens in at least `count` ranges, the longest halved again and again.

    In the order they came; fewer where there are fewer tokens.
    """
    spread = list(ranges)
    while len(spread) < count:
        longest = max(spread, key=lambda one: one.hi - one.lo, default=None)
        if longest is None or longest.hi - longest.lo < 2:
            break
        at = spread.index(longest)
        spread[at : at + 1] = split_range(longest)
    return spread


def pack_ranges(ranges: Iterable[TokenRange]) -> str:
    """`lo:hi;lo:hi`: how ranges travel as a unit's spec."""
    return ";".join(f"{lo}:{hi}" for lo, hi in ranges)


def unpack_ranges(packed: str) -> list[TokenRange]:
    """The ranges that `pack_ranges` packed. Raises ValueError for anything else."""
    return [unpack_range(part) for part in packed.split(";")] if packed else []


def unpack_range(packed: str) -> TokenRange:
    """One range from `lo:hi`. Raises ValueError."""
    lo_text, colon, hi_text = packed.partition(":")
    lo, hi = int(lo_text), int(hi_text)
    if not (colon and MIN_TOKEN <= lo < hi <= MAX_TOKEN):
        raise ValueError(f"not a token range: {packed!r}")
    return TokenRange(lo, hi)


def unwrap(lo: int, hi: int) -> list[TokenRange]:
    """The range as one or two that do not go around the end of the ring.

    (x, x] is the whole ring, as the range of a ring's only token is.
    """
    if lo < hi:
        return [TokenRange(lo, hi)]
    halves = (TokenRange(MIN_TOKEN, hi), TokenRange(lo, MAX_TOKEN))
    return [half for half in halves if half.lo < half.hi]


def _known(sizes: Iterable[SizeEstimate]) -> Iterator[_Stretch]:
    """Estimates as stretches in token order, without overlap.

    Nodes that saw different rings can speak of the same tokens: the one that begins first is
    believed, the other for what is left.
    """
    parts = []
    for size in sizes:
        halves = unwrap(size.lo, size.hi)
        tokens = sum(half.hi - half.lo for half in halves)
        parts += [
            _Stretch(half.lo, half.hi, size.bytes * (half.hi - half.lo) / tokens) for half in halves
        ]
    end = MIN_TOKEN
    for part in sorted(parts):
        yield from _clip([part], end, MAX_TOKEN)
        end = max(end, part.hi)


def _clip(stretches: Iterable[_Stretch], lo: int, hi: int) -> Iterator[_Stretch]:
    """What of the stretches is within (lo, hi]."""
    for stretch in stretches:
        first, last = max(stretch.lo, lo), min(stretch.hi, hi)
        if first < last:
            part = (last - first) / (stretch.hi - stretch.lo)
            yield _Stretch(first, last, stretch.work * part)


def _stretches(known: Sequence[_Stretch], lo: int, hi: int) -> Iterator[_Stretch]:
    """(lo, hi] as stretches without gap: what is known, and between that its mean."""
    told = sum(stretch.work for stretch in known)
    covered = sum(stretch.hi - stretch.lo for stretch in known)
    gaps = hi - lo - covered
    per_gap_token = min(told / covered, GUESS_MAX * told / gaps) if gaps else 0.0
    per_token = (told + per_gap_token * gaps) / (hi - lo)

    def stretch(first: int, last: int, work: float) -> _Stretch:
        return _Stretch(first, last, (1 - EVEN) * work + EVEN * per_token * (last - first))

    at = lo
    for first, last, work in known:
        if at < first:
            yield stretch(at, first, per_gap_token * (first - at))
        yield stretch(first, last, work)
        at = last
    if at < hi:
        yield stretch(at, hi, per_gap_token * (hi - at))


def _owned(
    ring: Sequence[RingToken], lo: int, hi: int
) -> Iterator[tuple[TokenRange, tuple[str, ...]]]:
    """The ring's ranges within (lo, hi] with their replicas, in token order."""
    at = lo
    for entry in ring:
        if entry.token > at:
            yield TokenRange(at, min(entry.token, hi)), entry.replicas
            at = min(entry.token, hi)
            if at == hi:
                return
    # Past the last token the ring starts again, with the range of its first.
    yield TokenRange(at, hi), ring[0].replicas if ring else ()


def _cuts(stretches: Sequence[_Stretch], units: int, ends: Sequence[int]) -> list[int]:
    """The tokens that end the units, ascending; the last is the end of all."""
    total = sum(stretch.work for stretch in stretches)
    slack = SNAP * total / units
    starts, sums = [], []
    done = 0.0
    for stretch in stretches:
        starts.append(stretch.lo)
        sums.append(done)
        done += stretch.work

    def token_at(work: float) -> int:
        index = max(bisect_left(sums, work) - 1, 0)
        lo, hi, of_stretch = stretches[index]
        part = min((work - sums[index]) / of_stretch, 1.0) if of_stretch else 1.0
        # The product is a float of 53 bits: it may come out a little beyond the end.
        return min(lo + int((hi - lo) * part), hi)

    def work_at(token: int) -> float:
        index = max(bisect_left(starts, token) - 1, 0)
        lo, hi, of_stretch = stretches[index]
        return sums[index] + of_stretch * (token - lo) / (hi - lo)

    cuts: list[int] = []
    last = stretches[-1].hi
    at = stretches[0].lo
    for number in range(1, units):
        work = total * number / units
        cut = token_at(work)
        after = bisect_left(ends, cut)
        nearest = min(ends[max(after - 1, 0) : after + 1], key=lambda end: abs(work_at(end) - work))
        if abs(work_at(nearest) - work) <= slack:
            cut = nearest
        # Few tokens for many units: some of them would be empty.
        cut = max(cut, at + 1)
        if cut >= last:
            break
        cuts.append(cut)
        at = cut
    return [*cuts, last]


def _spans(
    cuts: Sequence[int], stretches: Sequence[_Stretch], known: bool
) -> Iterator[tuple[int, int, float]]:
    """(lo, hi, estimated bytes) of each unit."""
    at = stretches[0].lo
    index = 0
    for cut in cuts:
        work = 0.0
        while True:
            stretch = stretches[index]
            work += sum(part.work for part in _clip([stretch], at, cut))
            if stretch.hi > cut or index + 1 == len(stretches):
                break
            index += 1
        yield at, cut, work if known else 0.0
        at = cut


def _ranges_between(
    owned: Sequence[tuple[TokenRange, tuple[str, ...]]], ends: Sequence[int], lo: int, hi: int
) -> Iterator[TokenRange]:
    """The ranges within (lo, hi]; neighbours with the same replicas are one."""
    index = bisect_left(ends, lo + 1)
    begin, replicas = lo, owned[index][1]
    while owned[index][0].hi < hi:
        end = owned[index][0].hi
        index += 1
        if owned[index][1] != replicas:
            yield TokenRange(begin, end)
            begin, replicas = end, owned[index][1]
    yield TokenRange(begin, hi)

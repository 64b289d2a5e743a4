"""Divide the ring into units: lists of token ranges, in token order, of about equal work. Pure.

A range is (lo, hi] over signed 64-bit tokens, as `token(pk) > lo AND token(pk) <= hi` selects it.
No row has the lowest token (Murmur3 returns the highest instead), so (MIN_TOKEN, MAX_TOKEN] is the
whole ring.

The work of a stretch of the ring is its size in bytes by the server's estimates; stretches without
an estimate get the mean of the others, and without any estimates the length of the stretch counts.
The ring's work is cut into even units. A cut near the end of a range of the ring moves there, so
that a unit has one set of replicas where possible.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ringhaul.cluster.view import RingToken, SizeEstimate

MIN_TOKEN = -(2**63)
MAX_TOKEN = 2**63 - 1

#: A cut moves to the end of a range of the ring that is this near, as a fraction of a unit's work:
#: not so far that units become uneven.
SNAP = 0.2
#: The share of all work that is spread evenly whatever the estimates say: they can be old, and a
#: stretch that was empty then must not all go to one unit.
EVEN = 1 / 8
#: What the estimates do not cover is guessed to hold at most this many times what they do cover: a
#: few tokens that hold much say little about all the others.
GUESS_MAX = 8


class TokenRange(NamedTuple):
    """The tokens (lo, hi]."""

    lo: int
    hi: int


FULL_RING = TokenRange(MIN_TOKEN, MAX_TOKEN)


class RangeUnit(NamedTuple):
    """The ranges of one unit, in token order."""

    ranges: tuple[TokenRange, ...]
    bytes: int  #: estimated; 0 if unknown


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
    """Return the units that cover `bounds` exactly once, in token order.

    `ring` is in token order; if empty, the ring is one range. There are at least `units_min` units,
    of about `bytes_per_unit` each; fewer only if a few tokens hold all the work.
    """
    lo, hi = max(bounds.lo, MIN_TOKEN), min(bounds.hi, MAX_TOKEN)
    if lo >= hi:
        return []
    known = list(_clip(_known(sizes), lo, hi))
    estimated = sum(stretch.work for stretch in known)
    stretches = list(_stretches(known, lo, hi)) if estimated else [_Stretch(lo, hi, float(hi - lo))]
    bytes_all = sum(stretch.work for stretch in stretches) if estimated else 0.0
    units = max(units_min, round(bytes_all / bytes_per_unit), 1)
    owned = list(_owned(ring, lo, hi))
    ends = [piece.hi for piece, _ in owned]
    cuts = _cuts(stretches, units, ends)
    return [
        RangeUnit(tuple(_ranges_between(owned, ends, first, last)), round(work))
        for first, last, work in _spans(cuts, stretches, estimated > 0)
    ]


def split_range(whole: TokenRange, after: int | None = None) -> tuple[TokenRange, TokenRange]:
    """Return two ranges that make up `whole`, cut in the middle of what follows token `after`.

    Raises ValueError if no token is left to cut between.
    """
    # The first half may end at `after` itself: rows of that partition may still be to come.
    middle = ((whole.lo if after is None else after) + whole.hi) // 2
    if not whole.lo < middle < whole.hi:
        raise ValueError(f"nothing to cut in {whole} after {after}")
    return TokenRange(whole.lo, middle), TokenRange(middle, whole.hi)


def spread_ranges(ranges: Iterable[TokenRange], count: int) -> list[TokenRange]:
    """Return the same tokens in at least `count` ranges, halving the longest repeatedly.

    They keep their order; there are fewer if there are fewer tokens.
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
    """Return ranges as `lo:hi;lo:hi`, the form of a unit's spec."""
    return ";".join(f"{lo}:{hi}" for lo, hi in ranges)


def join_units(units: Iterable[str]) -> str:
    """Return the spec of one unit with the ranges of several."""
    return ";".join(units)


def unpack_ranges(packed: str) -> list[TokenRange]:
    """Return the ranges that `pack_ranges` packed. Raises ValueError for anything else."""
    return [unpack_range(part) for part in packed.split(";")] if packed else []


def unpack_range(packed: str) -> TokenRange:
    """Parse one range from `lo:hi`. Raises ValueError."""
    lo_text, colon, hi_text = packed.partition(":")
    lo, hi = int(lo_text), int(hi_text)
    if not (colon and MIN_TOKEN <= lo < hi <= MAX_TOKEN):
        raise ValueError(f"not a token range: {packed!r}")
    return TokenRange(lo, hi)


def unwrap(lo: int, hi: int) -> list[TokenRange]:
    """Return the range as one or two ranges that do not wrap around the end of the ring.

    (x, x] is the whole ring, as for the range of a ring's only token.
    """
    if lo < hi:
        return [TokenRange(lo, hi)]
    halves = (TokenRange(MIN_TOKEN, hi), TokenRange(lo, MAX_TOKEN))
    return [half for half in halves if half.lo < half.hi]


def _known(sizes: Iterable[SizeEstimate]) -> Iterator[_Stretch]:
    """Yield estimates as stretches in token order, without overlap.

    Nodes that saw different rings can report the same tokens: the stretch that begins first wins,
    the other gets the rest.
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
    """Yield the parts of the stretches within (lo, hi]."""
    for stretch in stretches:
        first, last = max(stretch.lo, lo), min(stretch.hi, hi)
        if first < last:
            part = (last - first) / (stretch.hi - stretch.lo)
            yield _Stretch(first, last, stretch.work * part)


def _stretches(known: Sequence[_Stretch], lo: int, hi: int) -> Iterator[_Stretch]:
    """Yield (lo, hi] as stretches without gaps: estimates, and between them their mean."""
    estimated = sum(stretch.work for stretch in known)
    covered = sum(stretch.hi - stretch.lo for stretch in known)
    gaps = hi - lo - covered
    per_gap_token = min(estimated / covered, GUESS_MAX * estimated / gaps) if gaps else 0.0
    per_token = (estimated + per_gap_token * gaps) / (hi - lo)

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
    """Yield the ring's ranges within (lo, hi] with their replicas, in token order."""
    at = lo
    for entry in ring:
        if entry.token > at:
            yield TokenRange(at, min(entry.token, hi)), entry.replicas
            at = min(entry.token, hi)
            if at == hi:
                return
    # Past the last token the ring wraps around to the range of its first token.
    yield TokenRange(at, hi), ring[0].replicas if ring else ()


def _cuts(stretches: Sequence[_Stretch], units: int, ends: Sequence[int]) -> list[int]:
    """Return the tokens that end the units, ascending; the last is the end of all."""
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
        # The product is a float of 53 bits and may come out slightly beyond the end.
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
        # With few tokens for many units, some units would be empty.
        cut = max(cut, at + 1)
        if cut >= last:
            break
        cuts.append(cut)
        at = cut
    return [*cuts, last]


def _spans(
    cuts: Sequence[int], stretches: Sequence[_Stretch], known: bool
) -> Iterator[tuple[int, int, float]]:
    """Yield (lo, hi, estimated bytes) of each unit."""
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
    """Yield the ranges within (lo, hi], with neighbours of the same replicas merged."""
    index = bisect_left(ends, lo + 1)
    begin, replicas = lo, owned[index][1]
    while owned[index][0].hi < hi:
        end = owned[index][0].hi
        index += 1
        if owned[index][1] != replicas:
            yield TokenRange(begin, end)
            begin, replicas = end, owned[index][1]
    yield TokenRange(begin, hi)

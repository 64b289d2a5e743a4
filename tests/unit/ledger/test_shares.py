"""Places are divided by weight; no wanted place stays idle, and every job gets one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringhaul.ledger.shares import WEIGHTS, Want, share_out

MANY = 10_000


def test_a_job_alone_has_all_places() -> None:
    assert share_out(12, {"a": Want(2, MANY)}) == {"a": 12}


def test_a_small_job_beside_a_large_one_has_its_half() -> None:
    assert share_out(12, {"large": Want(2, MANY), "small": Want(2, 10)}) == {"large": 6, "small": 6}


def test_the_other_jobs_get_places_that_one_cannot_use() -> None:
    assert share_out(12, {"large": Want(2, MANY), "last": Want(2, 1), "done": Want(2, 0)}) == {
        "large": 11,
        "last": 1,
        "done": 0,
    }


def test_priorities_are_weights() -> None:
    wants = {name: Want(weight, MANY) for name, weight in WEIGHTS.items()}
    assert share_out(70, wants) == {"high": 40, "normal": 20, "low": 10}


def test_more_jobs_than_places() -> None:
    assert share_out(2, {name: Want(1, MANY) for name in "abcde"}) == dict.fromkeys("abcde", 1)


@given(
    st.integers(1, 200),
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=2),
        st.builds(Want, st.sampled_from(list(WEIGHTS.values())), st.integers(0, 300)),
        max_size=8,
    ),
)
def test_every_division_is_fair(places: int, wants: dict[str, Want]) -> None:
    given_out = share_out(places, wants)
    open_jobs = {job: want for job, want in wants.items() if want.units}
    assert given_out.keys() == wants.keys()
    assert all(min(1, want.units) <= given_out[job] <= want.units for job, want in wants.items())
    all_units = sum(want.units for want in wants.values())
    assert sum(given_out.values()) == min(all_units, max(places, len(open_jobs)))
    # No job that wants more has less per weight than another, except for rounding.
    for job, want in open_jobs.items():
        for other, also in open_jobs.items():
            if given_out[job] < want.units and given_out[other] > 1:
                assert (given_out[job] + 1) * also.weight >= given_out[other] * want.weight

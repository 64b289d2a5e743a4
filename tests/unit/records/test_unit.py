"""Units and results are packed compactly and unpacked equal; the report is their sum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringhaul.records.unit import TO_THE_END, UNCOUNTED, LoadUnit, UnitResult

SIZES = st.integers(0, 2**44)
UNITS = st.builds(
    LoadUnit,
    source=st.integers(0, 99_999),
    offset_bytes=SIZES,
    length_bytes=SIZES | st.just(TO_THE_END),
    first_ordinal=st.integers(0, 2**40),
    first_line=st.integers(1, 2**40),
    records_count=st.integers(0, 2**32) | st.just(UNCOUNTED),
)
COUNTS = st.integers(0, 2**50)
RESULTS = st.builds(
    UnitResult,
    source=COUNTS,
    records=COUNTS,
    written=COUNTS,
    rejected=COUNTS,
    input_bytes=COUNTS,
    retries=COUNTS,
    elapsed_ms=COUNTS,
    cpu_ms=COUNTS,
    attempt=st.integers(1, 3),
    rss_bytes_max=COUNTS,
    worker=st.text(),
)


@given(UNITS)
def test_units_come_back_equal(unit: LoadUnit) -> None:
    assert LoadUnit.unpack(unit.pack()) == unit


@given(RESULTS)
def test_results_come_back_equal_with_any_host_name(result: UnitResult) -> None:
    assert UnitResult.unpack(result.pack()) == result


def test_a_result_of_an_older_ringhaul_lacks_the_last_counts() -> None:
    packed = ",".join(map(str, range(15))) + ",host,1:77"
    result = UnitResult.unpack(packed)
    assert (result.source, result.window_shrunk) == (0, 14)
    assert (result.sstables, result.missed, result.worker) == (0, 0, "host,1:77")


@pytest.mark.parametrize("packed", ["", "host:1", "1,2,3,host:1", "1,x,3" + ",4" * 15])
def test_other_text_is_no_result(packed: str) -> None:
    with pytest.raises(ValueError, match="not the result of a unit"):
        UnitResult.unpack(packed)


def test_a_unit_in_the_middle_of_a_terabyte_keeps_the_ledger_compact() -> None:
    # 64 bytes: the longest value that Redis keeps in a listpack by default
    unit = LoadUnit(999, 2**40, 64 << 20, 10**10, 10**10, 10**6)
    assert unit.pack() == "999,1099511627776,67108864,10000000000,10000000000,1000000"
    assert len(unit.pack()) <= 64

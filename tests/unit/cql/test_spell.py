"""Dates from year 0 to 9999 are spelled as ISO 8601."""

import numpy as np
import pyarrow as pa

from ringhaul.cql.spell import text_of
from ringhaul.cql.types import CqlType


def test_every_day_with_a_four_digit_year() -> None:
    days = np.arange("0000-01-01", "10000-01-01", dtype="datetime64[D]")
    texts = text_of(CqlType("date"), pa.array(days.astype(np.int32)).cast(pa.date32()))
    expected = np.datetime_as_string(days).astype("S10")
    assert np.array_equal(np.frombuffer(texts.buffers()[2], "S10"), expected)

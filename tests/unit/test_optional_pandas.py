"""pyarrow works without pandas after `put_off_pandas`, and unchanged where it is in use."""

from __future__ import annotations

import subprocess
import sys

MAKE_ARRAYS = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

pa.array(np.arange(3))
pc.add(pa.array([1, None]), 1).to_pylist()
pa.table({"n": [1.5]})
print("pandas" in sys.modules)
"""
PUT_OFF = "from ringhaul.optional_pandas import put_off_pandas; put_off_pandas()\n"


def run(code: str) -> list[str]:
    """Run code in a new interpreter, and return the words that it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_arrays_are_made_without_pandas() -> None:
    assert run(MAKE_ARRAYS) == ["True"], "pyarrow changed: is the module still needed?"
    assert run(PUT_OFF + MAKE_ARRAYS) == ["False"]


def test_who_needs_pandas_still_gets_it() -> None:
    frame = "import pyarrow as pa; print(*pa.table({'n': [1, 2]}).to_pandas()['n'])"
    assert run(PUT_OFF + frame) == ["1", "2"]
    assert run(PUT_OFF + "import pandas; print(pandas.Series([3]).sum())") == ["3"]


def test_pandas_in_use_stays_in_use() -> None:
    series = "import pyarrow as pa; print(pa.array(pandas.Series([1.0, None])).null_count)"
    assert run("import pandas\n" + PUT_OFF + series) == ["1"]

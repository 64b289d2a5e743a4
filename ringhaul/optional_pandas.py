"""pandas, which pyarrow imports with its first array, wherever pandas is installed."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


def put_off_pandas() -> None:
    """Let pyarrow work without pandas in this process.

    Moving rows never uses it, and importing it costs a process a second of CPU and some 50 MB.
    pyarrow looks for it twice, once for NumPy's arrays and once for Python's lists, and remembers
    whether it was there. Afterwards `to_pandas()` still works, but arrays made of series get NaN
    where they would get nulls: not for processes that run users' code, such as a transform. Nothing
    changes if pandas is imported already.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Finds no pandas, and leaves all else to the other finders."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is put off", name=fullname)

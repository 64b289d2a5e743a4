"""Compile kernels with numba, once per machine and version, with the compiled code cached in files.

numba caches compiled code in the first writable folder: `NUMBA_CACHE_DIR`, beside the source, the
user's cache folder. It ignores code in a read-only folder. It writes whole files under other names
and renames them, so processes that start together do not disturb each other. If no folder is
writable, or the cached code is broken, each process compiles for itself.

A kernel's cached code is renewed when its source file changes. So a kernel may only call helpers of
the same file.

Importing this module costs about a quarter of a second and 60 MB (ADR 0009), so it must only be
imported when a page has to be decoded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types

Function = TypeVar("Function", bound=Callable[..., Any])

#: A number in a kernel. The kernel's signature, not Python, gives its type.
Int = Any

#: Types of kernels' arguments and results. A page is `bytes`, hence read-only.
PAGE = types.Array(types.uint8, 1, "C", readonly=True)
COUNT = types.int64
FLAG = types.boolean
UINT8S, UINT16S, UINT32S, UINT64S = (
    element[::1] for element in (types.uint8, types.uint16, types.uint32, types.uint64)
)
INT32S, INT64S = types.int32[::1], types.int64[::1]
READ_INT64S = types.Array(types.int64, 1, "C", readonly=True)
INT32_TABLE, INT64_TABLE = types.int32[:, ::1], types.int64[:, ::1]


def kernel(*signatures: Any) -> Callable[[Function], Function]:
    """Compile a function for these signatures when its module is imported.

    It runs without the GIL. Indexes are not checked, except by the kernel itself.
    """

    def compile_now(function: Function) -> Function:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        # The cache may fail: no writable folder, a full disk, broken files. A mistake in a kernel
        # still shows when it is compiled again without the cache.
        with contextlib.suppress(Exception):
            return _jit(function, list(signatures), cache=True, **options)
        return _jit(function, list(signatures), **options)

    return compile_now


def inlined(function: Function) -> Function:
    """Compile a helper for kernels of the same file, which must follow it."""
    return _jit(function, error_model="numpy")


def _jit(function: Function, *signatures: Any, **options: Any) -> Function:
    return cast(Function, njit(*signatures, **options)(function))

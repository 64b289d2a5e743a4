"""How kernels are compiled: by numba, once per machine and version, with their code kept in files.

numba keeps compiled code in the first of these that it can write to: `NUMBA_CACHE_DIR`, beside the
source, the user's cache folder. What is in one that can only be read it does not use. It writes
whole files under other names and renames them, so processes that start together do not disturb each
other. Where none of these can be written to, or what is there is broken, each process compiles for
itself.

A kernel's kept code is renewed when its own source file changes. So a kernel only calls helpers
of its own file.

Importing this module costs about a quarter of a second and 60 MB (ADR 0009): nothing imports it
before a page is to be decoded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types

Function = TypeVar("Function", bound=Callable[..., Any])

#: A number in a kernel, where its signature and not Python says of which kind.
Int = Any

#: What kernels take and return. A page is `bytes`, which nobody may write to.
PAGE = types.Array(types.uint8, 1, "C", readonly=True)
COUNT = types.int64
FLAG = types.boolean
UINT8S, UINT16S, UINT32S, UINT64S = (
    element[::1] for element in (types.uint8, types.uint16, types.uint32, types.uint64)
)
INT32S, INT64S = types.int32[::1], types.int64[::1]
INT32_TABLE = types.int32[:, ::1]


def kernel(*signatures: Any) -> Callable[[Function], Function]:
    """Compile a function for these signatures when its module is imported.

    The GIL is free while it runs. Nothing checks an index but the kernel itself.
    """

    def compile_now(function: Function) -> Function:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        # What can go wrong with the files: no folder to write to, a full disk, broken ones.
        # A mistake in a kernel shows when it is compiled again without them.
        with contextlib.suppress(Exception):
            return _jit(function, list(signatures), cache=True, **options)
        return _jit(function, list(signatures), **options)

    return compile_now


def inlined(function: Function) -> Function:
    """Make a helper of kernels of the same file; it stands above them."""
    return _jit(function, error_model="numpy")


def _jit(function: Function, *signatures: Any, **options: Any) -> Function:
    return cast(Function, njit(*signatures, **options)(function))

"""The cases of one test in a loop: one item, and every case that fails is named.

An item of pytest costs milliseconds to collect in each test process, and its fixtures as much
again; a case that only compares values costs microseconds. `each` is written as
`pytest.mark.parametrize` is. The cases share the test's fixtures, so that a test whose cases need
fresh ones stays with `parametrize`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

import pytest

#: Longest name that a case gets from its values, in characters.
NAME_MAX = 120
#: Errors that fail a case; others, such as Ctrl-C, end the loop.
_FAILURES = (Exception, pytest.fail.Exception)

Test = Callable[..., None]
Names = str | Sequence[str]


def each(
    names: Names,
    cases: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Return a decorator that runs a test with every case and then fails if any case failed.

    `names`, `cases` and `ids` mean what they mean to `pytest.mark.parametrize`; two decorators
    make all pairs. The error of a single case is raised with a note that names it, the errors of
    several in one group. Raises `ValueError` without cases, as such a test could not fail, and
    for marks of single cases.
    """
    single = isinstance(names, str) and "," not in names
    words = names.split(",") if isinstance(names, str) else names
    parameters = [word.strip() for word in words]
    given = _given(parameters, list(cases), ids, single=single)
    if not given:
        raise ValueError(f"no cases of {', '.join(parameters)}")

    def decorate(test: Test) -> Test:
        @wraps(test)
        def loop(*args: Any, **fixtures: Any) -> None:
            errors = [
                error
                for name, values in given
                if (error := _error_of(test, name, args, {**fixtures, **values}))
            ]
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(given)} cases failed", errors)

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in parameters]
        if len(left) + len(parameters) != len(signature.parameters):
            raise ValueError(f"{test.__name__} does not take {', '.join(parameters)}")
        loop.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return loop

    return decorate


def _error_of(
    test: Test, name: str, args: Sequence[Any], values: Mapping[str, Any]
) -> BaseException | None:
    """Run one case; return its error, with the case's name as a note."""
    try:
        test(*args, **values)
    except _FAILURES as error:
        error.add_note(f"case: {name}")
        return error
    return None


def _given(
    parameters: Sequence[str],
    cases: Sequence[Any],
    ids: Iterable[str] | Callable[[Any], object] | None,
    *,
    single: bool,
) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the arguments of each case."""
    # Only pytest's own type of `pytest.param` has these three.
    marked = [case for case in cases if hasattr(case, "marks") and case.marks]
    if marked:
        raise ValueError(f"cases of a loop cannot have marks: {marked[0]}")
    listed = None if ids is None or callable(ids) else list(ids)
    if listed is not None and len(listed) != len(cases):
        raise ValueError(f"{len(listed)} ids of {len(cases)} cases")
    given = []
    for number, case in enumerate(cases):
        is_param = hasattr(case, "marks") and hasattr(case, "values") and hasattr(case, "id")
        values = tuple(case.values) if is_param else (case,) if single else tuple(case)
        if len(values) != len(parameters):
            raise ValueError(f"{len(values)} values of {', '.join(parameters)}: {case!r}")
        if listed is not None:
            name = listed[number]
        elif is_param and case.id:
            name = str(case.id)
        else:
            name = ", ".join(_word(value, ids if callable(ids) else None) for value in values)
        given.append((name, dict(zip(parameters, values, strict=True))))
    return given


def _word(value: Any, name_of: Callable[[Any], object] | None) -> str:
    """Return the name of one value: what `name_of` returns, or the value itself."""
    named = None if name_of is None else name_of(value)
    text = repr(value) if named is None else str(named)
    return text if len(text) <= NAME_MAX else f"{text[:NAME_MAX]}..."

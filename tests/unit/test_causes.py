"""The table of causes is the one of the errors, the client, the reference and the recipes."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from ringhaul import client, errors
from ringhaul.causes import CAUSES, TIMED_OUT, cause_of, is_transient
from ringhaul.client.job_result import JobError
from ringhaul.errors import EXIT_CRASH, RinghaulError, Transient
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.connection import LedgerRefused
from tests.cases import each

DOCS = Path(__file__).parents[2] / "docs"
OURS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, RinghaulError)
]


@each("kind", [*OURS, JobDamaged, LedgerRefused])
def test_an_error_has_the_code_and_the_transience_of_its_cause(kind: type[RinghaulError]) -> None:
    cause = CAUSES[cause_of(kind.__new__(kind))]
    assert cause.transient is issubclass(kind, Transient)
    assert kind.exit_code in (cause.exit_code, EXIT_CRASH)


def test_errors_of_python_and_of_others() -> None:
    assert is_transient(cause_of(TimeoutError())) and is_transient(cause_of(ConnectionResetError()))
    assert not is_transient(cause_of(ValueError()))


@each("name", CAUSES)
def test_the_client_has_a_class_for_each_cause(name: str) -> None:
    kind = getattr(client, CAUSES[name].error)
    assert issubclass(kind, client.ClientError)
    if not issubclass(kind, JobError):  # those have it from the cause, not from the class
        assert kind.transient is CAUSES[name].transient


def test_each_transient_class_of_the_client_has_a_cause() -> None:
    named = {cause.error for cause in CAUSES.values() if cause.transient}
    for name in client.__all__:
        kind = getattr(client, name)
        if isinstance(kind, type) and issubclass(kind, client.ClientError) and kind.transient:
            assert name in named


def test_the_reference_has_the_table() -> None:
    page = (DOCS / "reference" / "exit-codes.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| `(\w+)` \| (yes|no) \| (.+) \|$", page, re.MULTILINE
    )
    assert rows == [
        (name, str(one.exit_code), one.error, "yes" if one.transient else "no", one.meaning)
        for name, one in CAUSES.items()
    ]
    codes = set(re.findall(r"^\| (\d+) \| `EXIT_", page, re.MULTILINE))
    assert {str(one.exit_code) for one in CAUSES.values()} <= codes
    page = (DOCS / "how-to" / "python.md").read_text()
    for name in client.__all__:
        kind = getattr(client, name)
        if isinstance(kind, type) and issubclass(kind, client.ClientError) and kind is not JobError:
            assert f"`{name}`" in page
    assert is_transient(TIMED_OUT)


@pytest.mark.parametrize("name", ["airflow_dag", "dagster_assets", "prefect_flow"])
def test_a_recipe_decides_by_transient_alone(name: str) -> None:
    tree = ast.parse((DOCS / "recipes" / f"{name}.py").read_text())
    decided = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "transient"
    ]
    assert len(decided) == 1
    caught = [
        ast.unparse(node.type)
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and node.type
    ]
    assert set(caught) <= {"ClientError"}

"""One try of a recipe's load, as the task of an orchestrator that need not be installed.

    python -m tests.acceptance.scheduler airflow_dag DAY

The recipe itself runs, unchanged, with stand-ins for what it imports of its orchestrator: those
have only what decides about a retry. Exit code 0: done; 75: the orchestrator would try again; 1:
it would not. `tests/acceptance/test_recipes.py` runs the recipes with the orchestrators themselves
where these are installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from ringhaul import client

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
DONE, AGAIN, FAILED = 0, 75, 1


class Final(Exception):
    """Airflow's `AirflowFailException`, and Dagster's `Failure` without retries."""

    def __init__(self, text: str, *, allow_retries: bool = False) -> None:
        assert not allow_retries
        super().__init__(text)


class Again(Exception):
    """Dagster's `RetryRequested`."""

    def __init__(self, *, max_retries: int, seconds_to_wait: int) -> None:
        super().__init__(max_retries, seconds_to_wait)


def module(name: str, **attributes: Any) -> None:
    made = ModuleType(name)
    made.__dict__.update(attributes)
    sys.modules[name] = made


def say(text: str, *arguments: object) -> None:
    print(text % arguments, flush=True)


def outcome_of_airflow(day: str) -> int:
    """Any error is retried but `AirflowFailException`."""
    tasks: list[Callable[..., Any]] = []

    def task(function: Any = None, **settings: Any) -> Any:
        def keep(call: Callable[..., Any]) -> Callable[..., Any]:
            tasks.append(call)
            return lambda *_: None

        return keep if function is None else keep(function)

    def dag(**settings: Any) -> Any:
        return lambda function: function

    module("airflow")
    module("airflow.sdk", dag=dag, task=task)
    module("airflow.sdk.exceptions", AirflowFailException=Final)
    importlib.import_module("airflow_dag")
    load = tasks[0]
    return tried(lambda: load(ds=day), lambda error: not isinstance(error, Final))


def outcome_of_dagster(day: str) -> int:
    """Only `RetryRequested` is retried."""

    def asset(function: Any = None, **settings: Any) -> Any:
        return function or (lambda call: call)

    module(
        "dagster",
        asset=asset,
        Failure=Final,
        RetryRequested=Again,
        MaterializeResult=lambda metadata: metadata,
        DailyPartitionsDefinition=lambda start_date: None,
        Definitions=lambda assets: None,
        AssetExecutionContext=None,
    )
    recipe = importlib.import_module("dagster_assets")
    context = SimpleNamespace(partition_key=day, log=SimpleNamespace(info=say))
    return tried(lambda: recipe.orders(context), lambda error: isinstance(error, Again))


def outcome_of_prefect(day: str) -> int:
    """An error is retried if the recipe's condition holds."""
    settings: dict[str, Any] = {}

    def task(function: Any = None, **given: Any) -> Any:
        settings.update(given)
        return function or (lambda call: call)

    logger = SimpleNamespace(info=say, warning=say)
    module("prefect", flow=lambda call: call, task=task, get_run_logger=lambda: logger)
    recipe = importlib.import_module("prefect_flow")

    def may_help(error: BaseException) -> bool:
        state = SimpleNamespace(result=lambda raise_on_failure: error)
        return bool(settings["retry_condition_fn"](None, None, state))

    return tried(lambda: recipe.load(day), may_help)


def tried(call: Callable[[], Any], is_retried: Callable[[BaseException], bool]) -> int:
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return AGAIN if is_retried(error) else FAILED
    return DONE


OUTCOMES = {
    "airflow_dag": outcome_of_airflow,
    "dagster_assets": outcome_of_dagster,
    "prefect_flow": outcome_of_prefect,
}

if __name__ == "__main__":
    sys.path.insert(0, str(RECIPES))
    # A test wants to see how far a try is.
    setattr(client, "every", lambda seconds, call: call)  # noqa: B010
    sys.exit(OUTCOMES[sys.argv[1]](sys.argv[2]))

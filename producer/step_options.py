"""What is wrong with the options of a schedule's step, as far as it can be told without the
cluster, the broker and the files.

The checks are the commands' own, which make them before they connect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from config.errors import ConfigError
from config.settings import Loaded
from producer.options import settings_with
from ringhaul.errors import UsageError
from ringhaul.storage.access import is_url

Options = Mapping[str, Any]
#: Stands for the id of the job, which a step gets when it runs.
_NO_JOB = "step"


def check_step_options(
    command: str, options: Options, given: Collection[str], folder: Path
) -> None:
    """Raise `UsageError` for what `command`, one of a step's, would refuse of its options.

    `given`: see `options.given_options`. `folder`: where the step runs.
    """
    output = options.get("output")
    if output is not None and output != "-" and not is_url(output):
        options = {**options, "output": os.path.join(folder, output)}
    try:
        _CHECKS[command](options, settings_with(options), given)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    except UsageError as error:
        from ringhaul.query.errors import QueryError  # comes with all that reads SQL

        if not isinstance(error, QueryError):
            raise
        told = [name for name in ("where", "columns") if options.get(name)]
        sql = "--query" if command == "unload" else "SELECT"
        place = " or ".join(f"--{name}" for name in told) or sql
        raise UsageError(f"{place}: {error}") from error


def _check_load(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.run_load import load_request
    from ringhaul.transform.loading import check_names

    load_request(options, loaded)
    check_names(options["transforms"])


def _check_verify(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.commands.verify import as_of_a_load

    _check_load(as_of_a_load(options), loaded, given)


def _check_unload(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.run_unload import unload_request
    from ringhaul.transform.loading import check_names

    unload_request(options, loaded, _NO_JOB)
    check_names(options["transforms"])


def _check_count(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.outputs import refuse_two_on_stdout
    from producer.plan_read import check_wanted
    from producer.run_query import count_wanted

    refuse_two_on_stdout(options)
    check_wanted(count_wanted(options))


def _check_query(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.outputs import refuse_two_on_stdout
    from producer.plan_read import Wanted, check_wanted

    refuse_two_on_stdout(options)
    check_wanted(Wanted(sql=options["sql"]))


def _check_lookup(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.outputs import output_of
    from producer.plan_read import Wanted, check_wanted
    from producer.run_ask import values_request, wanted_names

    values_request(options, "lookup")
    wanted_names(options)
    check_wanted(Wanted(keyspace=options["keyspace"], table=options["table"]))
    output_of(options, loaded, _NO_JOB)


def _check_exec(options: Options, loaded: Loaded, given: Collection[str]) -> None:
    from producer.outputs import output_of
    from producer.run_ask import check_inputs, values_request
    from ringhaul.statements.parameter_ranges import parse_span, rows_count

    check_inputs(options, given)
    values_request(options, "exec")
    rows_count([parse_span(text) for text in options["ranges"]])
    output_of(options, loaded, _NO_JOB)


_CHECKS: Mapping[str, Callable[[Options, Loaded, Collection[str]], None]] = {
    "load": _check_load,
    "verify": _check_verify,
    "unload": _check_unload,
    "count": _check_count,
    "query": _check_query,
    "lookup": _check_lookup,
    "exec": _check_exec,
}

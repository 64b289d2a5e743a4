"""What may go to standard output, and what may not go there together."""

from __future__ import annotations

from typing import Any

import pytest

from producer.known_job import _go_on
from producer.outputs import refuse_two_on_stdout
from ringhaul.errors import UsageError

OPTIONS: dict[str, Any] = {"as_json": False, "progress": "auto", "quiet": False}
MESSAGES: dict[str, dict[str, Any]] = {
    "--json": {"as_json": True},
    "--progress json": {"progress": "json"},
}
#: By the words for them: rows of an unload or a lookup, the result of a query, that of a count.
ROWS: dict[str, list[dict[str, Any]]] = {
    "-o -": [{"output": "-"}],
    "the result": [{"output": None}, {}],
}


@pytest.mark.parametrize("messages", MESSAGES)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_and_messages_do_not_both_go_there(rows: str, messages: str) -> None:
    for output in ROWS[rows]:
        given = OPTIONS | MESSAGES[messages] | output
        with pytest.raises(UsageError, match=f"{rows} and {messages} both want standard output"):
            refuse_two_on_stdout(given)
        refuse_two_on_stdout(OPTIONS | output)
        refuse_two_on_stdout(given | {"output": "/out/file"})
        if messages == "--progress json":
            refuse_two_on_stdout(given | {"quiet": True})


@pytest.mark.parametrize("kind", ["count", "query"])
def test_nor_those_of_a_job_that_is_there_already(kind: str) -> None:
    connection = dict.fromkeys(
        ["contact_points", "port", "local_dc", "user", "password_file", "broker", "config_file"]
    )
    with pytest.raises(UsageError, match="both want standard output"):
        _go_on(OPTIONS | connection | {"job_id": "ct-1", "as_json": True}, kind)

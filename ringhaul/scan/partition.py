"""Read the key of the partition at a token, for operators who have to repair it."""

from __future__ import annotations

import threading

from cassandra import ConsistencyLevel

from ringhaul.cluster.schema import TableSchema, quote_identifier
from ringhaul.cql.decode import PageDecoder
from ringhaul.cql.text_format import TextFormat
from ringhaul.formats.parquet_json import record_json
from ringhaul.scan.pages import Page, PageReader
from ringhaul.scan.ranges import TokenRange

#: The key is a help, not worth a longer wait.
TIMEOUT_S = 5.0
#: Longer keys are cut.
CHARS_MAX = 200


def partition_key_text(reader: PageReader, table: TableSchema, tokens: TokenRange) -> str:
    """Return the partition key at `tokens` as a JSON object; "" if it cannot be read.

    Sends one request for the first row. If the fault of the scan lies before the first row, this
    request fails as well, and only the token is known.
    """
    names = table.partition_key
    columns = ", ".join(map(quote_identifier, names))
    name = f"{quote_identifier(table.keyspace)}.{quote_identifier(table.table)}"
    came: list[Page] = []
    done = threading.Event()

    def take(page: Page) -> None:
        came.append(page)
        done.set()

    try:
        prepared = reader.session.prepare(
            f"SELECT DISTINCT {columns} FROM {name} "
            f"WHERE token({columns}) > ? AND token({columns}) <= ?"
        )
        reader.request(
            prepared,
            tokens,
            None,
            rows=1,
            consistency=ConsistencyLevel.ONE,
            timeout_s=TIMEOUT_S,
            host=None,
            on_page=take,
            on_error=lambda _error: done.set(),
        )
        done.wait(2 * TIMEOUT_S)
        if not came:
            return ""
        types = [table.parsed_type(name) for name in names]
        row = PageDecoder(list(names), types).decode(came[0].body)
        if not row.num_rows:
            return ""
        text = record_json(row, 0, types, TextFormat()).decode()
        return text if len(text) <= CHARS_MAX else f"{text[:CHARS_MAX]}..."
    except Exception:  # whatever it is, the report works without the key
        return ""

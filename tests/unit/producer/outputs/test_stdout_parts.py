"""The header that precedes the parts on standard output."""

import io

from producer.outputs.stdout_parts import beginning
from ringhaul.cql.types import CqlType
from ringhaul.formats.compression import Decompressed
from ringhaul.formats.write import OutputFormat
from ringhaul.formats.write.options import COMPRESSIONS, SUFFIXES
from ringhaul.formats.write.writer import open_writer
from tests.cases import each

COLUMNS = [("id", CqlType("int")), ("note", CqlType("text"))]


def read(data: bytes, compression: str) -> bytes:
    if compression == "none":
        return data
    return Decompressed(io.BytesIO(data), SUFFIXES[compression], "stdout").read(1 << 20)


@each("compression", COMPRESSIONS["jsonl"])
@each(
    ("kind", "header", "text"),
    [("csv", True, b"id,note\n"), ("csv", False, b""), ("jsonl", False, b"")],
)
def test_a_table_without_rows_is_a_valid_file(
    kind: str, header: bool, text: bytes, compression: str
) -> None:
    # The parts themselves have no header.
    fmt = OutputFormat(kind=kind, compression=compression, header=False if kind == "csv" else None)
    first = beginning(fmt, COLUMNS, header=header)
    assert bool(first) == (header or compression != "none")
    assert read(first, compression) == text
    # And rows can follow
    part = io.BytesIO()
    writer = open_writer(fmt, part, ["id", "note"], [kind for _, kind in COLUMNS])
    writer.close()
    assert read(first + part.getvalue(), compression) == text

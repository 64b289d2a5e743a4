"""Read files of JSON as what they are, if their beginnings can be nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

from producer.plan.files import each_file
from producer.plan.heads import Heads, SourceHead
from producer.request.input_draft import AnyDraft
from producer.text import count_text
from ringhaul.formats.csv_read import decode_bytes
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.pieces import BOM
from ringhaul.formats.suffixes import format_of
from ringhaul.option_names import input_option

#: What precedes the first object of a file, with room to spare.
_LOOK_BYTES = 4096
#: An array whose first element, if it is in sight, is an object.
_ARRAY = re.compile(rb"\s*\[\s*(?:[{\]]|\Z)")


def with_layout(request: AnyDraft, heads: Heads) -> tuple[AnyDraft, str | None]:
    """Return the request for arrays of JSON, if a file begins as one, and a line that says so.

    Other files of the load are then read as documents as well, which JSON Lines are.
    """
    if request.dialect.json_layout != "lines":
        return request, None
    json = [file for file in heads.files if format_of(file.path, request.file_format) == "jsonl"]
    starts = each_file(json, lambda file: _begins_array(heads[file], request.dialect))
    arrays = [file for file, begins in zip(json, starts, strict=True) if begins]
    if not arrays:
        return request, None
    option = input_option("json-layout")
    more = f" (and {count_text(len(arrays) - 1, 'other file')})" if len(arrays) > 1 else ""
    note = f"{arrays[0].path}{more} begins with [, as a JSON array does: read by {option} documents"
    if len(json) > len(arrays):
        note += ", and so are the other files of JSON"
    return replace(request, dialect=replace(request.dialect, json_layout="documents")), note


def _begins_array(head: SourceHead, dialect: CsvDialect) -> bool:
    data = b""
    with head.text(dialect) as stream:
        while len(data) < _LOOK_BYTES and (piece := stream.read(_LOOK_BYTES - len(data))):
            data += piece
    if dialect.decoding == "block":
        data = decode_bytes(data, dialect.encoding)
    return _ARRAY.match(data.removeprefix(BOM)) is not None

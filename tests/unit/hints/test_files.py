"""Hints about files: each is followed, and leads to the right rows or to a refusal.

`test_every_hint_is_followed` finds the functions that make hints in the source. One that is not in
a case here fails it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.loads import table_schema
from tests.unit.hints.follow import options_named
from tests.unit.hints.load import Row, load
from tests.unit.hints.made import hint_makers
from tests.unit.hints.test_values import MAKERS
from tests.unit.hints.test_written import MAKERS as WRITTEN

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text"}, ["id"])
KEYED = table_schema({"id": "int", "part": "text", "note": "text"}, ["id", "part"])
REFUSED = None  #: instead of rows: nothing is loaded, or no record is


class Case(NamedTuple):
    """A file, what is said about it, and what comes out when the hint is followed."""

    maker: str  #: `module:function` that makes the hint
    data: bytes
    follow: str  #: options that the message names, as they are typed
    rows: list[Row] | None
    name: str = "in.csv"
    given: str = ""  #: options of the command that is refused
    instead: str | None = None  #: options that the hint wants in the place of those given


def row(number: int, note: str, n: int | None = None) -> Row:
    return {"id": str(number), "note": note} | ({} if n is None else {"n": str(n)})


ONE = [row(1, "x", 2)]
EURO = "1,5 €\n2,„ä“\n"
CSV = "ringhaul/formats/csv_reasons.py"
DIALECT = "ringhaul/formats/dialect_warnings.py"
ENCODING = "ringhaul/formats/encoding_warnings.py"
HEADER = "ringhaul/formats/header.py"
JSON = "ringhaul/formats/jsonl_read.py:json_hint"
MAPPING = "ringhaul/mapping/field_columns.py"
PLAN = "producer/plan"
CASES = [
    # Encodings: euro signs and quotes of Windows have no place in latin-1.
    Case(f"{HEADER}:_decode_names", "id,note,größe\n".encode("cp1252"), "--encoding cp1252",
         REFUSED),
    Case("ringhaul/cql/strings.py:_utf8_reason", f"id,note\n{EURO}".encode("cp1252"),
         "--encoding cp1252", [row(1, "5 €"), row(2, "„ä“")]),
    Case(f"{ENCODING}:_control_characters", f"id,note\n{EURO}".encode("cp1252"),
         "--encoding cp1252", [row(1, "5 €"), row(2, "„ä“")], given="--encoding latin-1"),
    Case(f"{ENCODING}:_control_characters", '{"id": 1, "note": "5 €"}\n'.encode("cp1252"),
         "--encoding cp1252", [row(1, "5 €")], "in.jsonl", given="--encoding latin-1"),
    Case(f"{ENCODING}:_utf_8", f"id,note\n{EURO}".encode(), "--encoding",
         [row(1, "5 €"), row(2, "„ä“")], given="--encoding cp1252", instead=""),
    Case(f"{HEADER}:read_header", "id,note\n1,ä\n".encode("utf-16"), "--encoding utf-16",
         [row(1, "ä")]),
    Case(f"{PLAN}/jsonl_source.py:_check_layout", '{"id": 1, "note": "ä"}\n'.encode("utf-16"),
         "--encoding utf-16", [row(1, "ä")], "in.jsonl"),
    Case(f"{CSV}:nul_reason", "1,abc\n2,x\n".encode("utf-16"), "--encoding utf-16",
         [row(1, "abc"), row(2, "x")], given="--no-header --columns id,note"),
    Case(f"{CSV}:nul_reason", b"id,note\n1,ab\0\0\0\0\n", "--allow-nul",
         [row(1, "ab\0\0\0\0")]),
    # Numbers of fields, delimiters, quotes
    Case(f"{CSV}:count_reason", b"id,note\n1,x,y\n", "--allow-extra-fields", [row(1, "x")]),
    Case(f"{CSV}:count_reason", b"id,note,n\n1,x\n", "--allow-missing-fields", [row(1, "x")]),
    Case(f"{PLAN}/sources.py:_check_delimiter", b"id;note;n\n1;x;2\n", "--delimiter ';'", ONE),
    Case(f"{DIALECT}:_null_as_text", b"id,note,n\n1,\\N,2\n", r"--null '\N'",
         [{"id": "1", "n": "2"}]),
    Case(f"{DIALECT}:_null_as_text", b"id,note,n\n1,\\N,2\n", "--dialect mysql", REFUSED),
    Case(f"{DIALECT}:_letters_of_escapes", b"id,note\n1,a\\nb\n", "--escape-style c",
         [row(1, "a\nb")], given="--escape '\\'"),
    Case(f"{DIALECT}:_carriage_returns", b"id,note\r\n1,x\r\n", "--line-end any", [row(1, "x")],
         given="--line-end lf"),
    Case(f"{DIALECT}:_blanks_before_quotes", b'id,note\n1, "x"\n', "--trim text", [row(1, "x")]),
    Case(f"{DIALECT}:_null_as_comment", b"id,note\n1,x\n#N,y\n", "--comment '%'", [row(1, "x")],
         given="--comment '#' --null '#N'"),
    Case("ringhaul/formats/fixed_read.py:_rejects", b"001x\n", "--allow-missing-fields",
         [row(1, "x")], "in.txt", given="--format fixed --columns-at id:1-3,note:4-6"),
    # Headers
    Case(f"{MAPPING}:map_fields", b"1,x,2\n", "--no-header --columns id,note,n", ONE),
    Case(f"{MAPPING}:map_fields", b"1,x,2\n", "--no-header", REFUSED),
    Case(f"{MAPPING}:way_out", b"id,note,n,more\n1,x,2,y\n", "--skip-columns more", ONE),
    Case(f"{MAPPING}:way_out", b"id,text,n\n1,x,2\n", "--mapping '*=*,text=note'", ONE),
    Case(f"{MAPPING}:check_pairs", b"n,note\n2,x\n", "--mapping n=id,note=note", [row(2, "x")]),
    Case(f"{MAPPING}:check_pairs", b"n,note\n2,x\n", "--mapping note=id,n=n", REFUSED),
    Case(f"{PLAN}/sources.py:read_fields", b"id,note,n\n1,x,2\n", "--mapping id,note",
         [row(1, "x")], given="--columns id,note", instead="--mapping id,note"),
    Case(f"{PLAN}/titles.py:header_position", b"A title\nid,note,n\n1,x,2\n", "--header-at 2", ONE,
         given="--header-at 9"),
    Case(f"{PLAN}/titles.py:with_separator", b"sep=;\nid;note;n\n1;x;2\n", "--delimiter", ONE,
         given="--header-at 2 --delimiter '|'", instead="--header-at 2"),
    Case(f"{PLAN}/sources.py:_refuse_separator", b"sep=;\nid;note;n\n1;x;2\n", "--header-at 2",
         ONE),
    Case(f"{PLAN}/sources.py:_refuse_separator", b'"SEP=;"\r\nid;note;n\r\n1;x;2\r\n',
         "--header-at 2", ONE, given="--delimiter ';'"),
    # JSON
    Case(f"{PLAN}/jsonl_source.py:_check_layout", b'{"id": 1,\n "note": "x"}\n',
         "--json-layout documents", [row(1, "x")], "in.jsonl"),
    Case(JSON, b'{"id": 1, "note": "x"} {"id": 2, "note": "y"}\n', "--json-layout documents",
         [row(1, "x"), row(2, "y")], "in.jsonl"),
    Case(JSON, '{"id": 1, "note": "5 €"}\n'.encode("cp1252"), "--encoding cp1252",
         [row(1, "5 €")], "in.jsonl"),
    Case(JSON, b'{"id": 1, "note": "x"}\n// a comment\n', "--json-layout commented",
         [row(1, "x")], "in.jsonl"),
    Case(f"{PLAN}/jsonl_source.py:refuse_misspelt", b'{"id": 1, "nota": "x"}\n',
         "--mapping", [row(1, "x")], "in.jsonl", given="--mapping id=id,note=note",
         instead="--mapping id=id,nota=note"),
    Case("ringhaul/cql/nested.py:_json_text", b'{"id": 1, "note": {"a": [1]}}\n',
         "--accept json-text", [row(1, '{"a":[1]}')], "in.jsonl"),
    Case("ringhaul/records/rows.py:_check_keys", b"id,part,note\n1,,x\n", "--empty part=text",
         [{"id": "1", "part": "", "note": "x"}]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.maker.split(':')[1]}{case.follow}")
def test_a_hint_leads_to_the_right_rows_or_to_a_refusal(case: Case, tmp_path: Path) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.data)
    table = KEYED if "part" in case.follow else TABLE
    given = shlex.split(case.given)
    before = load(path, table, *given)

    followed = shlex.split(case.follow)
    names = [name for name in followed if name.startswith("--")]
    assert names[0] in options_named(before.said), before.said
    if case.instead is not None:
        after = load(path, table, *shlex.split(case.instead))
    else:
        after = load(path, table, *_without(given, names[0]), *followed)
    if case.rows is None:
        assert after.refused or (not after.rows and after.rejects), after
    else:
        assert (after.refused, after.rows) == ("", case.rows), (before.said, after.said)


def _without(arguments: list[str], name: str) -> list[str]:
    """The arguments without an option and its value, which an option of a hint replaces."""
    if name not in arguments:
        return arguments
    at = arguments.index(name)
    return arguments[:at] + arguments[at + 2 :]


#: Makers of messages without a case, and why.
WITHOUT_CASE = {
    "they refuse the value of an option that was given, and name this option": (
        "producer/plan/arguments.py:_check_parquet",
        "producer/plan/arguments.py:_types",
        "producer/plan/empties.py:with_empties",
        "producer/plan/files.py:settled",
        "producer/plan/column_types.py:as_given",
        "producer/plan/column_types.py:check_arrow",
        "producer/plan/column_types.py:given_types",
        "producer/plan/table_sample.py:_pairs",
        "producer/plan/selection.py:_known",
        "producer/plan/selection.py:_by_position",
        "producer/plan/selection.py:_times",
        "ringhaul/cql/spell/patterned.py:_iso",
        "ringhaul/cql/text_format.py:__post_init__",
        "ringhaul/cql/text_format.py:_check_formats",
        "ringhaul/cql/text_format.py:_check_known",
        "ringhaul/cql/text_format.py:_check_separators",
        "ringhaul/cql/text_format.py:_epoch",
        "ringhaul/formats/dialect.py:_check_delimiter",
        "ringhaul/formats/dialect.py:_check_empty_word",
        "ringhaul/formats/dialect.py:_check_null_strings",
        "ringhaul/formats/write/csv.py:_encoded_head",
        "ringhaul/formats/write/options.py:_check_escaped",
        "ringhaul/records/condition.py:record_condition",
        "ringhaul/mapping/field_columns.py:check_skips",
        "ringhaul/mapping/field_columns.py:find_row_fields",
        "ringhaul/mapping/field_columns.py:mapped_fields",
        "ringhaul/mapping/new_table.py:new_table",
        "ringhaul/mapping/new_table.py:parse_key",
        "ringhaul/mapping/language.py:_parts",
        "ringhaul/mapping/language.py:_term",
        "ringhaul/mapping/language.py:parse_mapping",
        "ringhaul/mapping/language.py:source_of",
        "ringhaul/mapping/target_times.py:_number",
        "ringhaul/mapping/target_times.py:fix",
        "ringhaul/mapping/target_times.py:take",
        "ringhaul/mapping/targets.py:_check",
        "ringhaul/mapping/targets.py:_field",
        "ringhaul/mapping/targets.py:_fill",
        "ringhaul/mapping/targets.py:_row_field",
        "ringhaul/mapping/targets.py:_take_alone",
        "ringhaul/mapping/targets.py:_take_rest",
    ),
    "they name an option that has no effect, or the one that is lacking": (
        "producer/inputs/urlfile.py:_text",
        "producer/inputs/urlfile.py:read_urlfile",
        "producer/plan/files.py:_refuse_columns",
        "producer/plan/new_table.py:plan_new_table",
        "producer/plan/new_table.py:wanted_table",
    ),
    "they say which options were taken without being given": (
        "producer/plan/json_layout.py:with_layout",
    ),
    "their options leave a field out, or choose a key: the message says so": (
        "ringhaul/formats/parquet_footer.py:check",
        "producer/plan/field_notes.py:shifted_times_notes",
        "producer/plan/new_table.py:_notes",
        "producer/plan/new_table.py:_types_of",
        "producer/plan/parquet_source.py:plan_parquet",
        "producer/plan/partitions.py:with_partitions",
        "producer/destination/layout.py:_column",
        "producer/plan/transforms.py:_with_result",
    ),
    "their options say how rows reach the cluster, not what is in them": (
        "producer/plan/load.py:_table",
        "producer/destination/imports.py:import_needs",
        "producer/destination/preparation.py:_create_staged",
        "producer/destination/streaming.py:_check_indexes",
        "producer/destination/version.py:check_reads",
        "producer/destination/layout.py:in_version",
        "producer/destination/files.py:plan",
    ),
    "other tests follow them": (
        "producer/request/next_command.py:next_command",  # test_next_command
        "ringhaul/records/job.py:lost_advice",  # test_broker_content
        "producer/plan/marker_order.py:order_warning",  # test_lookup_exec
        "producer/plan/marker_order.py:refuse_unsaid_order",  # test_lookup_exec
        "producer/plan/partitions.py:partition_notes",  # test_partitions
        "producer/plan/short_header.py:_advice",  # test_short_header
        "producer/plan/short_header.py:short_header",  # test_short_header
        "producer/plan/sources.py:_targets_of",  # test_values, for statements
        "producer/plan/sources.py:plan_source",  # test_values, for statements
        "ringhaul/cql/matched_times.py:repeated_words",  # test_clock_changes
        "ringhaul/cql/matched_times.py:skipped_words",  # test_clock_changes
        "ringhaul/mapping/inference.py:_as_json",  # test_new_table
        "ringhaul/mapping/inference.py:vector_type",  # test_new_table
        "ringhaul/mapping/arrow_inference.py:infer_arrow",  # test_new_table
        "ringhaul/formats/pieces.py:_take_defect",  # test_bad_records
        "ringhaul/formats/signature.py:binary_kind",  # test_refused_sources
    ),
    "before any file is read they refuse options that do not go together, and name one to leave "
    "out or the one that is lacking": (
        "producer/plan/exec.py:exec_facts",
        "producer/plan/load.py:_refuse_two_times",
        "producer/request/conflicts.py:_detaching",
        "producer/request/conflicts.py:refuse_workers_of_others",
        "producer/request/cqlshrc.py:_draft_of",
        "producer/request/cqlshrc.py:_parse",
        "producer/request/cqlshrc.py:_parsed",
        "producer/request/cqlshrc.py:apply_cqlshrc",
        "producer/request/input_format.py:dialect_of",
        "producer/request/input_format.py:empty_of",
        "producer/request/input_format.py:fields_of",
        "producer/request/input_format.py:header_at_of",
        "producer/request/input_format.py:layout_of",
        "producer/request/input_format.py:mapping_of",
        "producer/request/input_format.py:rows_per_file",
        "producer/request/load.py:_column_types",
        "producer/request/destination.py:_refuse_beside",
        "producer/request/destination.py:wanted_destination",
        "producer/request/load.py:_refuse_untyped",
        "producer/request/load.py:check_draft",
        "producer/request/load.py:load_draft",
        "producer/request/load.py:parse_timestamp_us",
        "producer/request/load.py:refuse_unread",
        "producer/request/one_file.py:with_file_format",
        "producer/request/output.py:output_of",
        "producer/request/output.py:refuse_two_on_stdout",
        "producer/request/password.py:_ask",
        "producer/request/password.py:note_password_flag",
        "producer/request/password.py:prompting_for_file",
        "producer/request/result_output.py:check_result_output",
        "producer/request/scan.py:check_wanted",
        "producer/request/scan.py:listed_items",
        "producer/request/settings.py:settle",
        "producer/request/statements.py:check_inputs",
        "producer/request/statements.py:wanted_names",
        "producer/request/unload.py:_mapping",
        "producer/request/unload.py:_wanted",
        "producer/request/unload.py:unload_request",
        "producer/request/values.py:table_names",
    ),
    "they make parts of hints": (
        "ringhaul/cql/hints.py:given_patterns",
        "ringhaul/cql/hints.py:known",
        "ringhaul/cql/hints.py:reading",
        "ringhaul/formats/header.py:_otherwise",
        "ringhaul/records/row_fields.py:option",
    ),
}


def test_every_hint_is_followed() -> None:
    followed = {case.maker for case in CASES} | MAKERS | WRITTEN
    others = {maker for makers in WITHOUT_CASE.values() for maker in makers}
    assert not followed & others
    assert hint_makers() == followed | others

"""Why a record of CSV is refused, with the options that would read it. Pure."""

from __future__ import annotations

from functools import lru_cache

from ringhaul.option_names import input_option


def count_reason(count: int, fields_count: int, *, unnamed: bool) -> str:
    """Return why a record with `count` fields is refused where `fields_count` are expected.
    `unnamed`: the header may lack the name of its first field."""
    if unnamed:
        hint = (
            "so have all records around it. If the first field has no name, as in files of R's "
            f"write.table, name all fields by {input_option('columns')}; "
            f"{input_option('allow-extra-fields')} leaves out the last field instead"
        )
    elif count > fields_count:
        hint = f"{input_option('allow-extra-fields')} leaves out the rest"
    else:
        hint = f"{input_option('allow-missing-fields')} takes the others as nulls"
    return _count_text(count, fields_count, hint)


@lru_cache(maxsize=64)  # records of one block share the text
def _count_text(count: int, fields_count: int, hint: str) -> str:
    return f"has {count} field{'s' if count != 1 else ''}, expected {fields_count}; {hint}"


def nul_reason(value: bytes) -> str:
    """Return why a value with a NUL byte is refused. Every second byte of UTF-16 is NUL as long as
    its text is ASCII; as data, such bytes would be stored without an error."""
    utf_16 = {value[0::2].count(0) * 2 - len(value), value[1::2].count(0) * 2 - len(value)}
    alternate = value.count(0) == max(value[0::2].count(0), value[1::2].count(0)) and (
        utf_16 & {-1, 0, 1}
    )
    encoding, allow_nul = input_option("encoding"), input_option("allow-nul")
    if alternate and len(value) > 3:
        return f"holds a NUL byte after each other one, as UTF-16 does; give {encoding} utf-16"
    if alternate:
        return (
            f"holds a NUL byte; if the file is UTF-16 give {encoding} utf-16, "
            f"if NUL belongs to the data give {allow_nul}"
        )
    return f"holds a NUL byte; if NUL belongs to the data give {allow_nul}"

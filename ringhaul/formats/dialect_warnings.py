"""Warn if the first records of a CSV file suggest a dialect other than the chosen one.

Nothing here changes a value. In these cases every value is legal, but most likely not what its
writer meant, so that a load would succeed with wrong texts in the table.
"""

from __future__ import annotations

import re

from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import Block
from ringhaul.option_names import input_option

#: Null in dumps of MySQL, PostgreSQL and Hive.
DUMPED_NULL = r"\N"


def find_warnings(block: Block, dialect: CsvDialect) -> list[str]:
    """Return the warnings, a sentence each; `block`: the first records of a file."""
    ends = block.ends.tolist()
    # Neither skipped records nor comments, which lie between them.
    records = [block.data[b:e] for b, e in zip(block.starts.tolist(), ends, strict=True)]
    data = b"\n".join(records)
    found = (
        _null_as_text(data, dialect),
        _letters_of_escapes(data, dialect),
        _carriage_returns(block, dialect),
        _null_as_comment(dialect),
        _blanks_before_quotes(data, dialect),
    )
    return [warning for warning in found if warning]


def _null_as_text(data: bytes, dialect: CsvDialect) -> str:
    if DUMPED_NULL in dialect.null_strings:
        return ""
    delimiter = re.escape(dialect.delimiter.encode())
    field = rb"(?:\A|(?<=[\r\n%s]))\\N(?=[\r\n%s]|\Z)" % (delimiter, delimiter)
    if not re.search(field, data):
        return ""
    return (
        rf"some fields are \N, which dumps of MySQL, PostgreSQL and Hive write for null; here it "
        rf"is a text: {input_option('null')} '\N' makes it null, or give "
        rf"{input_option('dialect')} mysql, postgresql or hive"
    )


def _letters_of_escapes(data: bytes, dialect: CsvDialect) -> str:
    if not dialect.has_plain_backslash:
        return ""
    found = re.search(rb"(?<!\\)(?:\\\\)*+\\([nrt0Z])", data)
    if found is None:
        return ""
    letter = found[1].decode()
    return (
        rf"there is \{letter} in the data, which dumps write for a control character; here it is "
        rf"the letter {letter}: {input_option('escape-style')} says what it stands for, or "
        rf"{input_option('dialect')} names the program"
    )


def _carriage_returns(block: Block, dialect: CsvDialect) -> str:
    if dialect.line_end != "lf" or not len(block.ends):
        return ""
    data = block.data
    if not all(data[end - 1 : end] == b"\r" for end in block.ends[:100].tolist()):
        return ""
    return (
        "each record ends in CR LF, but only LF ends one here, so the last value of each has "
        f"a CR at its end: {input_option('line-end')} any takes both as the line end"
    )


def _blanks_before_quotes(data: bytes, dialect: CsvDialect) -> str:
    if dialect.quote is None or dialect.trim != "none":
        return ""
    quote, delimiter = (re.escape(t) for t in (dialect.quote.encode(), dialect.raw_delimiter))
    field = rb"(?:[\r\n]|%s)[ \t]++%s[^%s\r\n]*+%s[ \t]*+(?:[\r\n]|%s|\Z)" % (
        *(delimiter, quote, quote, quote, delimiter),
    )
    if not re.search(field, data):
        return ""
    return (
        f"some fields have a blank before the quote {dialect.quote}, which then is an ordinary "
        f"character, and blank and quotes become part of the text: {input_option('trim')} text "
        "drops the blanks"
    )


def _null_as_comment(dialect: CsvDialect) -> str:
    comment = dialect.comment
    texts = [text for text in dialect.null_strings if comment and text.startswith(comment)]
    if not texts:
        return ""
    return (
        f"a record whose first field is the null text {texts[0]} is left out as a comment: "
        f"give another {input_option('comment')}"
    )

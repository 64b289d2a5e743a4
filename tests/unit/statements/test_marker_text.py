"""Markers as a statement's text has them."""

from __future__ import annotations

from ringhaul.statements.marker_text import marker_texts, repeated_names
from tests.cases import each


@each(
    ("statement", "names", "repeated", "roles"),
    [
        ("INSERT INTO t (a,b,c) VALUES (:a, :x, :x)", "a x x", [None, None, 1], {}),
        ("SELECT v FROM t WHERE day >= ? AND day < ?", "day day", [None, None], {}),
        ('UPDATE t SET v = :"X y" WHERE k = :"X y"', "X y|X y", [None, 0], {}),
        ("UPDATE t SET v = :X WHERE k = :x", "x x", [None, 0], {}),
        (
            "INSERT INTO t (k) VALUES (:k) USING TIMESTAMP :w AND TTL :t",
            "k w t",
            [None, None, None],
            {"w": "timestamp", "t": "ttl"},
        ),
        (
            "INSERT INTO t (k) VALUES (?) USING TTL ? AND TIMESTAMP ?",
            "k [ttl] [timestamp]",
            [None, None, None],
            {"[ttl]": "ttl", "[timestamp]": "timestamp"},
        ),
        (
            "BEGIN BATCH USING TIMESTAMP :w INSERT INTO a (k) VALUES (:k); "
            "INSERT INTO b (k) VALUES (:k); APPLY BATCH",
            "w k k",
            [None, None, 1],
            {"w": "timestamp"},
        ),
        # What only looks like a marker
        ("UPDATE t SET u = {f: 1, g:true} WHERE k = :k -- :x\n", "k", [None], {}),
        ("UPDATE t SET v = ':x ?' WHERE k = ? /* ? */", "k", [None], {}),
        ("SELECT ttl FROM t WHERE k = ?", "k", [None], {}),
        # What cannot be matched says nothing
        ("SELECT v FROM t WHERE k = ?", "k j", [], {}),
    ],
)
def test_markers_of_a_text(
    statement: str, names: str, repeated: list[int | None], roles: dict[str, str]
) -> None:
    known = names.split("|") if "|" in names else names.split()
    found = marker_texts(statement, known)
    assert repeated_names(found) == repeated
    assert {name: one.role for name, one in zip(known, found, strict=False) if one.role} == roles

"""Which statements are idempotent and may be sent twice."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.statements.idempotence import effect_of
from tests.cases import each


@each(
    "statement",
    [
        "SELECT * FROM t WHERE k = ?",
        "select count(*) from t where k = 'a + b'",
        "INSERT INTO t (k, v) VALUES (?, ?)",
        "INSERT INTO t (k, v) VALUES (?, -1) USING TTL 5",
        "INSERT INTO t JSON ?",
        "UPDATE t SET v = ? WHERE k = ?",
        "UPDATE t USING TIMESTAMP ? SET v = ?, w = -5 WHERE k = ?",
        "UPDATE t SET v = 'x + y', w = 'it''s +' WHERE k = ?",
        "UPDATE t SET m['a'] = ? WHERE k = ? -- and + more",
        "DELETE FROM t WHERE k = ?",
        "DELETE v, w FROM t WHERE k = ?",
        "UPDATE updates SET updated_at = ?, inserted = ? WHERE deleted = ?",
        "BEGIN UNLOGGED BATCH INSERT INTO t (k) VALUES (?); DELETE FROM t WHERE k = ?; APPLY BATCH",
    ],
)
def test_idempotent_statements(statement: str) -> None:
    assert effect_of(statement).repeatable


@each(
    "statement",
    [
        "UPDATE t SET n = n + 1 WHERE k = ?",
        "UPDATE t SET n = n + ? WHERE k = ?",
        "UPDATE t SET n = n - ? WHERE k = ?",
        "UPDATE t SET n=n+? WHERE k = ?",
        "UPDATE t SET n += ? WHERE k = ?",
        'UPDATE t SET "N" = "N" + ? WHERE k = ?',
        "UPDATE t SET l = l + [?] WHERE k = ?",
        "UPDATE t SET l = [?] + l WHERE k = ?",
        "UPDATE t SET l = ['a'] + l WHERE k = ?",
        "UPDATE t SET l = l + $$x$$ WHERE k = ?",
        "UPDATE t SET l = ? /* old */ + l WHERE k = ?",
        "UPDATE t -- don't\nSET n = n + 1 WHERE k = 'x'",
        # Columns whose names begin like a statement
        "UPDATE t SET updates = updates + ? WHERE k = ?",
        "UPDATE t SET updates += ? WHERE k = ?",
        "UPDATE t SET deleted_count = deleted_count + 1 WHERE k = ?",
        "UPDATE t SET inserted = inserted + ? WHERE k = ?",
        "UPDATE t SET updated_at = ?, tags = tags + ? WHERE k = ?",
        "BEGIN BATCH UPDATE updates SET updates = updates + ? WHERE k = ?; APPLY BATCH",
        "DELETE deleted_items[?] FROM t WHERE k = ?",
        "DELETE l[?] FROM t WHERE k = ?",
        "DELETE v FROM t WHERE k = ? IF EXISTS",
        "INSERT INTO t (k) VALUES (?) IF NOT EXISTS",
        "UPDATE t SET v = ? WHERE k = ? IF v = ?",
        "INSERT INTO t (k, v) VALUES (?, now())",
        "INSERT INTO t (k, v) VALUES (?, uuid ())",
        "UPDATE t SET v = currentTimestamp() WHERE k = ?",
        "BEGIN COUNTER BATCH UPDATE t SET n = n + ? WHERE k = ?; APPLY BATCH",
        "BEGIN BATCH DELETE FROM t WHERE k = ?; UPDATE t SET l = l + ? WHERE k = ?; APPLY BATCH",
    ],
)
def test_statements_that_are_not_idempotent(statement: str) -> None:
    assert not effect_of(statement).repeatable


def test_other_facts_of_a_statement() -> None:
    assert effect_of("SELECT 1 FROM t").reads
    assert not effect_of("DELETE FROM t WHERE k = ?").reads
    assert effect_of("DELETE FROM t WHERE k = ? IF EXISTS").conditional
    assert not effect_of("UPDATE t SET v = 'if' WHERE k = ?").conditional
    assert effect_of("UPDATE t SET n = n + 1 WHERE k = ?").single
    assert not effect_of("UPDATE t SET n = n + 1 WHERE k IN ?").single
    assert not effect_of("BEGIN BATCH DELETE FROM t WHERE k = 1; APPLY BATCH").single


@pytest.mark.parametrize(
    ("statement", "words"),
    [("DROP TABLE t", "DROP"), ("  ", "empty"), ("TRUNCATE t", "TRUNCATE"), ("-- SELECT", "empty")],
)
def test_statements_that_are_not_about_rows_are_refused(statement: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        effect_of(statement)

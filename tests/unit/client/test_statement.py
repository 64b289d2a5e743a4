"""Which statements have answers."""

from __future__ import annotations

from ringhaul.client.statement import is_select, returns_rows
from tests.cases import each


@each(
    ("statement", "answers"),
    [
        ("SELECT * FROM k.t WHERE id = ?", True),
        ("  select json * from k.t", True),
        ("/* the rows */ SELECT id FROM k.t", True),
        ("UPDATE k.t SET n = ? WHERE id = ?", False),
        ("UPDATE k.t SET n = ? WHERE id = ? IF n = 'x'", True),
        ("INSERT INTO k.t (id) VALUES (?) IF NOT EXISTS", True),
        ("UPDATE k.t SET n = 'what if' WHERE id = ?", False),
        ("UPDATE k.t SET n = 'it''s if' WHERE id = ?", False),
        ('UPDATE k.t SET "if" = ? WHERE id = ?', False),
        ("UPDATE k.t SET n = $$ if $$ WHERE id = ? -- if", False),
        ("DELETE FROM k.t WHERE id = ?", False),
        ("UPDATE k.gifts SET iffy = ? WHERE id = ?", False),
    ],
)
def test_whether_a_statement_has_answers(statement: str, answers: bool) -> None:
    assert returns_rows(statement) is answers


def test_a_name_is_no_select() -> None:
    assert is_select("SELECT id FROM k.t")
    assert is_select("-- all\nSELECT id FROM k.t")
    assert not is_select("k.selected")
    assert not is_select("select_of.rows")

"""The selection of tests that `make quick` runs."""

from pathlib import Path

from tests.changed import WHOLE_TREE, affected_tests


def plant(root: Path, **files: str) -> None:
    """Write files by their path, with dots for slashes."""
    for name, text in files.items():
        path = root.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_change_runs_the_tests_that_import_it(tmp_path: Path) -> None:
    tests = {
        "tests.unit.cql.test_a": "from ringhaul.cql import a",
        "tests.unit.cql.test_b": "from ringhaul.cql.b import x",
        "tests.property.test_both": "import ringhaul.cql.a\nimport ringhaul.cql.b",
        "tests.unit.test_none": "import json",
        "tests.acceptance.test_slow": "from ringhaul.cql import a",
    }
    plant(tmp_path, **tests, **{"ringhaul.cql.a": "", "ringhaul.cql.b": ""})
    assert affected_tests({"ringhaul/cql/a.py"}, tmp_path) == sorted(
        [*WHOLE_TREE, "tests/property/test_both.py", "tests/unit/cql/test_a.py"]
    )
    assert affected_tests({"tests/unit/test_none.py", "README.md"}, tmp_path) == sorted(
        [*WHOLE_TREE, "tests/unit/test_none.py"]
    )
    assert affected_tests(set(), tmp_path) == sorted(WHOLE_TREE)

"""What runs in which tier, and that every slow test has a stand-in or a reason."""

from pathlib import Path

import pytest

from tests.tiers import PROOFS, ROOT, Tier, entries, mistakes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("unit/test_a.py", "slow/test_b.py", "slow/deep/test_c.py", "mixed/test_d.py"):
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def test_x(): ...\ndef test_xy(): ...\n")
    return tmp_path


def listed(root: Path, *lines: str) -> None:
    (root / PROOFS).write_text("\n".join(f"[[slow]]\n{line}\n" for line in lines))


def test_the_list_is_right() -> None:
    assert mistakes() == []
    assert entries()


def test_what_needs_chromium_or_prometheus_is_slow() -> None:
    """`make test` does not provide them."""
    quick, needs = Tier("quick"), ("debian_tools", "browser: Browser", "tab: Tab")
    found = [
        file
        for file in (ROOT / "tests").rglob("test_*.py")
        if file != Path(__file__) and any(word in file.read_text() for word in needs)
    ]
    assert len(found) > 2
    assert [file for file in found if not quick.leaves_out(file)] == []


def test_each_test_runs_in_one_tier(root: Path) -> None:
    listed(
        root,
        'tests = "tests/slow"\nreason = "r"',
        'tests = "tests/mixed/test_d.py::test_x"\nproved_by = ["tests/unit/test_a.py::test_x"]',
    )
    assert mistakes(root) == []
    tiers = {name: Tier(name, root) for name in ("all", "quick", "slow")}

    def runs(nodeid: str) -> list[str]:
        return [name for name, tier in tiers.items() if tier.has(nodeid)]

    assert runs("tests/unit/test_a.py::test_x") == ["all", "quick"]
    assert runs("tests/slow/deep/test_c.py::test_x[1]") == ["all", "slow"]
    assert runs("tests/mixed/test_d.py::test_x[1]") == ["all", "slow"]
    assert runs("tests/mixed/test_d.py::test_xy") == ["all", "quick"]
    assert runs("tests/slower/test_e.py::test_x") == ["all", "quick"]

    def imported(path: str) -> list[str]:
        return [name for name, tier in tiers.items() if not tier.leaves_out(root / path)]

    assert imported("tests/unit/test_a.py") == ["all", "quick"]
    assert imported("tests/slow/deep/test_c.py") == ["all", "slow"]
    assert imported("tests/mixed/test_d.py") == ["all", "quick", "slow"]
    assert imported("tests/conftest.py") == ["all", "quick", "slow"]


def test_parts_of_a_slow_folder_are_quick(root: Path) -> None:
    line = 'quick = ["tests/slow/deep", "tests/slow/test_b.py::test_x"]'
    listed(root, f'tests = "tests/slow"\n{line}')
    assert mistakes(root) == []
    quick, slow = (Tier(name, root) for name in ("quick", "slow"))
    for test, is_quick in (
        ("tests/slow/deep/test_c.py::test_x", True),
        ("tests/slow/test_b.py::test_x[1]", True),
        ("tests/slow/test_b.py::test_xy", False),
    ):
        assert (quick.has(test), slow.has(test)) == (is_quick, not is_quick)
    deep, both = root / "tests/slow/deep/test_c.py", root / "tests/slow/test_b.py"
    assert [tier.leaves_out(deep) for tier in (quick, slow)] == [False, True]
    assert [tier.leaves_out(both) for tier in (quick, slow)] == [False, False]


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ('tests = "tests/gone.py"\nreason = "r"', "tests/gone.py: no such test"),
        ('tests = "tests/slow/test_b.py::test_q"\nreason = "r"', "::test_q: no such test"),
        ('tests = "tests/slow"', "tests/slow: neither quick tests, proved_by nor a reason"),
        (
            'tests = "tests/slow"\nproved_by = ["tests/unit/test_a.py::test_q"]',
            "tests/slow: no such test: tests/unit/test_a.py::test_q",
        ),
        (
            'tests = "tests/slow"\nproved_by = ["tests/slow/test_b.py"]',
            "tests/slow: tests/slow/test_b.py is slow itself",
        ),
        (
            'tests = "tests/slow"\nquick = ["tests/unit/test_a.py"]',
            "tests/slow: tests/unit/test_a.py is no part of it",
        ),
        (
            'tests = "tests/slow"\nquick = ["tests/slow/test_b.py::test_q"]',
            "tests/slow: no such test: tests/slow/test_b.py::test_q",
        ),
    ],
)
def test_a_wrong_entry_is_found(root: Path, line: str, mistake: str) -> None:
    listed(root, line)
    (found,) = mistakes(root)
    assert found.endswith(mistake)


def test_an_entry_that_stands_twice_is_found(root: Path) -> None:
    listed(root, *2 * ['tests = "tests/slow"\nreason = "r"'])
    assert mistakes(root) == ["tests/slow: listed twice"]


def test_an_unknown_key_is_refused(root: Path) -> None:
    listed(root, 'tests = "tests/slow"\nreasn = "r"')
    with pytest.raises(TypeError):
        entries(root)

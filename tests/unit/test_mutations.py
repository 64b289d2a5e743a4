"""The mutation check's pure parts: which faults there are, which are chosen, and where they go."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutations.__main__ import summary
from tests.mutations.check import (
    Checker,
    Outcome,
    Stage,
    Verdict,
    failed_tests,
    near_tests,
    stages_of,
)
from tests.mutations.faults import Fault, choose, compiles, find_faults, locate, plant
from tests.mutations.trees import TreeCopy


def changes(text: str) -> list[tuple[str, str]]:
    return [(fault.kind, fault.new.strip()) for fault in find_faults(text, "ringhaul/a.py")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = b < c", [("comparison", "a = ((b) <= (c))")]),
        ("a = b not in c", [("comparison", "a = ((b) in (c))")]),
        ("a = b + c", [("arithmetic", "a = ((b) - (c))")]),
        ("a = b and c and d", [("and-or", "a = ((b) or (c) or (d))")]),
        ("a = not b", [("not", "a = (b)")]),
        ("a = 1", [("constant", "a = 2")]),
        ("a = True", [("constant", "a = False")]),
        ("a = 'é' + b", [("arithmetic", "a = (('é') - (b))"), ("constant", "a = 'éx' + b")]),
        ("def f():\n    return a", [("return", "return None")]),
        ("def f():\n    return None", []),
        ("def f():\n    g()", [("statement", "pass")]),
        ("def f():\n    raise A('b')", [("statement", "pass")]),
        ("def f():\n    a.b = c", [("statement", "pass")]),
        ("def f(a: int = 1): ...", [("default", "def f(a: int = 2): ...")]),
    ],
)
def test_each_kind_of_fault_is_found(text: str, found: list[tuple[str, str]]) -> None:
    assert changes(text) == found


@pytest.mark.parametrize(
    "text",
    [
        '"""Text."""',
        'class A:\n    """Text."""',
        "if TYPE_CHECKING:\n    a = 1",
        "class A:\n    def __repr__(self):\n        return 'a' + 1",
        "a: Literal[1]",
        "@b(1)\nclass A: ...",
        "assert a == 1",
        "a = f'{b + 1} c'",
        "import a",
    ],
)
def test_nothing_is_changed_that_is_not_executed(text: str) -> None:
    assert changes(text) == []


def test_a_fault_of_several_lines_is_planted_and_keeps_the_rest() -> None:
    text = "def f():\n    a = 1\n    if (\n        b\n        == c\n    ):\n        return a\n"
    fault = next(one for one in find_faults(text, "ringhaul/a.py") if one.kind == "comparison")
    changed = plant(text, fault)
    assert compiles(text, fault)
    assert (
        changed == "def f():\n    a = 1\n    if (\n        ((b) != (c))\n    ):\n        return a\n"
    )
    assert fault.scope == "f"
    assert fault.diff().startswith("--- ringhaul/a.py:4\n+++ comparison\n")
    with pytest.raises(ValueError, match="another text"):
        plant(f"\n{text}", fault)
    assert plant(f"\n{text}", fault, fault.line + 1) == f"\n{changed}"


def test_a_fault_that_does_not_compile_is_known() -> None:
    text = "def f():\n    yield a\n"
    assert not compiles(text, Fault("statement", "a.py", 2, "f", "    yield a\n", "    )\n"))


FAULTS = [
    Fault(kind, f"{folder}/m.py", line, "", "a", "b")
    for folder in ("producer/plan", "producer/run", "ringhaul/records")
    for kind in ("constant", "not")
    for line in range(10)
]


def test_the_choice_follows_from_the_seed_and_is_spread_over_folders() -> None:
    chosen = choose(FAULTS, 9, 1, lambda _: True)
    assert chosen == choose(FAULTS[::-1], 9, 1, lambda _: True)
    assert chosen != choose(FAULTS, 9, 2, lambda _: True)
    folders = [fault.path.rpartition("/")[0] for fault in chosen]
    assert {folders.count(folder) for folder in folders} == {3}
    every = choose(FAULTS, 100, 1, lambda fault: fault.line != 3)
    assert len({(fault.path, fault.line) for fault in every}) == len(every) == 27


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


LINE = "    return a + 1\n"
FAULT = Fault("return", "producer/plan/units.py", 2, "f", LINE, "    return None\n")


@pytest.mark.parametrize(
    ("texts", "place"),
    [
        ({"producer.plan.units": f"def f():\n{LINE}"}, ("producer/plan/units.py", 2)),
        ({"producer.plan.units": f"\ndef f():\n{LINE}"}, ("producer/plan/units.py", 3)),
        ({"ringhaul.mapping.units": f"def f():\n{LINE}"}, ("ringhaul/mapping/units.py", 2)),
        ({"ringhaul.mapping.other": f"def f():\n{LINE}"}, ("ringhaul/mapping/other.py", 2)),
        (
            {"producer.plan.units": f"def g():\n{LINE}\ndef f():\n{LINE}"},
            ("producer/plan/units.py", 5),
        ),
        ({"producer.plan.units": f"def g():\n{LINE}\ndef h():\n{LINE}"}, None),
        ({"producer.plan.units": "def f():\n    return a\n"}, None),
    ],
)
def test_the_place_is_found_where_the_text_went(
    tmp_path: Path, texts: dict[str, str], place: tuple[str, int] | None
) -> None:
    write(tmp_path, **texts)
    assert locate(FAULT, tmp_path) == place


def test_near_tests_are_beside_the_module_or_import_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        **{
            "producer.plan.units": "",
            "tests.unit.producer.plan.test_units": "",
            "tests.unit.producer.plan.test_units_of_files": "",
            "tests.unit.producer.plan.test_other": "",
            "tests.property.test_plans": "from producer.plan.units import a",
        },
    )
    assert near_tests("producer/plan/units.py", tmp_path) == (
        "tests/property/test_plans.py",
        "tests/unit/producer/plan/test_units.py",
        "tests/unit/producer/plan/test_units_of_files.py",
    )


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (["near"], ["near"]),
        (["quick"], ["near", "quick"]),
        (["all"], ["near", "quick", "servers"]),
        (["tests/unit/test_a.py"], ["given"]),
    ],
)
def test_the_stages_go_from_near_to_far(tmp_path: Path, tests: list[str], names: list[str]) -> None:
    write(tmp_path, **{"producer.plan.units": "", "tests.unit.producer.plan.test_units": ""})
    stages = stages_of(tests, "producer/plan/units.py", tmp_path, 10)
    assert [stage.name for stage in stages] == names


def test_failed_tests_are_read_from_the_summary_of_pytest() -> None:
    output = (
        "FAILED tests/unit/a/test_b.py::test_c[x - y] - AssertionError: assert 1 == 2\n"
        "ERROR tests/unit/a/test_d.py - ImportError: no\n"
        "ERROR tests/unit/a/test_d.py\n"
        "2 failed in 1.00s\n"
    )
    assert failed_tests(output) == [
        "tests/unit/a/test_b.py::test_c[x - y]",
        "tests/unit/a/test_d.py",
    ]


class FakeCopy(TreeCopy):
    """A tree in which `foreign` always fails, and `own` with the fault."""

    def __init__(self, own: str = "", foreign: str = "", code: int | None = 0) -> None:
        self.own, self.foreign, self.code = own, foreign, code
        self.changed = False

    def renew(self, changed: object) -> None:
        self.changed = bool(changed)

    def run(self, arguments: Sequence[str], timeout_s: float) -> tuple[int | None, str]:
        left_out = f"--deselect={self.foreign}" in arguments
        if self.foreign and not left_out and (self.changed or self.foreign in arguments):
            return 1, f"FAILED {self.foreign} - no\n"
        if self.own and self.changed:
            return 1, f"FAILED {self.own} - no\n"
        return self.code, ""


OWN, FOREIGN = "tests/unit/test_a.py::test_own", "tests/unit/test_a.py::test_foreign"
STAGE = [Stage(name="near", paths=("tests/unit/test_a.py",), timeout_s=1)]


@pytest.mark.parametrize(
    ("copy", "outcome", "test"),
    [
        (FakeCopy(own=OWN), Outcome.CAUGHT, OWN),
        (FakeCopy(own=OWN, foreign=FOREIGN), Outcome.CAUGHT, OWN),
        (FakeCopy(foreign=FOREIGN), Outcome.SURVIVED, ""),
        (FakeCopy(), Outcome.SURVIVED, ""),
        (FakeCopy(code=None), Outcome.TIMED_OUT, ""),
        (FakeCopy(code=5), Outcome.NOT_RUN, ""),
    ],
    ids=["caught", "caught beside another", "another fails", "none fails", "hangs", "no tests"],
)
def test_only_a_failure_that_the_fault_brings_counts(
    copy: FakeCopy, outcome: Outcome, test: str
) -> None:
    checker = Checker(copy)
    verdict = checker.check({"ringhaul/a.py": "fault"}, STAGE)
    assert (verdict.outcome, verdict.test) == (outcome, test)
    assert checker.foreign == ({FOREIGN} if copy.foreign else set())


def test_a_fault_without_tests_is_not_run() -> None:
    assert Checker(FakeCopy()).check({}, []).outcome is Outcome.NOT_RUN


def test_the_summary_counts_ends_and_stages() -> None:
    verdicts = [
        Verdict(outcome=Outcome.CAUGHT, stage="near"),
        Verdict(outcome=Outcome.TIMED_OUT, stage="near"),
        Verdict(outcome=Outcome.CAUGHT, stage="quick"),
        Verdict(outcome=Outcome.SURVIVED, stage="quick"),
    ]
    assert summary(verdicts) == (
        "4 faults: 2 caught, 1 timed out, 1 survived (noticed: 2 at near, 1 at quick)"
    )


def test_a_copy_is_renewed_and_its_base_is_not_written_to(tmp_path: Path) -> None:
    copy = TreeCopy.__new__(TreeCopy)
    copy._base, copy.tree = tmp_path / "base", tmp_path / "tree"
    write(copy._base, **{"ringhaul.a": "good", "ringhaul.b": "other"})
    copy.renew({"ringhaul/a.py": "bad"})
    assert (copy.tree / "ringhaul/a.py").read_text() == "bad"
    assert (copy._base / "ringhaul/a.py").read_text() == "good"
    assert os.path.samefile(copy.tree / "ringhaul/b.py", copy._base / "ringhaul/b.py")
    copy.renew({})
    assert (copy.tree / "ringhaul/a.py").read_text() == "good"

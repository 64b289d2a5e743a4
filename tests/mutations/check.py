"""The check of one fault: stages of tests, the nearest first, until one of them fails."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.changed import WHOLE_TREE, affected_tests
from tests.mutations.faults import Fault, plant
from tests.mutations.trees import TreeCopy

#: Tests without servers, and with them.
QUICK = ("tests/unit", "tests/property")
SERVED = ("tests/integration", "tests/acceptance")
#: Reads every test without servers, and with them all modules.
COLLECT = ("-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *QUICK)
#: A failed or broken test, or a file that cannot be collected, in pytest's short summary.
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::\w+)*(?:\[.*?\])?)(?= - |$)", re.MULTILINE)
#: pytest's exit codes.
_PASSED, _TESTS_FAILED, _NO_TESTS = 0, 1, 5
#: More failures of a stage that have nothing to do with the fault than this: it cannot be judged.
FOREIGN_MAX = 20


class Outcome(StrEnum):
    """How the check of a fault ended."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"  #: the tests hung, which nobody would miss
    SURVIVED = "survived"
    NOT_RUN = "not run"  #: the fault's place is not in this tree, or no test could be run


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Tests that run together."""

    name: str
    paths: tuple[str, ...]
    timeout_s: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How the check of a fault ended, where, and by which test."""

    outcome: Outcome
    stage: str = ""
    test: str = ""
    seconds: float = 0.0


def near_tests(path: str, root: Path) -> tuple[str, ...]:
    """Return the unit and property tests whose path is like a module's, and those that import
    it."""
    package, _, inner = path.partition("/")
    folder = Path("tests/unit", *([package] if package != "ringhaul" else []), inner).parent
    like = (root / folder).glob(f"test_{Path(path).stem}*.py")
    found = {str(test.relative_to(root)) for test in like}
    found |= set(affected_tests({path}, root)) - set(WHOLE_TREE)
    return tuple(sorted(found))


def stages_of(tests: Sequence[str], path: str, root: Path, timeout_s: float) -> list[Stage]:
    """Return the stages for a fault in the module `path`. `tests`: near, quick, all, or paths.

    `timeout_s`: of the first; the others may take ten times as long.
    """
    if tests[0] not in ("near", "quick", "all"):
        return [Stage(name="given", paths=tuple(tests), timeout_s=timeout_s * 10)]
    stages = [Stage(name="near", paths=near_tests(path, root), timeout_s=timeout_s)]
    if tests[0] != "near":
        stages.append(Stage(name="quick", paths=QUICK, timeout_s=timeout_s * 10))
    if tests[0] == "all":
        stages.append(Stage(name="servers", paths=SERVED, timeout_s=timeout_s * 10))
    return [stage for stage in stages if stage.paths]


def failed_tests(output: str) -> list[str]:
    """Return the ids of the tests that failed, and the files that broke, from pytest's summary."""
    return list(dict.fromkeys(_FAILED.findall(output)))


@dataclass
class Checker:
    """Runs stages in a copy of a tree. A test that fails without the fault, too, is left out from
    then on."""

    copy: TreeCopy
    options: Sequence[str] = ()  #: further arguments of pytest
    foreign: set[str] = field(default_factory=set)  #: tests that fail without any fault
    sound: set[str] = field(default_factory=set)  #: tests that were seen to pass without one

    def check(self, changed: Mapping[str, str], stages: Sequence[Stage]) -> Verdict:
        """Check a fault: `changed` has the text of the module with it."""
        began_s = time.monotonic()
        ran = False
        for stage in stages:
            for outcome, test in self._run(changed, stage):
                seconds = time.monotonic() - began_s
                if outcome is None:
                    ran = True
                    break
                return Verdict(outcome=outcome, stage=stage.name, test=test, seconds=seconds)
        outcome = Outcome.SURVIVED if ran else Outcome.NOT_RUN
        last = stages[-1].name if stages else ""
        return Verdict(outcome=outcome, stage=last, seconds=time.monotonic() - began_s)

    def _run(
        self, changed: Mapping[str, str], stage: Stage
    ) -> Iterator[tuple[Outcome | None, str]]:
        """Yield how a stage ends: None if its tests pass with the fault."""
        for _ in range(FOREIGN_MAX):
            self.copy.renew(changed)
            code, output = self.copy.run(self._arguments(stage.paths), stage.timeout_s)
            if code is None:
                yield Outcome.TIMED_OUT, ""
            if code == _PASSED:
                yield None, ""
            if code == _NO_TESTS:
                return
            failed = failed_tests(output)
            if not failed:  # pytest itself ended, such as by a fault that its plugins import
                yield Outcome.CAUGHT, output.strip().splitlines()[-1][:200] if output else ""
            if own := [test for test in failed if not self._fails_without(test, stage)]:
                yield Outcome.CAUGHT, own[0]
        yield Outcome.NOT_RUN, f"{FOREIGN_MAX} tests fail without the fault"

    def _fails_without(self, test: str, stage: Stage) -> bool:
        """Return whether a test fails without the fault, too; if so, remember it."""
        if test in self.sound:
            return False
        self.copy.renew({})
        code, _ = self.copy.run(self._arguments((test,)), stage.timeout_s)
        if code == _PASSED:
            self.sound.add(test)
            return False
        self.foreign.add(test)
        return True

    def _arguments(self, paths: Sequence[str]) -> list[str]:
        left_out = [f"--deselect={test}" for test in sorted(self.foreign) if "::" in test]
        left_out += [f"--ignore={test}" for test in sorted(self.foreign) if "::" not in test]
        fixed = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--durations=0"]
        return [*fixed, *self.options, *left_out, *paths]


def planted(fault: Fault, path: str, line: int, root: Path) -> dict[str, str]:
    """Return the changed file of a fault at its place in the tree at `root`."""
    return {path: plant((root / path).read_text(encoding="utf-8"), fault, line)}

"""The benches' query results are compared exactly, except averages of floats."""

from pathlib import Path

from bench.compute import compute
from bench.data import SMALL, data_file
from bench.query_small import SELECT, differences, groups_of

GROUP = ("s1", 2, 30, -1.5, 9.25, 18.1)


def test_only_the_average_may_differ_and_only_by_rounding() -> None:
    assert differences([GROUP], [GROUP]) == []
    assert differences([GROUP], [(*GROUP[:-1], 18.1 * (1 + 1e-14))]) == []
    assert len(differences([GROUP], [(*GROUP[:-1], 18.1 * (1 + 1e-10))])) == 1
    for index, other in enumerate(["s2", 3, 31, -1.4, 9.2]):
        changed = (*GROUP[:index], other, *GROUP[index + 1 :])
        assert len(differences([GROUP], [changed])) == 1  # type: ignore[list-item]
    assert differences([GROUP], []) == ["0 groups, and 1 were expected"]


def test_the_truth_is_computed_from_the_file(tmp_path: Path) -> None:
    source = data_file(tmp_path, SMALL, rows=500)
    compute(SELECT.format(table="t"), source, tmp_path / "result.csv")

    records = [line.split(",") for line in source.read_text().splitlines()[1:]]
    groups = groups_of(tmp_path / "result.csv")

    assert [group[0] for group in groups] == sorted({record[4] for record in records})
    assert sum(group[1] for group in groups) == 500
    assert sum(group[2] for group in groups) == sum(range(500))
    assert min(group[3] for group in groups) == min(float(record[2]) for record in records)
    assert max(group[4] for group in groups) == max(float(record[3]) for record in records)

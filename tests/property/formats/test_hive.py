"""Folders named after values: every value comes back, whatever it holds, in whatever types."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ringhaul.cql.types import CqlType
from ringhaul.formats.hive import NULL, folder_of, values_of
from ringhaul.formats.write import OutputFormat
from ringhaul.output.partitions import PartitionedParts
from ringhaul.output.parts import PartSet, remove_orphans

TEXTS = st.one_of(
    st.none(),
    st.sampled_from([NULL, "", "%", "=", ".", "..", "/", "a/b", "\\", "\n", "%2F"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), TEXTS))
def test_every_value_comes_back(values: dict[str, str | None]) -> None:
    folders = [folder_of(column, value) for column, value in values.items()]
    assert all("/" not in folder and folder not in (".", "..") for folder in folders)
    assert values_of(folders) == values


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(TEXTS, st.one_of(st.none(), st.integers(-9, 9))), max_size=30),
        max_size=4,
    ),
    st.sampled_from([0, 3]),
)
def test_every_row_is_in_the_folder_of_its_values(
    batches: list[list[tuple[str | None, int | None]]], rows_max: int
) -> None:
    names, types = ["r", "n", "k"], [CqlType("text"), CqlType("int"), CqlType("int")]
    with tempfile.TemporaryDirectory() as folder:
        url = f"{folder}/out"
        files = PartSet(
            url,
            OutputFormat(header=False),
            ["k"],
            types[2:],
            job="ul-1",
            unit=3,
            attempt="a",
            rows_max=rows_max,
        )
        parts = PartitionedParts(files, names, types, ["r", "n"])
        expected, key = [], 0
        for batch in batches:
            keys = range(key, key + len(batch))
            key += len(batch)
            expected += [(*row, number) for row, number in zip(batch, keys, strict=True)]
            arrays = [
                pa.array([row[0] for row in batch], pa.string()),
                pa.array([row[1] for row in batch], pa.int32()),
                pa.array(keys, pa.int32()),
            ]
            assert parts.write(pa.record_batch(arrays, names=names)) == []
        parts.roll()
        found = []
        for part in parts.parts:
            values = values_of(part.name.split("/")[:-1])
            number = values["n"] if values["n"] is None else int(values["n"])
            lines = Path(url, part.name).read_text().splitlines()
            assert len(lines) == part.rows and (not rows_max or part.rows <= rows_max)
            found += [(values["r"], number, int(line)) for line in lines]
        assert sorted(found, key=lambda row: row[2]) == expected
        # Only what does not count is removed, at all depths.
        winners = {part.name for part in parts.parts[:1]}
        removed = remove_orphans(url, "ul-1", winners, deep=True)
        assert sorted(removed) == sorted(part.name for part in parts.parts[1:])

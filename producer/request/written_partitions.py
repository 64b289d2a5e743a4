"""Check that the columns of `--partition-by` can name folders of an unload."""

from __future__ import annotations

from collections.abc import Sequence

from ringhaul.cluster.schema import nearest
from ringhaul.cql.types import CqlType
from ringhaul.errors import UsageError
from ringhaul.formats.write import refuse_blank_lines
from ringhaul.output.job import Output


def check_partitions(output: Output, names: Sequence[str], types: Sequence[CqlType]) -> None:
    """Raise `UsageError` for columns that are not written, cannot name a folder, or are all."""
    kinds = dict(zip(names, types, strict=True))
    for name in output.partition_by:
        if name not in kinds:
            raise UsageError(
                f"--partition-by {name}: is not among the columns that are written "
                f"({', '.join(names[:12])}){nearest(name, names)}"
            )
        if not kinds[name].scalar:
            raise UsageError(
                f"--partition-by {name}: a {kinds[name]} cannot name a folder; give columns with "
                "single values"
            )
    left = [name for name in names if name not in output.partition_by]
    if not left:
        raise UsageError("--partition-by leaves no column for the files: give fewer columns")
    refuse_blank_lines(output.format, left)

"""The questions of a plan, each asked with the beginnings of its files alone.

A command asks all questions of one `Heads`; a test of a single question names just the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from producer.notes import Note
from producer.plan import (
    dialect_warnings as warnings,
)
from producer.plan import (
    dry_run,
    json_layout,
    new_table,
    sources,
    titles,
    transforms,
)
from producer.plan.heads import Heads
from producer.plan.new_table import Planned
from producer.request.load import LoadDraft
from ringhaul.cluster.schema import TableSchema
from ringhaul.cluster.view import ClusterView
from ringhaul.formats.dialect import RFC_4180, CsvDialect
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.rows import Part
from ringhaul.sources.estimate import Estimate
from ringhaul.sources.source import SourceFile
from ringhaul.transform.chain import Transform

Files = Sequence[SourceFile]
Transforms = tuple[Transform, ...]


def plan_sources(request: LoadDraft, files: Files, table: TableSchema) -> list[LoadSource | None]:
    with Heads(files) as heads:
        return sources.plan_sources(request, heads, table)


def plan_source(request: LoadDraft, file: SourceFile, table: TableSchema) -> LoadSource:
    with Heads([file]) as heads:
        return sources.plan_source(request, heads[file], table)


def with_separator(request: LoadDraft, files: Files) -> LoadDraft:
    with Heads(files) as heads:
        return titles.with_separator(request, heads)


def with_layout(request: LoadDraft, files: Files) -> tuple[LoadDraft, str | None]:
    with Heads(files) as heads:
        return json_layout.with_layout(request, heads)


def dialect_warnings(
    request: LoadDraft, planned: Sequence[LoadSource], table: TableSchema
) -> list[str]:
    with _heads(planned) as heads:
        return warnings.dialect_warnings(request, heads, planned, table)


def with_results(job: LoadJob, request: LoadDraft, chain: Transforms) -> LoadJob:
    with _heads(job.sources) as heads:
        return transforms.with_results(job, request, heads, chain)


def dry_run_json(
    job: LoadJob, slots: int, chain: Transforms = (), planned: Planned | None = None
) -> dict[str, Any]:
    with _heads(job.sources) as heads:
        return dry_run.dry_run_json(job, heads, slots, chain, planned)


def dry_run_text(job: LoadJob, slots: int, chain: Transforms = ()) -> str:
    return dry_run.dry_run_text(job, dry_run_json(job, slots, chain), chain)


def sample(job: LoadJob, source: LoadSource, start: Position) -> list[Part]:
    with _heads(job.sources) as heads:
        return dry_run.sample(job, heads, source, start)


def plan_new_table(request: LoadDraft, files: Files, **options: Any) -> Planned:
    with Heads(files) as heads:
        return new_table.plan_new_table(request, heads, **options)


def wanted_table(request: LoadDraft, files: Files, cluster: ClusterView) -> Planned | Note:
    with Heads(files) as heads:
        return new_table.wanted_table(request, heads, cluster)


def estimate(file: SourceFile, dialect: CsvDialect = RFC_4180) -> Estimate:
    with Heads([file]) as heads:
        return heads[file].estimate(dialect)


def _heads(planned: Sequence[LoadSource]) -> Heads:
    return Heads([source.file for source in planned])

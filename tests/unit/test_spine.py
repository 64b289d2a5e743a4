"""What a change costs does not grow: each measure of `tests/spine.py` keeps its bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import spine


@pytest.mark.parametrize("measure", spine.MEASURES, ids=lambda measure: measure.name)
def test_a_measure_keeps_its_bound(measure: spine.Measure) -> None:
    found = measure.find()
    assert len(found) <= measure.most, found


def test_the_measures_find_what_they_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "producer" / "run" / "planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(
        '''"""Do the same for those of another file."""
from cassandra.cluster import Session


def load(session: Session, job, escape_style):
    from ringhaul.errors import UsageError

    if job.kind == "unload" or job.kind in ("count", "query"):
        getattr(job, "output", None)
    if job.stream is not None or job.via == "cql":
        follow_job(job)
    draft = LoadDraft(where=options.where, ttl_s=options.ttl, table="t")
    LoadJob(where=draft.where or "", ttl_s=draft.ttl_s, table=found, base_us=0)
'''
    )
    engine = tmp_path / "ringhaul" / "engine.py"
    engine.parent.mkdir()
    engine.write_text('MESSAGE = "give --skip-rows"\n')
    acceptance = tmp_path / "tests" / "acceptance" / "test_planted.py"
    acceptance.parent.mkdir(parents=True)
    acceptance.write_text("assert done.code == 2 and done.code != 0\nassert_usage(done)\n")
    planted_modules = spine.modules(tmp_path)
    monkeypatch.setattr(spine, "modules", lambda root=tmp_path: planted_modules)

    monkeypatch.setattr(spine, "ROOT", tmp_path)

    counts = {measure.name: len(measure.find()) for measure in spine.MEASURES}

    assert counts == {
        "modules that name escape_style": 1,
        "fields copied by name into the draft and into the job": 2,
        "callers of follow_job": 1,
        "comparisons of a kind with a text": 2,
        "getattr on jobs": 1,
        "questions about destinations outside their rooms": 2,
        "driver sessions in signatures of the producer": 1,
        "exit codes 2 to 4 asserted in acceptance": 2,
        "options that the engine spells": 1,
        "imports of ours inside functions": 1,
        "pronouns without their noun": 2,
    }

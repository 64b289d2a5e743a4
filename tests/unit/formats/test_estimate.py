import gzip
from pathlib import Path

import pytest

from ringhaul.formats import estimate
from ringhaul.formats.estimate import estimate_records
from ringhaul.formats.find import find_sources


def test_records_are_estimated_rather_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    text = b"".join(b"%d,caf\xc3\xa9,%d\n" % (i, i * i) for i in range(20_000))
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    assert estimate_records(find_sources([str(plain)])) == 20_001
    assert estimate_records(find_sources([str(packed)])) == 20_001
    assert estimate_records(find_sources([str(tmp_path)])) == 40_002
    monkeypatch.setattr(estimate, "ESTIMATE_WHOLE_BYTES", 64 * 2**10)
    assert 20_000 <= estimate_records(find_sources([str(plain)])) < 60_000
    assert 20_000 <= estimate_records(find_sources([str(packed)])) < 80_000


def test_nothing_is_estimated_of_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert estimate_records(find_sources([str(tmp_path)])) <= 1

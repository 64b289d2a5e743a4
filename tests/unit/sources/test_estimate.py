import gzip
import os
from pathlib import Path

import pytest

from ringhaul.sources import estimate
from ringhaul.sources.estimate import most_records
from ringhaul.sources.find import find_sources
from tests import heads


def test_estimates_of_records_are_rather_too_high(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    text = b"".join(b"%d,caf\xc3\xa9,%d\n" % (i, i * i) for i in range(20_000))
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    assert _most_records(plain) == 20_001
    assert _most_records(packed) == 20_001
    assert _most_records(tmp_path) == 40_002
    monkeypatch.setattr(estimate, "ESTIMATE_WHOLE_BYTES", 64 * 2**10)
    assert 20_000 <= _most_records(plain) < 60_000
    (source,) = find_sources([str(packed)])
    assert 20_000 <= heads.estimate(source).records < 80_000
    # At most one record for each byte
    assert _most_records(packed) == source.size_bytes


def test_shorter_records_after_the_samples_stay_below_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given files of long records, with short ones at the places that are not sampled
    monkeypatch.setattr(estimate, "ESTIMATE_WHOLE_BYTES", 64 * 2**10)
    long = b"".join(os.urandom(1000).hex().encode() + b"\n" for _ in range(100))
    short = b"1,2\n" * 50_000
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(long + short))
    (tmp_path / "b.csv").write_bytes(long + b"12,34\n" * 2000 + long * 10)
    # Then the estimate is too low, but the bound holds
    for source, records in zip(find_sources([str(tmp_path)]), (50_100, 3100), strict=True):
        found = heads.estimate(source)
        assert found.records < records <= found.bound


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert _most_records(tmp_path) <= 1


def _most_records(path: Path) -> int:
    return most_records([heads.estimate(source) for source in find_sources([str(path)])])

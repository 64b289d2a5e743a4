"""Partial results are stored in the ledger or in a file, and read back unchanged."""

import os
from pathlib import Path

import pytest

from ringhaul.errors import OutputUnusable
from ringhaul.scan import spill as spilling
from ringhaul.scan.spill import (
    PartialTooLarge,
    check_memory,
    forget_old,
    forget_spilled,
    spill,
    spilled_name,
    unspill,
)
from tests.limits import files_up_to

PARTIAL = bytes(range(256)) * 40


NAME = spilled_name("qy-1a2b3c", 7, "abcdef")


def test_a_small_result_stays_in_the_ledger(tmp_path: Path) -> None:
    for partial in (b"", PARTIAL):
        kept = spill(partial, len(PARTIAL), str(tmp_path / "spill"), NAME)
        assert kept == b"\x00" + partial
        assert unspill(kept, "") == partial
    forget_spilled("", NAME)
    forget_spilled(str(tmp_path / "spill"), NAME)
    assert os.listdir(tmp_path) == []


def test_a_large_result_goes_to_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "spill"
    kept = spill(PARTIAL, len(PARTIAL) - 1, str(folder), NAME)
    assert len(kept) < 100
    assert folder.stat().st_mode & 0o777 == 0o700
    assert unspill(kept, str(folder)) == PARTIAL
    # Another attempt of the same unit, then the removal.
    late = spilled_name("qy-1a2b3c", 7, "012345")
    assert spill(PARTIAL, 10, str(folder), late) != kept
    assert sorted(os.listdir(folder)) == sorted([NAME, late])
    forget_spilled(str(folder), late)
    forget_spilled(str(folder), late)
    assert unspill(kept, str(folder)) == PARTIAL
    forget_spilled(str(folder), NAME)
    with pytest.raises(PartialTooLarge, match=r"\.partial is not there: .* must share"):
        unspill(kept, str(folder))


def test_only_old_files_of_unknown_jobs_are_removed(tmp_path: Path) -> None:
    gone = [spilled_name("qy-a", 0, "abcdef"), "." + spilled_name("qy-a", 1234567, "ffffff")]
    young = spilled_name("qy-c", 0, "abcdef")
    others = [spilled_name("qy-b", 7, "abcdef"), "qy-a-000007.partial", "notes.txt", young]
    for name in (*gone, *others):
        (tmp_path / name).touch()
        if name != young:
            os.utime(tmp_path / name, (0, 0))
    forget_old(str(tmp_path), 1000, lambda job: job == "qy-b")
    assert sorted(os.listdir(tmp_path)) == sorted(others)
    forget_old(str(tmp_path / "not there"), 1000, lambda job: False)
    forget_old("", 1000, lambda job: False)


def test_a_large_result_without_a_folder_is_refused() -> None:
    with pytest.raises(PartialTooLarge, match=r"take 10,240 bytes, more than 10,000: group by"):
        spill(PARTIAL, 10_000, "", NAME)


def test_a_result_above_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spilling, "SPILL_BYTES_MAX", 5000)
    with pytest.raises(PartialTooLarge, match=r"more than 5,000"):
        spill(PARTIAL, 1000, str(tmp_path), NAME)
    assert os.listdir(tmp_path) == []
    check_memory(5000)
    with pytest.raises(PartialTooLarge, match=r"take 5,001 bytes, more than 5,000"):
        check_memory(5001)


def test_a_full_disk_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    message = r"kept here: File too large; make room, or set"
    with pytest.raises(OutputUnusable, match=message), files_up_to(2000):
        spill(PARTIAL, 10, str(tmp_path), NAME)
    assert os.listdir(tmp_path) == []


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(OutputUnusable, match=r"set query\.spill_dir to a folder that every worker"):
        spill(PARTIAL, 10, str(tmp_path / "file" / "spill"), NAME)
    assert (tmp_path / "file").read_text() == "precious"

"""Publish the SSTables of a complete load, from the attempts that count and no others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from ringhaul.destination.files import Files, first_number
from ringhaul.errors import OutputUnusable
from ringhaul.ledger.reading import Reader
from ringhaul.records.unit import UnitResult
from ringhaul.sstables.components import DATA, TOC, file_name
from ringhaul.storage.access import check_place


def publish_sstables(ledger: Reader, job_id: str, output: Files) -> int:
    """Move a job's SSTables to where tools look for them; return how many there are.

    Files of attempts that do not count are removed. Safe to repeat, also after a crash in between;
    does nothing more once everything was moved. Raises `OutputUnusable` if files are not there, and
    `OutsideRoots` for folders that this host does not open for jobs.
    """
    staged = output.staged(job_id)
    check_place(staged)
    check_place(output.final)
    expected = 0
    if not os.path.isdir(staged):
        return sum(result.sstables for _, result in _results(ledger, job_id))
    try:
        os.makedirs(output.final, exist_ok=True)
        for unit, result in _results(ledger, job_id):
            folder = output.attempt_folder(job_id, unit, result.attempt, result.worker)
            for number in range(first_number(unit), first_number(unit) + result.sstables):
                _move(folder, output.final, file_name(output.layout.version, number, DATA))
                expected += 1
        _sync(output.final)
        shutil.rmtree(staged, ignore_errors=True)
        _remove_empty(os.path.dirname(staged))
    except OSError as error:
        raise OutputUnusable(
            f"cannot move the SSTables to {output.final}: {error.strerror}; what is written stays "
            f"in {staged}"
        ) from error
    return expected


def _results(ledger: Reader, job_id: str) -> Iterator[tuple[int, UnitResult]]:
    for unit, packed in ledger.results(job_id):
        yield unit, UnitResult.unpack(packed)


def _move(source: str, target: str, data: str) -> None:
    """Move the files of the SSTable of a Data.db, the list of its components last.

    Raises `OutputUnusable` if it is at neither place.
    """
    names = sorted(_files(source, data), key=lambda name: name.endswith(TOC))
    for name in names:
        os.rename(os.path.join(source, name), os.path.join(target, name))
    if not os.path.isfile(os.path.join(target, data)):
        raise OutputUnusable(f"{source}: {data} is not there. Do all hosts share this folder?")


def _files(folder: str, data: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    start = data.removesuffix(DATA)  # such as "nb-1-big-"
    return [name for name in os.listdir(folder) if name.startswith(start)]


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_empty(folder: str) -> None:
    if not os.listdir(folder):
        os.rmdir(folder)

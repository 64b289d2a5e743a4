"""A host's report travels as JSON, also between versions."""

from __future__ import annotations

import json
from pathlib import Path

from config.settings import load_settings
from tasks.host.clock import Offset
from tasks.host.machine import (
    OF_ONE_HOST,
    comparable_settings,
    measure_folder,
    measure_machine,
    versions,
)
from tasks.host.report import (
    Folder,
    HostReport,
    HostView,
    Machine,
    Node,
    pack_report,
    read_report,
)

REPORT = HostReport(
    versions={"ringhaul": "1"},
    settings={"worker.lease_s": 60.0, "storage.schemes": ["s3"]},
    machine=Machine(
        descriptors=5,
        folders=(Folder(role="state", path="/s", free_bytes=1, error="e"),),
        synchronised=False,
        boot="b",
    ),
    broker_clock=Offset(-1.5, 2.0),
    refused="",
    cluster=HostView(name="c", nodes=(Node(address="1.2.3.4", clock=Offset(0, 1)),)),
)


def test_a_report_is_the_same_after_its_journey() -> None:
    assert read_report(json.loads(json.dumps(pack_report(REPORT)))) == REPORT


def test_unknown_fields_are_ignored_and_missing_ones_are_unknown() -> None:
    assert read_report({"versions": {"ringhaul": "9"}, "weather": "fine"}) == HostReport(
        versions={"ringhaul": "9"}
    )
    assert read_report({"machine": {"novel": 1}}) == HostReport(machine=Machine())
    assert read_report({"machine": 7}) is None
    assert read_report("no report") is None


def test_a_part_that_is_not_there_is_not_sent() -> None:
    assert pack_report(HostReport(versions={"a": "1"})) == {"versions": {"a": "1"}}


def test_this_machine_can_be_measured(tmp_path: Path) -> None:
    settings = load_settings({"state_dir": tmp_path / "made" / "later"}).settings
    machine = measure_machine(settings)
    assert [folder.role for folder in machine.folders] == ["state", "spill"]
    assert all(folder.free_bytes and not folder.error for folder in machine.folders)
    assert not (tmp_path / "made").exists()
    assert versions()["celery"] != "none"


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert measure_folder("state", tmp_path / "file").error == "it is a file"
    assert measure_folder("state", tmp_path / "file" / "x").error == f"{tmp_path}/file is a file"


def test_settings_are_compared_without_those_of_one_host_and_without_secrets() -> None:
    loaded = load_settings({"broker.url": "redis://u:s3cret-word@h/0"})
    compared = comparable_settings(loaded)
    assert {one.key for one in loaded.describe()} >= OF_ONE_HOST
    assert not OF_ONE_HOST & compared.keys()
    assert {"broker.visibility_timeout_s", "worker.lease_s", "transform.allowed"} <= compared.keys()
    assert "s3cret-word" not in json.dumps(compared)

"""Settings that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planning import PlannedRinghaul
from tests.refusals import assert_refused


@pytest.fixture
def ringhaul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedRinghaul:
    """The command without a settings file of the user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return PlannedRinghaul(tmp_path)


SETTINGS = {
    "an unknown key": (
        "[cluster]\ncontact_point = ['db1']\n",
        "{file}, line 2: there is no setting cluster.contact_point; "
        "did you mean cluster.contact_points?",
    ),
    "an unknown section": (
        "[clustr]\nport = 9042\n",
        "{file}, line 1: there is no setting clustr; did you mean cluster?",
    ),
    "a value of another type": (
        '[cluster]\nport = "x"\n',
        'cluster.port = "x" (file {file}, line 2): expected a whole number',
    ),
    "no TOML": ("cluster = [\n", "{file} is not valid TOML: Invalid value (at end of document)"),
}


@pytest.mark.parametrize(("text", "message"), SETTINGS.values(), ids=SETTINGS)
def test_a_settings_file_that_cannot_be_used(
    ringhaul: PlannedRinghaul, text: str, message: str
) -> None:
    file = ringhaul.cwd / "ringhaul.toml"
    file.write_text(text)
    finished = ringhaul.run("config", "show")
    assert_refused(finished, 2, message.format(file=file))


def test_an_unknown_environment_variable(ringhaul: PlannedRinghaul) -> None:
    finished = ringhaul.run("config", "show", RINGHAUL_CLUSTER_CONTACT_POINT="db1")
    assert_refused(
        finished,
        2,
        "the environment variable RINGHAUL_CLUSTER_CONTACT_POINT is not a setting of ringhaul; "
        "did you mean RINGHAUL_CLUSTER_CONTACT_POINTS?",
    )

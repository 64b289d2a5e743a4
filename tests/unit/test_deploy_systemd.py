"""The systemd units: checked by these tests, and by systemd-analyze if it is installed.

tests/acceptance/test_deploy.py runs their commands.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config.names import env_name
from config.sections import setting_keys
from config.settings import load_settings
from tests.deployment import DEPLOY, UNITS, unit_commands, unit_settings

FOLDER = DEPLOY / "systemd"
NAMES = ["ringhaul-beat.service", "ringhaul-flower.service", "ringhaul-worker@.service"]
#: The restrictions of each unit, except those that differ on purpose.
LOCKED_DOWN = {
    "DynamicUser": "yes",
    "User": "ringhaul",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "ProtectClock": "yes",
    "ProtectControlGroups": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectProc": "invisible",
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "KeyringMode": "private",
    "LockPersonality": "yes",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces": "yes",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallArchitectures": "native",
    "SystemCallFilter": "@system-service",
    "SystemCallErrorNumber": "EPERM",
}


def test_the_units_exist() -> None:
    assert [path.name for path in UNITS] == NAMES


def test_systemd_accepts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not shutil.which("systemd-analyze"):
        with capsys.disabled():
            print("\nsystemd-analyze is not here: the units were read by this test alone")
        return
    programs = Path(sys.executable).parent
    for path in UNITS:
        # It checks that the program exists.
        text = path.read_text().replace("/opt/ringhaul/bin", str(programs))
        (tmp_path / path.name).write_text(text)
    paths = [str(tmp_path / name.replace("@.", "@1.")) for name in NAMES]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_each_unit_is_locked_down_and_comes_back(path: Path) -> None:
    settings = unit_settings(path)
    for key, value in LOCKED_DOWN.items():
        assert settings[f"Service.{key}"] == [value], key
    # Only programs that never compile kernels can deny memory that is writable and executable.
    compiles = path.name != "ringhaul-flower.service"
    assert settings["Service.MemoryDenyWriteExecute"] == ["no" if compiles else "yes"]
    assert settings["Service.Type"] == ["exec"]
    assert settings["Service.Restart"] == ["always"]
    assert settings["Unit.StartLimitIntervalSec"] == ["0"], "it restarts without limit"
    assert settings["Service.KillMode"] == ["mixed"], (
        "only the parent gets the signal, and stops the rest"
    )
    assert settings["Service.KillSignal"] == ["SIGTERM"]
    assert settings["Install.WantedBy"] == ["multi-user.target"]
    assert not any("password" in value.lower() for value in settings["Service.ExecStart"])


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_each_password_is_a_credential_of_the_service(path: Path) -> None:
    settings = unit_settings(path)
    loaded = {
        name: source
        for name, _, source in (
            value.partition(":") for value in settings["Service.LoadCredential"]
        )
    }
    named = dict(
        match.groups()
        for value in settings["Service.Environment"]
        if (match := re.fullmatch(r"(\w+)=%d/(\w+)", value))
    )
    assert set(named.values()) == set(loaded)
    for variable in named:
        assert variable.endswith("_PASSWORD_FILE")
    assert set(loaded.values()) == {f"/etc/ringhaul/{name}" for name in loaded}
    for value in settings["Service.Environment"]:
        name = value.partition("=")[0]
        others = {"RINGHAUL_CONFIG", "NUMBA_CACHE_DIR"}
        assert name in others | {env_name(key) for key in setting_keys()}


def test_the_settings_of_a_host_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in unit_commands():
        for name, value in command.env.items():
            if name != "RINGHAUL_CONFIG":
                monkeypatch.setenv(name, value)
    loaded = load_settings(config_file=FOLDER / "ringhaul.toml")
    assert loaded.settings.cluster.user == "ringhaul"
    # The service's own file overrides the one that only an administrator can read.
    assert str(loaded.settings.broker.password_file) == "/run/credentials/redis_password"
    assert loaded.origins["broker.password_file"] == "env RINGHAUL_BROKER_PASSWORD_FILE"
    monkeypatch.delenv("RINGHAUL_BROKER_PASSWORD_FILE")
    monkeypatch.delenv("RINGHAUL_CLUSTER_PASSWORD_FILE")
    own = load_settings(config_file=FOLDER / "ringhaul.toml").settings
    assert str(own.broker.password_file) == "/etc/ringhaul/redis_password"
    assert str(own.cluster.password_file) == "/etc/ringhaul/cassandra_password"

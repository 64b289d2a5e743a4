"""The compose file and the image say what the rest of the project knows: read, not run, here."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import rich_click as click
import yaml

from config.celery_config import (
    BEAT_ARGUMENTS,
    FLOWER_ARGUMENTS,
    WORKER_ARGUMENTS,
    WORKER_ENVIRONMENT,
    celery_settings,
)
from config.layers import env_name
from config.sections import setting_keys
from config.settings import load_settings
from producer.__main__ import COMMANDS, cli

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
OURS = sorted(name for name, service in SERVICES.items() if service["image"] == "ringhaul:latest")


def dockerfile_instructions(name: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    return re.findall(rf"^{name} (.+)$", joined, flags=re.MULTILINE)


def image_environment() -> dict[str, str]:
    """What the last stage sets."""
    pairs = shlex.split(dockerfile_instructions("ENV")[-1])
    return dict(pair.split("=", 1) for pair in pairs)


def test_the_services_are_there() -> None:
    assert {"cassandra", "redis", "worker", "beat", "flower"} <= set(SERVICES)
    assert OURS == ["beat", "flower", "worker"]
    # `docker compose up` starts a service only when it is in no profile.
    assert not any("profiles" in service for service in SERVICES.values())


@pytest.mark.parametrize("name", OURS)
def test_each_command_is_one_that_ringhaul_knows(name: str) -> None:
    command, *arguments = SERVICES[name]["command"]
    assert dockerfile_instructions("ENTRYPOINT") == ['["ringhaul"]']
    assert command == name
    assert command in COMMANDS
    assert cli.get_command(click.Context(cli), command) is not None
    for argument in arguments:
        assert argument.partition("=")[0] in options_of(command)


def test_the_arguments_of_the_house_are_options() -> None:
    for name, arguments in (
        ("worker", WORKER_ARGUMENTS),
        ("beat", BEAT_ARGUMENTS),
        ("flower", FLOWER_ARGUMENTS),
    ):
        assert {argument.partition("=")[0] for argument in arguments} <= options_of(name)


def options_of(name: str) -> set[str]:
    """What Celery's command, which ringhaul's passes options on to, takes."""
    if name == "flower":
        from flower.options import options

        return {f"--{option.replace('-', '_')}" for option in options}
    from celery.bin import beat, worker

    command = {"beat": beat.beat, "worker": worker.worker}[name]
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("name", OURS)
def test_each_services_settings_are_known_and_agree(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = image_environment() | SERVICES[name]["environment"]
    assert WORKER_ENVIRONMENT.items() <= environment.items()
    ours = {key: value for key, value in environment.items() if key.startswith("RINGHAUL_")}
    assert set(ours) <= {env_name(key) for key in setting_keys()}
    for key, value in ours.items():
        monkeypatch.setenv(key, value)
    password = tmp_path / "redis_password"
    password.write_text("secret")
    monkeypatch.setenv("RINGHAUL_BROKER_PASSWORD_FILE", str(password))
    monkeypatch.chdir(tmp_path)
    settings = load_settings().settings
    assert celery_settings(settings)["broker_url"] == "redis://:secret@redis:6379/0"
    assert settings.cluster.contact_points == ("cassandra",)
    hosts = {settings.cluster.contact_points[0], "redis"}
    assert hosts <= set(SERVICES), "every host is a service"


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_locked_down_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "published to this machine only"
    if name == "init":
        assert service["network_mode"] == "none"
        return
    assert service["restart"] == "unless-stopped"
    if name in OURS:
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "container_name" not in service, "it could not be scaled"


def test_nothing_of_ours_runs_as_root() -> None:
    assert dockerfile_instructions("USER") == ["10001:10001"]
    assert SERVICES["redis"]["user"] == "10001:10001"
    assert all("user" not in SERVICES[name] for name in OURS)


def test_services_wait_for_what_they_need() -> None:
    for name in OURS:
        for needed, how in SERVICES[name]["depends_on"].items():
            assert how["condition"] == "service_healthy"
            assert "healthcheck" in SERVICES[needed]
    assert {"redis", "cassandra"} == set(SERVICES["worker"]["depends_on"])


def test_a_worker_has_time_to_stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({"broker.url": "redis://h", "state_dir": tmp_path}).settings
    soft = celery_settings(settings)["worker_soft_shutdown_timeout"]
    assert int(SERVICES["worker"]["stop_grace_period"].removesuffix("s")) >= soft + 30


def test_every_volume_and_every_mounted_file_exists() -> None:
    for service in SERVICES.values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("./") and source != "./data":  # made by Docker, filled by users
                assert (ROOT / source).is_file(), source
            elif not source.startswith("./"):
                assert source in COMPOSE["volumes"]


def test_no_password_is_written_down() -> None:
    for path in ("docker-compose.yml", "deploy/Dockerfile", "deploy/valkey.conf"):
        text = (ROOT / path).read_text()
        assert not re.search(r"(?i)(password|requirepass)\s*[=:]\s*['\"]?\w", text), path
        assert not re.search(r"://[^/\s]*:[^/\s]*@", text), path


def test_the_broker_keeps_what_it_is_given() -> None:
    parser = configparser.RawConfigParser(delimiters=(" ",), comment_prefixes=("#",))
    parser.read_string("[valkey]\n" + (ROOT / "deploy" / "valkey.conf").read_text())
    conf = dict(parser["valkey"])
    assert conf["appendonly"] == "yes"
    assert conf["appendfsync"] == "everysec"
    assert conf["maxmemory-policy"] == "noeviction"


def test_the_image_gets_every_package_and_nothing_else() -> None:
    copied = [line.split() for line in dockerfile_instructions("COPY") if "--from" not in line]
    sources = {source for words in copied for source in words[:-1]}
    assert {"ringhaul", "config", "tasks", "producer"} <= sources
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert allowed == sources

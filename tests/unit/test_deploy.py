"""The compose file and the image agree with the rest of the project: read, not run, here.

Their commands are run by tests/acceptance/test_deploy.py. Kubernetes: test_deploy_k8s.py; systemd:
test_deploy_systemd.py; Prometheus and Grafana: test_deploy_monitoring.py.
"""

import configparser
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rich_click as click
import yaml

from config.celery_config import (
    BEAT_ARGUMENTS,
    FLOWER_DEFAULTS,
    WORKER_ARGUMENTS,
    WORKER_ENVIRONMENT,
    celery_settings,
)
from config.names import env_name
from config.sections import setting_keys
from config.settings import load_settings
from producer.cli import cli
from producer.commands.registry import COMMANDS
from tests.deployment import (
    COMPOSE_FILE,
    DEPLOY,
    DOCKERFILE,
    ROOT,
    all_commands,
    compose,
    dockerfile_instructions,
    image_environment,
    is_ours,
    seconds,
    services,
)

SERVICES = services()
OURS = sorted(name for name, service in SERVICES.items() if is_ours(service))
PROFILES = {
    "init": [],
    "redis": [],
    "worker": [],
    "beat": [],
    "cassandra": ["demo"],
    "flower": ["ui", "obs"],
    "prometheus": ["obs"],
    "grafana": ["obs"],
}


def test_the_compose_file_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """By the schema of the specification, and by Compose if it is installed."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, str(COMPOSE_FILE)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    for command in (["docker", "compose"], ["docker-compose"]):
        if not shutil.which(command[0]):
            continue
        if subprocess.run([*command, "version"], capture_output=True).returncode == 0:
            break
    else:
        with capsys.disabled():
            print("\nCompose is not here: docker-compose.yml was held against its schema alone")
        return
    profiles = [f"--profile={name}" for name in ("demo", "ui", "obs")]
    argv = [*command, "--file", str(COMPOSE_FILE), *profiles, "config", "--format", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["services"]) == set(SERVICES)


def test_each_service_is_in_its_profiles() -> None:
    assert {name: one.get("profiles", []) for name, one in SERVICES.items()} == PROFILES
    assert OURS == ["beat", "flower", "worker"]


def test_each_command_of_the_deployment_is_one_that_ringhaul_knows() -> None:
    seen = set()
    for command in all_commands():
        if Path(command.argv[0]).name == "ringhaul":
            name, *arguments = command.argv[1:]
            if name == "--help":
                continue
            seen.add(name)
            assert name in COMMANDS, command.name
            assert cli.get_command(click.Context(cli), name) is not None
            for argument in arguments:
                if argument.startswith("-"):
                    assert argument.partition("=")[0] in options_of(name), command.name
    assert {"worker", "beat", "flower"} <= seen


def test_the_arguments_are_options() -> None:
    for name, arguments in (
        ("worker", WORKER_ARGUMENTS),
        ("beat", BEAT_ARGUMENTS),
        ("flower", [f"--{name}" for name in FLOWER_DEFAULTS]),
    ):
        assert {argument.partition("=")[0] for argument in arguments} <= options_of(name)


def options_of(name: str) -> set[str]:
    """The options of a command, with those that ringhaul passes on to Celery."""
    if name == "flower":
        from flower.options import options

        return {f"--{option.replace('-', '_')}" for option in options}
    from celery.bin import beat, worker

    ours = cli.get_command(click.Context(cli), name)
    assert ours is not None
    passed_on = {"beat": beat.beat.params, "worker": worker.worker.params}.get(name, [])
    return {option for parameter in (*ours.params, *passed_on) for option in parameter.opts}


def test_each_variable_of_the_deployment_is_a_setting() -> None:
    known = {env_name(key) for key in setting_keys()} | {"RINGHAUL_CONFIG"}
    for command in all_commands():
        ours = {name for name in command.env if name.startswith("RINGHAUL_")}
        assert ours <= known, command.name


@pytest.mark.parametrize("name", OURS)
def test_each_services_settings_agree(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = image_environment() | SERVICES[name]["environment"]
    assert WORKER_ENVIRONMENT.items() <= environment.items()
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    password = tmp_path / "redis_password"
    password.write_text("secret")
    monkeypatch.setenv("RINGHAUL_BROKER_PASSWORD_FILE", str(password))
    monkeypatch.setenv("RINGHAUL_CONFIG", str(DEPLOY / "etc" / "ringhaul.toml"))
    settings = load_settings().settings
    assert celery_settings(settings)["broker_url"] == "redis://:secret@redis:6379/0"
    assert settings.cluster.contact_points == ("cassandra",)
    assert {settings.cluster.contact_points[0], "redis"} <= set(SERVICES), "hosts are services"


def test_a_cluster_of_your_own_is_two_variables() -> None:
    variables = {
        "RINGHAUL_CLUSTER_CONTACT_POINTS": "10.0.0.1,10.0.0.2",
        "RINGHAUL_CLUSTER_LOCAL_DC": "dc1",
    }
    for name in OURS:
        environment = services(variables)[name]["environment"]
        assert variables.items() <= environment.items()
        # The demo's node is waited for if it is in the profile.
        assert SERVICES[name]["depends_on"].get("cassandra", {}).get("required", False) is False


@pytest.mark.parametrize(
    ("service", "variable", "value"),
    [("worker", "RINGHAUL_WORKER_CONCURRENCY", "3"), ("flower", "FLOWER_BASIC_AUTH", "me:secret")],
)
def test_variables_of_the_readme_reach_their_service(
    service: str, variable: str, value: str
) -> None:
    assert variable in (DEPLOY / "README.md").read_text()
    assert services({variable: value})[service]["environment"][variable] == value
    # Without a value the variable is absent, not empty, so that a settings file may set it.
    assert variable not in SERVICES[service]["environment"]
    # The variables of all services are still there.
    assert SERVICES["beat"]["environment"].items() <= SERVICES[service]["environment"].items()


def test_the_readme_names_only_variables_that_are_passed_on() -> None:
    """Variables in `.env`: not those in the example of an override, or for the host."""
    text = (DEPLOY / "README.md").read_text()
    named = set(re.findall(r"\b((?:RINGHAUL|FLOWER)_[A-Z_]+)(?==|`)", text))
    named -= set(re.findall(r"export (\w+)=", text))
    raw = yaml.safe_load(COMPOSE_FILE.read_text())["services"]
    assert len(named) >= 4
    assert named <= {name for service in raw.values() for name in service.get("environment", {})}


def test_the_folder_of_inputs_exists_before_docker_creates_it_as_root() -> None:
    assert "./data:/data" in SERVICES["worker"]["volumes"]
    text = (DEPLOY / "README.md").read_text()
    assert text.index("$ mkdir -p data") < text.index("$ docker compose") < text.index(" data/\n")


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_locked_down_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "container_name" not in service and "privileged" not in service
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:"), "published on loopback only"
    # Cassandra's start script writes its configuration.
    assert service.get("read_only", False) is (name != "cassandra")
    if name == "init":
        assert service["network_mode"] == "none"
        assert "ports" not in service and "restart" not in service
    else:
        assert service["restart"] == "unless-stopped"
        assert "healthcheck" in service or name == "beat"


def test_no_lasting_service_runs_as_root() -> None:
    assert dockerfile_instructions("USER") == ["10001:10001"]
    users = {name: one.get("user") for name, one in SERVICES.items() if name not in OURS}
    assert users.pop("init") == "0:0", "it changes the owner of volumes, and ends"
    assert users.pop("cassandra") == "cassandra"
    assert set(users.values()) == {"10001:10001"}
    assert all("user" not in SERVICES[name] for name in OURS)


def test_there_may_be_many_workers_but_one_beat() -> None:
    assert "ports" not in SERVICES["worker"]
    for name in SERVICES:
        assert not {"scale", "deploy"} & set(SERVICES[name])


def test_services_wait_for_what_they_need() -> None:
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            if needed == "init":
                assert how["condition"] == "service_completed_successfully"
                continue
            assert how["condition"] == "service_healthy"
            assert "healthcheck" in SERVICES[needed]
            if how.get("required", True):
                shared = set(PROFILES[needed]) & set(PROFILES[name])
                assert not PROFILES[needed] or shared, f"{needed} may not be there for {name}"
    assert {"redis", "cassandra"} == set(SERVICES["worker"]["depends_on"])


def test_a_worker_has_time_to_stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({"broker.url": "redis://h", "state_dir": tmp_path}).settings
    soft_s = celery_settings(settings)["worker_soft_shutdown_timeout"]
    workers = [one for one in all_commands() if one.program == "ringhaul worker"]
    assert len(workers) == 3
    for command in workers:
        assert command.grace_s is not None and command.grace_s >= soft_s + 30, command.name


def test_a_heartbeat_file_is_stale_at_the_check_but_not_too_soon() -> None:
    """A beat comes every 5 s, at the latest every 60 s: `find -mmin -1` must see one."""
    check = SERVICES["worker"]["healthcheck"]
    assert SERVICES["worker"]["environment"]["RINGHAUL_WORKER_HEARTBEAT_FILE"] in check["test"][1]
    assert seconds(check["interval"]) * check["retries"] >= 60
    default = setting_keys()["worker.sweep_s"].default
    assert default * 5 <= 60


def test_every_volume_and_every_mounted_file_exists() -> None:
    volumes = compose()["volumes"]
    used = set()
    for service in SERVICES.values():
        for volume in service["volumes"]:
            source = volume["source"] if isinstance(volume, dict) else volume.split(":")[0]
            if source.startswith("./"):
                # Created by Docker, filled by users.
                assert source == "./data" or (ROOT / source).exists(), source
            else:
                used.add(source)
    assert used == set(volumes)


def test_an_empty_volume_keeps_its_owner() -> None:
    """Without `nocopy` Docker copies the owner of the image's folder to an empty volume."""
    for name in ("init", "redis", "prometheus", "grafana"):
        for volume in SERVICES[name]["volumes"]:
            if isinstance(volume, dict):
                assert volume["volume"] == {"nocopy": True}
            else:
                assert volume.startswith(("./", "secrets:"))  # it has files when it is shared


def test_no_password_is_written_down() -> None:
    for path in (COMPOSE_FILE, *(path for path in DEPLOY.rglob("*") if path.is_file())):
        if path.suffix == ".md":
            continue
        text = path.read_text()
        assert not re.search(r"(?i)(password|requirepass)\s*[=:]\s*['\"]?\w", text), path
        assert not re.search(r"://[^/\s]*:[^/\s]*@", text), path


def test_the_broker_persists_and_evicts_nothing() -> None:
    parser = configparser.RawConfigParser(delimiters=(" ",), comment_prefixes=("#",))
    parser.read_string("[valkey]\n" + (DEPLOY / "valkey.conf").read_text())
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
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert allowed == sources


def test_each_deployment_limits_what_jobs_may_open() -> None:
    for name in ("etc", "k8s/base", "systemd"):
        settings = load_settings(config_file=DEPLOY / name / "ringhaul.toml").settings
        roots = settings.storage.allowed_roots
        assert any(root.startswith("/") for root in roots), name
        assert not {"/", "file://"} & set(roots), name


def test_third_party_images_are_pinned_by_digest() -> None:
    """A tag can move to another image; a digest cannot."""
    files = [ROOT / "docker-compose.yml", DOCKERFILE, *sorted((DEPLOY / "k8s").rglob("*.yaml"))]
    named = [
        image
        for file in files
        for image in re.findall(r"^\s*(?:image: |ARG PYTHON_IMAGE=)(\S+)$", file.read_text(), re.M)
    ]
    others = [image for image in named if "ringhaul:" not in image]
    assert len(others) >= 7
    for image in others:
        assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image


def test_the_image_is_built_in_stages_and_labelled() -> None:
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", DOCKERFILE.read_text(), re.MULTILINE)
    assert [name for _, name in stages] == ["build", ""]
    assert len({image for image, _ in stages}) == 1, "all stages have the same Python"
    assert "org.opencontainers.image.licenses" in dockerfile_instructions("LABEL")[0]

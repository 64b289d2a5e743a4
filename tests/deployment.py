"""Every command line of the deployment's files, found by reading the files.

Tests take them from here, so a service, a probe or a build step that is added to a file must be
run by them.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE_FILE = ROOT / "docker-compose.yml"
DOCKERFILE = DEPLOY / "Dockerfile"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "k8s").rglob("*.yaml"))

IMAGE = "ringhaul"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that Docker, Kubernetes or systemd starts, with its environment."""

    #: `compose worker`, `compose worker health`, `docker RUN 1`, ...
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    #: Path as the process sees it -> its source. `shared NAME`: a volume that others see
    #: too. `own NAME`: a volume of its service, which its probes see. `repo PATH`: a file or folder
    #: of the checkout. `config NAME`, `secret KEY...`: of Kubernetes. `credential PATH`, `etc`,
    #: `programs`: of a systemd unit.
    mounts: Mapping[str, str] = field(default_factory=dict)
    #: Seconds from SIGTERM to SIGKILL; None: it ends without a signal.
    grace_s: float | None = None

    @property
    def program(self) -> str:
        """`ringhaul worker`, `valkey-server`, ...; `shell: TEXT` of a shell's script."""
        first, *rest = self.argv
        first = Path(first).name
        if first == "sh" and rest[0].startswith("-") and rest[0].endswith("c"):
            return f"shell: {rest[1]}"
        if first == IMAGE:
            return " ".join([first, *rest[:1]])
        if first == "sh":
            return Path(rest[0]).name
        return first


# docker-compose.yml


def compose(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The compose file, with `${NAME:-default}` and `$$` filled in as Docker does.

    A service's variable without a value in the file gets that of `variables`; if that has none
    either, the variable is absent.
    """
    variables = variables or {}

    def fill(text: str) -> str:
        text = re.sub(r"(?<!\$)\$\{(\w+):-([^}]*)\}", lambda m: variables.get(m[1]) or m[2], text)
        assert not re.search(r"(?<!\$)\$(?!\$)", text), f"a variable without a default: {text}"
        return text.replace("$$", "$")

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return fill(value) if isinstance(value, str) else value

    found: dict[str, Any] = walk(yaml.safe_load(COMPOSE_FILE.read_text()))
    for service in found["services"].values():
        if environment := service.get("environment"):
            given = {name: variables.get(name) for name in environment}
            service["environment"] = {
                name: given[name] if value is None else value
                for name, value in environment.items()
                if value is not None or given[name] is not None
            }
    return found


def services(variables: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """The services of the compose file by name."""
    found: dict[str, dict[str, Any]] = compose(variables)["services"]
    return found


def is_ours(service: Mapping[str, Any]) -> bool:
    """Whether a service, or a container, runs the image that deploy/Dockerfile makes."""
    return str(service["image"]).rpartition("/")[2].partition(":")[0] == IMAGE


def compose_commands(variables: Mapping[str, str] | None = None) -> Iterator[Command]:
    """The commands of the services, and their health checks."""
    for name, service in services(variables).items():
        ours = is_ours(service)
        around: dict[str, Any] = {
            "env": (image_environment() if ours else {}) | service.get("environment", {}),
            "cwd": service.get("working_dir", image_workdir() if ours else ""),
            "mounts": dict(compose_mounts(name, service)),
        }
        # Third-party images that run their default command have no command line here.
        entrypoint = service.get("entrypoint", ENTRYPOINTS.get(service["image"].split(":")[0], []))
        if ours:
            entrypoint = image_entrypoint()
        argv = (*entrypoint, *service.get("command", []))
        if argv:
            grace_s = seconds(service.get("stop_grace_period", "10s"))
            once = "restart" not in service
            yield Command(
                name=f"compose {name}", argv=argv, grace_s=None if once else grace_s, **around
            )
        if "healthcheck" in service:
            kind, *test = service["healthcheck"]["test"]
            argv = ("/bin/sh", "-c", *test) if kind == "CMD-SHELL" else tuple(test)
            assert kind in ("CMD", "CMD-SHELL")
            yield Command(name=f"compose {name} health", argv=argv, **around)


#: The program of images that get only arguments. Valkey's image runs its command as given.
ENTRYPOINTS = {"prom/prometheus": ["/bin/prometheus"]}


def compose_mounts(name: str, service: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path in the container, where it comes from)."""
    for volume in service.get("volumes", []):
        if isinstance(volume, str):
            source, target, *_ = volume.split(":")
        else:
            assert volume["type"] == "volume"
            source, target = volume["source"], volume["target"]
        if source.startswith("./deploy/"):
            yield target, f"repo {source}"
        else:
            yield target, f"shared {source}"
    for target in service.get("tmpfs", []):
        yield target, f"own {name} {target}"


def seconds(text: str) -> float:
    """`90s` or `2min` in seconds."""
    number, unit = re.fullmatch(r"([0-9]+)(s|min|m)?", text).groups()  # type: ignore[union-attr]
    return float(number) * (60 if unit in ("min", "m") else 1)


# deploy/Dockerfile


def dockerfile_instructions(name: str, text: str | None = None) -> list[str]:
    """The arguments of each such instruction, with continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", text or DOCKERFILE.read_text())
    return re.findall(rf"^{name} (.+)$", joined, flags=re.MULTILINE)


def image_environment() -> dict[str, str]:
    """Variables of the last stage, without those of the image's own programs and kernels."""
    pairs = shlex.split(dockerfile_instructions("ENV")[-1])
    return {
        key: value
        for key, value in (pair.split("=", 1) for pair in pairs)
        if key not in ("PATH", "NUMBA_CACHE_DIR")
    }


def image_workdir() -> str:
    return dockerfile_instructions("WORKDIR")[-1]


def image_entrypoint() -> list[str]:
    """The program that with-kernels.sh runs; tests/unit/test_deploy_kernels.py tests the script."""
    (entrypoint,) = dockerfile_instructions("ENTRYPOINT")
    shell, script, *program = yaml.safe_load(entrypoint)
    assert (shell, Path(script).name) == ("/bin/sh", "with-kernels.sh")
    return program


def dockerfile_commands() -> Iterator[Command]:
    """The shell lines of the build, and the command of the image."""
    for number, line in enumerate(dockerfile_instructions("RUN"), start=1):
        yield Command(name=f"docker RUN {number}", argv=("/bin/sh", "-c", line))
    (command,) = dockerfile_instructions("CMD")
    argv = (*image_entrypoint(), *yaml.safe_load(command))
    yield Command(name="docker CMD", argv=argv, env=image_environment())
    assert not dockerfile_instructions("HEALTHCHECK"), "each service defines its own"


# deploy/systemd


def unit_settings(path: Path) -> dict[str, list[str]]:
    """`Section.Key` -> values in order, without comments and with lines joined."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in re.sub(r"\\\n\s*", " ", path.read_text()).splitlines():
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1]
            continue
        key, equals, value = line.partition("=")
        assert equals and section, f"{path.name}: {line}"
        found.setdefault(f"{section}.{key.strip()}", []).append(value.strip())
    return found


#: Values of %S, %C, %d, ... for a system service.
SPECIFIERS = {
    "S": "/var/lib",
    "C": "/var/cache",
    "d": "/run/credentials",
    "i": "1",
    "H": "host1",
    "%": "%",
}


def unit_commands() -> Iterator[Command]:
    """The commands of the services; of a template, those of its instance 1."""
    for path in UNITS:
        settings = unit_settings(path)

        def specify(text: str) -> str:
            return re.sub(r"%(.)", lambda m: SPECIFIERS[m[1]], text)

        env = dict(
            pair.split("=", 1)
            for line in settings.get("Service.Environment", [])
            for pair in shlex.split(specify(line))
        )
        mounts = {
            "/opt/ringhaul/bin": "programs",
            "/etc/ringhaul": "etc",
            "/tmp": f"own {path.name} /tmp",
        }
        for key, folder in (("StateDirectory", "/var/lib"), ("CacheDirectory", "/var/cache")):
            for name in settings.get(f"Service.{key}", []):
                mounts[f"{folder}/{name}"] = f"shared {key}"
        for line in settings.get("Service.LoadCredential", []):
            name, _, source = specify(line).partition(":")
            mounts[f"/run/credentials/{name}"] = f"credential {source}"
        for key, values in settings.items():
            if not key.startswith("Service.Exec"):
                continue
            for value in values:
                yield Command(
                    name=f"systemd {path.name} {key.removeprefix('Service.')}",
                    argv=tuple(shlex.split(specify(value))),
                    env=env,
                    cwd=specify(settings["Service.WorkingDirectory"][0]),
                    mounts=mounts,
                    grace_s=seconds(settings["Service.TimeoutStopSec"][0]),
                )


# deploy/k8s


def manifests() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every object of every file that is not a kustomization."""
    for path in MANIFESTS:
        if path.name != "kustomization.yaml":
            for document in yaml.safe_load_all(path.read_text()):
                yield path, document


def pod_specs() -> Iterator[tuple[str, dict[str, Any]]]:
    """(`Deployment worker`, its pod spec), with the additions of the shared-files component."""
    component = yaml.safe_load((DEPLOY / "k8s/shared-data/kustomization.yaml").read_text())
    (patch,) = component["patches"]
    for path, document in manifests():
        spec = document.get("spec", {}).get("template", {}).get("spec")
        if spec is None:
            continue
        kind, metadata = document["kind"], document["metadata"]
        name = metadata.get("name") or metadata["generateName"].rstrip("-")
        if re.fullmatch(patch["target"]["name"], name) and path.parent.name == "base":
            volume, mount = yaml.safe_load(patch["patch"])
            spec["volumes"].append(volume["value"])
            spec["containers"][0]["volumeMounts"].append(mount["value"])
        for template in document["spec"].get("volumeClaimTemplates", []):
            claim = template["metadata"]["name"]
            spec["volumes"].append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})
        yield f"{kind} {name}", spec


def manifest_commands() -> Iterator[Command]:
    """The commands of containers, their probes and their hooks."""
    for owner, spec in pod_specs():
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            ours = is_ours(container)
            around: dict[str, Any] = {
                "env": (image_environment() if ours else {}) | container_env(container),
                "cwd": container.get("workingDir", image_workdir() if ours else ""),
                "mounts": {
                    mount["mountPath"]: volume_source(volumes[mount["name"]], owner)
                    for mount in container["volumeMounts"]
                },
            }
            name = f"k8s {owner}"
            command = container.get("command", image_entrypoint() if ours else [])
            yield Command(
                name=name,
                argv=(*command, *container.get("args", [])),
                grace_s=None if "Job" in owner else spec["terminationGracePeriodSeconds"],
                **around,
            )
            for hook in ("startupProbe", "readinessProbe", "livenessProbe"):
                if hook in container:
                    yield probe(f"{name} {hook}", container[hook], around)
            for hook, handler in container.get("lifecycle", {}).items():
                yield probe(f"{name} {hook}", handler, around)


def probe(name: str, handler: Mapping[str, Any], around: Mapping[str, Any]) -> Command:
    """A probe or a hook; `GET PATH` and `connect` stand for those built into Kubernetes."""
    if "exec" in handler:
        return Command(name=name, argv=tuple(handler["exec"]["command"]), **around)
    if "httpGet" in handler:
        return Command(name=name, argv=("GET", handler["httpGet"]["path"]), **around)
    assert "tcpSocket" in handler, name
    return Command(name=name, argv=("connect",), **around)


def container_env(container: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a container."""
    found = {}
    for variable in container.get("env", []):
        if "value" in variable:
            found[variable["name"]] = variable["value"]
            continue
        reference = variable["valueFrom"]["resourceFieldRef"]
        kind, _, resource = reference["resource"].partition(".")
        found[variable["name"]] = container["resources"][kind][resource]
    return found


def volume_source(volume: Mapping[str, Any], owner: str) -> str:
    """The source of a pod's volume, in the form of `Command.mounts`."""
    if "configMap" in volume:
        return f"config {volume['configMap']['name']}"
    if "secret" in volume:
        keys = [item["key"] for item in volume["secret"].get("items", [])]
        return " ".join(["secret", *keys])
    if "persistentVolumeClaim" in volume:
        return f"shared {volume['persistentVolumeClaim']['claimName']}"
    assert "emptyDir" in volume, volume
    return f"own {owner} {volume['name']}"


def config_files() -> dict[str, list[Path]]:
    """ConfigMap -> its files, as built by the kustomization."""
    base = DEPLOY / "k8s" / "base"
    generators = yaml.safe_load((base / "kustomization.yaml").read_text())["configMapGenerator"]
    return {one["name"]: [base / name for name in one["files"]] for one in generators}


# Prometheus and Grafana

BOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))


def board_queries() -> Iterator[tuple[str, str]]:
    """(panel, query) of each query of the dashboards."""
    for board in BOARDS:
        for panel in json.loads(board.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{board.stem}: {panel['title']}", target["expr"]


def alert_rules() -> list[dict[str, Any]]:
    """The alerts of the compose file's Prometheus."""
    file = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text())
    return [rule for group in file["groups"] for rule in group["rules"]]


def all_commands() -> list[Command]:
    """All commands above."""
    return [
        *compose_commands(),
        *dockerfile_commands(),
        *unit_commands(),
        *manifest_commands(),
    ]

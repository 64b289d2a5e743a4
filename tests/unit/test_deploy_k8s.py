"""The Kubernetes manifests: checked against the API's schemas, and against each other.

tests/acceptance/test_deploy.py runs their commands and probes. No cluster is used.
"""

import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from config.celery_config import celery_settings
from config.settings import load_settings
from ringhaul.ledger import keys
from tests.deployment import (
    DEPLOY,
    MANIFESTS,
    config_files,
    container_env,
    is_ours,
    manifests,
    pod_specs,
)

FOLDER = DEPLOY / "k8s"
#: The oldest and the newest version of the API that is checked.
VERSIONS = ("1.29", "1.34")
#: The schemas of KEDA and of the Prometheus Operator are not part of Kubernetes.
KEDA = "keda.sh/v1alpha1"
OPERATOR = "monitoring.coreos.com/v1"
FOREIGN = (KEDA, OPERATOR)
OBJECTS = [document for _, document in manifests()]
LABEL = "app.kubernetes.io/name"


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = (
        one for one in OBJECTS if one["kind"] == kind and one["metadata"].get("name") == name
    )
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_each_object_is_one_of_the_api(version: str) -> None:
    for document in OBJECTS:
        if document["apiVersion"] not in FOREIGN:
            kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_detect_errors() -> None:
    broken = yaml.safe_load((FOLDER / "base" / "beat.yaml").read_text())
    broken["spec"]["template"]["spec"]["containers"][0]["comand"] = ["beat"]
    with pytest.raises(kubernetes_validate.ValidationError, match="comand"):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


# Kustomize


def test_kustomize_builds_all_manifests(capsys: pytest.CaptureFixture[str]) -> None:
    if not shutil.which("kubectl"):
        with capsys.disabled():
            print("\nkubectl is not here: the kustomizations were read by this test alone")
        return
    done = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / "example")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    made = list(yaml.safe_load_all(done.stdout))
    for document in made:
        if document["apiVersion"] not in FOREIGN:
            kubernetes_validate.validate(document, VERSIONS[-1], strict=True)
        if document["kind"] != "Namespace":
            assert document["metadata"]["namespace"] == "ringhaul", document["metadata"]
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in made}
    assert len(by_name) == len(made)
    worker = by_name["Deployment", "worker"]
    assert "replicas" not in worker["spec"], "KEDA sets the number"
    for name in ("worker", "beat"):
        (container,) = by_name["Deployment", name]["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example/ringhaul:1.0.0rc1"
        assert "/data" in [mount["mountPath"] for mount in container["volumeMounts"]]
    (job,) = (one for one in OBJECTS if one["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/ringhaul:1.0.0rc1"
    assert ("ConfigMap", "ringhaul") in by_name, "a Job can refer to it"


def test_every_file_is_part_of_a_kustomization() -> None:
    for path in MANIFESTS:
        if path.name == "kustomization.yaml":
            for name in resources(path):
                assert (path.parent / name).exists(), f"{path}: {name}"
        elif path.name != "load.yaml":  # applied by hand, for each load
            assert path.name in resources(path.parent / "kustomization.yaml"), path
    for files in config_files().values():
        assert all(path.is_file() for path in files)


def resources(path: Path) -> list[str]:
    kustomization = yaml.safe_load(path.read_text())
    found: list[str] = kustomization.get("resources", []) + kustomization.get("components", [])
    return found


# References between manifests


def test_mounted_volumes_exist() -> None:
    secrets = {"ringhaul": {"redis_password", "cassandra_password"}}
    for owner, spec in pod_specs():
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for container in spec["containers"]:
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == set(volumes), owner
            # Inputs are mounted read-only.
            for mount in container["volumeMounts"]:
                given = {"configMap", "secret"} & set(volumes[mount["name"]])
                assert bool(given) is mount.get("readOnly", False), f"{owner}: {mount}"
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert volume["configMap"]["name"] in config_files(), owner
            if "secret" in volume:
                wanted = {item["key"] for item in volume["secret"].get("items", [])}
                assert wanted <= secrets[volume["secret"]["secretName"]], owner
                assert volume["secret"]["defaultMode"] == 0o440, "its group is the pod's own"


def test_selectors_find_their_pods_and_only_those() -> None:
    pods = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"]
        for one in OBJECTS
        if one["kind"] in ("Deployment", "StatefulSet")
    }
    for one in OBJECTS:
        name, spec = one["metadata"].get("name"), one.get("spec", {})
        if one["kind"] == "Service":
            assert matching(spec["selector"], pods) == {name}
        elif one["kind"] in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            assert matching(spec["selector"]["matchLabels"], pods) == {name}
    clients = {"ringhaul/broker": "client"}
    assert matching(clients, pods) == {"worker", "beat", "flower"}


def matching(selector: Mapping[str, str], pods: Mapping[str, Mapping[str, str]]) -> set[str]:
    return {name for name, labels in pods.items() if selector.items() <= labels.items()}


def test_network_policies_allow_only_needed_traffic() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in OBJECTS if "Policy" in one["kind"]}
    everything = policies.pop("all")
    assert everything["podSelector"] == {} and "ingress" not in everything
    assert set(everything["policyTypes"]) == {"Ingress", "Egress"}
    (broker,) = policies["broker"]["ingress"]
    assert [port["port"] for port in broker["ports"]] == [6379]
    assert {"podSelector": {"matchLabels": {"ringhaul/broker": "client"}}} in broker["from"]
    assert policies["broker"]["podSelector"]["matchLabels"] == {LABEL: "redis"}
    (flower,) = policies["flower"]["ingress"]
    (port,) = named("Service", "flower")["spec"]["ports"]
    assert [one["port"] for one in flower["ports"]] == [port["port"]]
    assert set(policies) == {"broker", "clients", "flower"}
    reached = [port["port"] for way in policies["clients"]["egress"] for port in way["ports"]]
    # Redis, Cassandra, stores and webhooks, spans; the last only in the namespace of monitoring
    assert reached == [6379, 9042, 443, 4318]
    assert "to" in policies["clients"]["egress"][-1]


def test_settings_agree_with_the_manifests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for file in config_files()["ringhaul"]:
        if file.name == "ringhaul.toml":
            text = file.read_text()
    for name in ("redis_password", "cassandra_password"):
        assert f'"/run/ringhaul/{name}"' in text
        (tmp_path / name).write_text("secret")
    (tmp_path / "ringhaul.toml").write_text(text.replace("/run/ringhaul", str(tmp_path)))
    for _, container in containers():
        if not is_ours(container):
            continue
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {"/etc/ringhaul", "/run/ringhaul", "/var/lib/ringhaul", "/tmp"} <= mounts
        for key, value in container_env(container).items():
            monkeypatch.setenv(key, value)
        monkeypatch.setenv("RINGHAUL_CONFIG", str(tmp_path / "ringhaul.toml"))
        settings = load_settings().settings
        assert celery_settings(settings)["broker_url"] == "redis://:secret@redis:6379/0"
    assert settings.worker.concurrency == 2, "the cores of the limit"
    (port,) = named("Service", "redis")["spec"]["ports"]
    assert port["port"] == 6379


def test_the_broker_has_the_same_settings_as_in_compose() -> None:
    (file,) = config_files()["valkey"]
    assert file.read_text() == (DEPLOY / "valkey.conf").read_text()


# Safety


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for owner, spec in pod_specs():
        for container in spec.get("initContainers", []) + spec["containers"]:
            yield owner, container


def test_pods_meet_the_restrictions_of_their_namespace() -> None:
    labels = named("Namespace", "ringhaul")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for owner, spec in pod_specs():
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True, owner
        assert (security["runAsUser"], security["runAsGroup"]) == (10001, 10001), owner
        assert security["fsGroup"] == 10001, f"{owner} could not read its secrets"
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, owner
        assert spec["automountServiceAccountToken"] is False, owner
        # REDIS_PORT=tcp://... and RINGHAUL_... variables of services would be unknown settings.
        assert spec["enableServiceLinks"] is False, owner
    for owner, container in containers():
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False, owner
        assert security["readOnlyRootFilesystem"] is True, owner
        assert security["capabilities"] == {"drop": ["ALL"]}, owner
        assert "memory" in container["resources"]["limits"], owner
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}, owner


def test_there_is_one_beat_and_it_ends_before_the_next_starts() -> None:
    spec = named("Deployment", "beat")["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


def test_beat_has_memory_for_the_runs_that_it_may_start() -> None:
    (container,) = named("Deployment", "beat")["spec"]["template"]["spec"]["containers"]
    settings = tomllib.loads((FOLDER / "base" / "ringhaul.toml").read_text())
    # docs/how-to/schedules.md: some 150 MB each, and beat itself
    needed_mb = (settings["schedule"]["runs_max"] + 1) * 150
    limit = container["resources"]["limits"]["memory"]
    assert {"Mi": 1, "Gi": 1024}[limit[-2:]] * int(limit[:-2]) >= needed_mb


def test_workers_are_not_killed_while_the_broker_is_away() -> None:
    (container,) = named("Deployment", "worker")["spec"]["template"]["spec"]["containers"]
    ready, alive = container["readinessProbe"], container["livenessProbe"]
    assert ready["exec"] == alive["exec"]
    path = container_env(container)["RINGHAUL_WORKER_HEARTBEAT_FILE"]
    assert f"find {path} -mmin -1" in ready["exec"]["command"][-1]
    assert ready["periodSeconds"] * ready.get("failureThreshold", 3) <= 60
    assert alive["periodSeconds"] * alive["failureThreshold"] >= 600


def test_a_drain_does_not_stop_all_workers_at_once() -> None:
    budget = named("PodDisruptionBudget", "worker")["spec"]
    assert budget["maxUnavailable"] == "50%"


# KEDA


def test_keda_scales_workers_by_the_open_units() -> None:
    scaled = named("ScaledObject", "worker")
    spec = scaled["spec"]
    assert set(scaled) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(spec) == {
        "scaleTargetRef",
        "minReplicaCount",
        "maxReplicaCount",
        "pollingInterval",
        "cooldownPeriod",
        "advanced",
        "triggers",
    }
    assert spec["scaleTargetRef"] == {"name": named("Deployment", "worker")["metadata"]["name"]}
    assert spec["minReplicaCount"] == 0
    (trigger,) = spec["triggers"]
    metadata = trigger["metadata"]
    assert trigger["type"] == "redis"
    assert set(metadata) == {
        "address",
        "databaseIndex",
        "listName",
        "listLength",
        "activationListLength",
    }
    assert all(isinstance(value, str) for value in metadata.values()), "KEDA accepts only strings"
    assert metadata["listName"] == keys.OPEN
    assert metadata["address"] == "redis.ringhaul.svc:6379"
    (container,) = named("Deployment", "worker")["spec"]["template"]["spec"]["containers"]
    processes = int(container_env(container)["RINGHAUL_WORKER_CONCURRENCY"])
    assert int(metadata["listLength"]) == 4 * processes
    authentication = named("TriggerAuthentication", trigger["authenticationRef"]["name"])
    assert authentication["spec"]["secretTargetRef"] == [
        {"parameter": "password", "name": "ringhaul", "key": "redis_password"}
    ]
    for one in (scaled, authentication):
        assert one["apiVersion"] == KEDA and one["metadata"]["namespace"] == "ringhaul"


# The Prometheus Operator


def test_the_operator_finds_the_metrics() -> None:
    monitor = named("ServiceMonitor", "ringhaul")
    assert monitor["apiVersion"] == OPERATOR and monitor["metadata"]["namespace"] == "ringhaul"
    spec = monitor["spec"]
    assert set(spec) == {"jobLabel", "selector", "endpoints"}
    service = named("Service", "flower")
    labels = service["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert labels[spec["jobLabel"]] == "ringhaul", "rules and dashboards name the job"
    (endpoint,) = spec["endpoints"]
    assert set(endpoint) == {"port", "path", "interval", "scrapeTimeout"}
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["path"] == "/metrics"
    policy = named("NetworkPolicy", "flower")["spec"]["ingress"][0]["from"]
    assert {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    } in policy


def test_the_operator_has_the_same_alerts_as_compose() -> None:
    rule = named("PrometheusRule", "ringhaul")
    assert rule["apiVersion"] == OPERATOR and rule["metadata"]["namespace"] == "ringhaul"
    file = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text())
    assert rule["spec"] == file

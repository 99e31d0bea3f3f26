"""The rendered pod: restricted in every field, sealed, with time to start and time to drain."""

from __future__ import annotations

import copy
import subprocess
from typing import Any

import pytest

from tests.pod_security import violations
from tests.renderings import RENDERINGS
from tests.scenarios import (
    NIM_IMAGE,
    VLLM_IMAGE,
    a_baked_model,
    a_nim_model,
    a_share_model,
    an_image_volume_model,
    changed,
)
from tests.snapshots import rendered

every_rendering = pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))


def pod_of(manifest: dict[str, Any]) -> dict[str, Any]:
    return rendered(manifest)["Deployment"]["spec"]["template"]["spec"]


def engine_of(manifest: dict[str, Any]) -> dict[str, Any]:
    (engine,) = pod_of(manifest)["containers"]
    return engine


def mounts_of(container: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {mount["name"]: mount for mount in container["volumeMounts"]}


def volumes_of(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {volume["name"]: volume for volume in pod["volumes"]}


# ---------------------------------------------------------------------- Pod Security


@every_rendering
def test_pod_meets_every_control_of_restricted(manifest):
    assert violations(pod_of(manifest)) == []


def _set(*path: Any) -> Any:
    """A change that sets the last step of the path to the value that follows it; `...` deletes it."""
    *steps, last, value = path

    def change(pod: dict[str, Any]) -> None:
        inner: Any = pod
        for step in steps:
            inner = inner[step]
        if value is ...:
            del inner[last]
        elif isinstance(inner, list):
            inner.append(value)
        else:
            inner[last] = value

    return change


ENGINE = ("containers", 0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_set("hostNetwork", True), "hostNetwork is set"),
        (_set("hostPID", True), "hostPID is set"),
        (_set("hostIPC", True), "hostIPC is set"),
        (_set("volumes", 0, {"name": "x", "nfs": {}}), "volume x is of type nfs"),
        (_set("volumes", 0, {"name": "x", "hostPath": {}}), "volume x is of type hostPath"),
        (_set("securityContext", "sysctls", [{"name": "net.core.somaxconn"}]), "sysctl net.core.somaxconn is not safe"),
        (_set("securityContext", "runAsUser", 0), "pod: runs as user 0"),
        (_set("securityContext", "seLinuxOptions", {"type": "spc_t"}), "pod: seLinuxOptions"),
        (_set("securityContext", "windowsOptions", {"hostProcess": True}), "pod: hostProcess"),
        (_set(*ENGINE, "securityContext", "privileged", True), "engine: privileged"),
        (
            _set(*ENGINE, "securityContext", "allowPrivilegeEscalation", ...),
            "engine: allowPrivilegeEscalation is not false",
        ),
        (_set(*ENGINE, "securityContext", "capabilities", ...), "engine: does not drop ALL capabilities"),
        (_set(*ENGINE, "securityContext", "capabilities", "add", ["SYS_ADMIN"]), "engine: adds capabilities"),
        (_set(*ENGINE, "securityContext", "procMount", "Unmasked"), "engine: procMount"),
        (_set(*ENGINE, "securityContext", "runAsNonRoot", False), "engine: runAsNonRoot is not true"),
        (_set(*ENGINE, "securityContext", "runAsUser", 0), "engine: runs as user 0"),
        (_set(*ENGINE, "securityContext", "appArmorProfile", {"type": "Unconfined"}), "engine: appArmorProfile"),
        (
            _set(*ENGINE, "securityContext", "seccompProfile", {"type": "Unconfined"}),
            "engine: seccompProfile is not RuntimeDefault or Localhost",
        ),
        (_set(*ENGINE, "ports", 0, {"containerPort": 1, "hostPort": 1}), "engine: hostPort"),
        (_set(*ENGINE, "livenessProbe", "httpGet", "host", "10.0.0.1"), "engine: livenessProbe names a host"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_oracle_sees_each_control_broken(change, complaint):
    pod = copy.deepcopy(pod_of(a_share_model()))
    change(pod)
    assert complaint in violations(pod)


@every_rendering
def test_pod_has_no_token_no_service_links_and_no_way_to_the_host(manifest):
    pod = pod_of(manifest)
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["serviceAccountName"] == manifest["metadata"]["name"]
    assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC", "hostAliases", "shareProcessNamespace", "dnsConfig"}
    assert "fsGroup" not in pod["securityContext"], "would change the owner of every file on the share"


def test_vllm_root_is_read_only_and_its_user_has_no_privilege():
    pod = pod_of(a_share_model())
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (2000, 0)


def test_nim_root_is_writable_because_no_document_promises_otherwise():
    assert engine_of(a_nim_model())["securityContext"]["readOnlyRootFilesystem"] is False


# ---------------------------------------------------------------------- volumes


@every_rendering
def test_weights_are_mounted_read_only_wherever_they_come_from(manifest):
    pod = pod_of(manifest)
    weights = volumes_of(pod).get("weights")
    containers = (*pod["containers"], *pod.get("initContainers", ()))
    mounted = [
        [mount for mount in container["volumeMounts"] if mount["name"] == "weights"]
        for container in containers
        if container["name"] != "check-accelerators"
    ]
    if weights is None:
        assert "bakedImage" in manifest["spec"]["weights"]
        assert mounted == [[]]
        return
    assert all(mounts[0]["mountPath"] == "/weights" for mounts in mounted)
    assert all(mount["mountPath"].startswith("/adapters/") for mounts in mounted for mount in mounts[1:])
    assert all(mount["readOnly"] is True for mounts in mounted for mount in mounts)
    if "persistentVolumeClaim" in weights:
        assert weights["persistentVolumeClaim"]["readOnly"] is True


@every_rendering
def test_every_writable_volume_is_an_empty_dir_with_a_limit(manifest):
    pod = pod_of(manifest)
    writable = {mount["name"] for mount in pod["containers"][0]["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"tmp", "shm", "nim-cache" if "nim" in manifest["spec"]["engine"] else "cache"}
    assert all(volumes_of(pod)[name]["emptyDir"]["sizeLimit"] for name in writable)


@every_rendering
def test_every_volume_is_mounted_and_every_mount_has_a_volume(manifest):
    pod = pod_of(manifest)
    containers = (*pod["containers"], *pod.get("initContainers", ()))
    assert {mount["name"] for c in containers for mount in c["volumeMounts"]} == set(volumes_of(pod))


@pytest.mark.parametrize(("gpus", "limit"), [(1, "2Gi"), (2, "2Gi"), (4, "8Gi"), (8, "8Gi")])
def test_shared_memory_grows_with_the_workers_of_a_pod(gpus, limit):
    pod = pod_of(a_share_model(accelerator={"count": gpus}))
    assert volumes_of(pod)["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": limit}
    assert mounts_of(pod["containers"][0])["shm"]["mountPath"] == "/dev/shm"


def test_image_volume_is_mounted_by_digest():
    volume = volumes_of(pod_of(RENDERINGS["image-volume"]))["weights"]["image"]
    assert "@sha256:" in volume["reference"]
    assert volume["pullPolicy"] == "IfNotPresent"


def test_folder_of_a_claim_is_a_sub_path():
    assert mounts_of(engine_of(RENDERINGS["claim"]))["weights"]["subPath"] == "llama/fp8"


def test_certificate_is_mounted_from_the_secret_by_name():
    pod = pod_of(RENDERINGS["tls-and-api-key"])
    assert volumes_of(pod)["tls"] == {"name": "tls", "secret": {"secretName": "guarded-tls"}}
    assert mounts_of(pod["containers"][0])["tls"] == {"name": "tls", "mountPath": "/tls", "readOnly": True}


def test_staged_nim_cache_is_linked_into_a_writable_one_before_the_start():
    pod = pod_of(RENDERINGS["nim-profile"])
    (link,) = pod["initContainers"]
    assert link["command"] == ["cp", "-Rsf", "/weights/.", "/opt/nim/.cache/"]
    assert link["image"] == pod["containers"][0]["image"], "no image that was not allowed"
    assert set(mounts_of(link)) == {"weights", "nim-cache"}


def test_staged_nim_cache_in_a_folder_of_an_image_volume_is_linked_from_there():
    nim = {"nim": {"image": NIM_IMAGE, "line": "1.15", "profile": "vllm-bf16-tp1"}}
    (link,) = pod_of(changed(an_image_volume_model(), engine=nim))["initContainers"]
    assert link["command"] == ["cp", "-Rsf", "/weights/phi-4/.", "/opt/nim/.cache/"]


def test_staged_nim_cache_can_be_linked_again_after_the_node_restarted(tmp_path):
    staged, cache = tmp_path / "staged", tmp_path / "cache"
    (staged / "snapshots").mkdir(parents=True)
    (staged / "blob").write_text("weights")
    (staged / "snapshots" / "model").symlink_to("../blob")
    cache.mkdir()
    (link,) = pod_of(RENDERINGS["nim-profile"])["initContainers"]
    for _ in range(2):
        subprocess.run([*link["command"][:-2], f"{staged}/.", f"{cache}/"], check=True)
    assert (cache / "snapshots" / "model").read_text() == "weights"


# ---------------------------------------------------------------------- probes and drain


@every_rendering
def test_startup_probe_lasts_as_long_as_the_budget(manifest):
    engine, budget = engine_of(manifest), manifest["spec"].get("startupBudgetSeconds", 1200)
    startup = engine["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= budget
    assert (startup["failureThreshold"] - 1) * startup["periodSeconds"] < budget
    assert "initialDelaySeconds" not in startup


@pytest.mark.parametrize("budget", [60, 61, 64, 65, 14400])
def test_a_budget_that_is_no_multiple_of_the_period_is_rounded_up(budget):
    startup = engine_of(a_share_model(startupBudgetSeconds=budget))["startupProbe"]
    assert 0 <= startup["failureThreshold"] * startup["periodSeconds"] - budget < startup["periodSeconds"]


@every_rendering
def test_probes_ask_paths_that_need_no_key_and_speak_the_scheme_of_the_endpoint(manifest):
    engine = engine_of(manifest)
    scheme = "HTTPS" if "tls" in manifest["spec"]["endpoint"] else "HTTP"
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = engine[name]["httpGet"]
        assert probe["scheme"] == scheme
        assert probe["port"] == "http"
        assert probe["path"] in {"/health", "/v1/health/ready", "/v1/health/live"}


def test_liveness_forgives_a_stall_that_readiness_does_not():
    engine = engine_of(a_share_model())
    ready, live = engine["readinessProbe"], engine["livenessProbe"]
    assert ready["periodSeconds"] * ready["failureThreshold"] < live["periodSeconds"] * live["failureThreshold"]


@every_rendering
def test_grace_period_holds_propagation_drain_and_teardown(manifest):
    pod, drain = pod_of(manifest), manifest["spec"].get("drainSeconds", 120)
    sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert sleep >= 15, "endpoints must have let go of the pod before the engine hears of its end"
    waits_by_itself = "nim" in manifest["spec"]["engine"]
    assert pod["terminationGracePeriodSeconds"] >= sleep + (0 if waits_by_itself else drain) + 30
    assert sleep >= (drain if waits_by_itself else 0)


@every_rendering
def test_deployment_waits_longer_than_the_slowest_start_and_drain(manifest):
    deployment = rendered(manifest)["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    slowest = manifest["spec"].get("startupBudgetSeconds", 1200) + pod["terminationGracePeriodSeconds"]
    assert deployment["progressDeadlineSeconds"] > slowest


def test_last_words_of_the_engine_are_kept():
    assert engine_of(a_share_model())["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_replace_makes_room_first_and_surge_serves_first():
    strategy = {r: rendered(a_share_model(rollout=r))["Deployment"]["spec"]["strategy"] for r in ("Replace", "Surge")}
    assert strategy["Replace"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert strategy["Surge"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


# ---------------------------------------------------------------------- resources and placement


@pytest.mark.parametrize(
    ("accelerator", "resource", "count"),
    [
        ({}, "nvidia.com/gpu", "1"),
        ({"count": 4}, "nvidia.com/gpu", "4"),
        ({"resource": "amd.com/gpu", "count": 8}, "amd.com/gpu", "8"),
        ({"resource": "nvidia.com/mig-1g.10gb"}, "nvidia.com/mig-1g.10gb", "1"),
    ],
)
def test_gpus_are_asked_for_as_request_and_limit(accelerator, resource, count):
    resources = engine_of(a_share_model(accelerator=accelerator))["resources"]
    assert resources["requests"][resource] == resources["limits"][resource] == count


def test_no_memory_limit_and_never_a_cpu_limit_unless_asked_for():
    resources = engine_of(a_share_model())["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "1"}
    assert resources["requests"] == {
        "cpu": "4",
        "memory": "16Gi",
        "ephemeral-storage": "20Gi",
        "nvidia.com/gpu": "1",
    }


def test_memory_that_is_asked_for_is_request_and_limit():
    resources = engine_of(a_share_model(resources={"memory": "96Gi", "cpu": "8"}))["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "1", "memory": "96Gi"}
    assert (resources["requests"]["memory"], resources["requests"]["cpu"]) == ("96Gi", "8")


def test_instance_types_are_a_required_node_affinity():
    pod = pod_of(a_share_model(accelerator={"instanceTypes": ["Standard_NC24ads_A100_v4"]}))
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["Standard_NC24ads_A100_v4"]}
    ]
    assert "affinity" not in pod_of(a_share_model())


def test_taint_of_gpu_pools_is_tolerated_unless_the_spec_says_otherwise():
    assert pod_of(a_share_model())["tolerations"] == [
        {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    ]
    assert pod_of(a_share_model(accelerator={"tolerations": []}))["tolerations"] == []


def test_replicas_spread_over_nodes_without_insisting():
    (spread,) = pod_of(a_share_model())["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")


# ---------------------------------------------------------------------- what never changes the pods


@pytest.mark.parametrize(
    "other",
    [
        {"replicas": 5},
        {"replicas": 0},
        {"rollout": "Surge"},
        {"isolation": {"enforcement": "Off"}},
        {"isolation": {"enforcement": "Enforce", "maxEvidenceAgeSeconds": 300}},
        {"endpoint": {"internalLoadBalancer": {"subnet": "ilb", "allowedSourceRanges": ["10.0.0.0/8"]}}},
        {"endpoint": {"allowedClients": [{"podSelector": {"matchLabels": {"app": "chat"}}}]}},
    ],
    ids=str,
)
def test_pods_are_not_replaced_for_what_does_not_concern_them(other):
    before = rendered(a_baked_model())["Deployment"]
    after = rendered(changed(a_baked_model(), **other))["Deployment"]
    assert after["spec"]["template"] == before["spec"]["template"]
    assert (
        after["metadata"]["annotations"]["hermetic.dev/pod-template"]
        == (before["metadata"]["annotations"]["hermetic.dev/pod-template"])
    )


def test_the_kubelet_replaces_nothing_in_what_the_spec_says():
    """'$(NAME)' and '$$' are the kubelet's; a variable could bring in a flag or a path that was judged nowhere."""
    arguments = ["--response-role=$(VLLM_LOGGING_PREFIX)", "--chat-template=$$(A)"]
    manifest = changed(
        a_share_model(),
        engine={
            "vllm": {
                "image": VLLM_IMAGE,
                "version": "0.32.0",
                "extraArgs": arguments,
                "extraEnv": [{"name": "VLLM_LOGGING_PREFIX", "value": "$(HOME)$x"}],
            }
        },
    )
    engine = engine_of(manifest)
    assert engine["args"][-2:] == ["--response-role=$$(VLLM_LOGGING_PREFIX)", "--chat-template=$$$$(A)"]
    assert {"name": "VLLM_LOGGING_PREFIX", "value": "$$(HOME)$$x"} in engine["env"]
    assert [word.replace("$$", "$") for word in engine["args"][-2:]] == arguments


def test_groups_that_may_read_the_weights_are_the_pod_s_and_nothing_on_the_share_is_changed():
    context = pod_of(RENDERINGS["nim-of-a-group"])["securityContext"]
    assert (context["supplementalGroups"], "fsGroup" in context) == ([2000, 2147483647], False)
    for name, manifest in RENDERINGS.items():
        if name != "nim-of-a-group":
            assert "supplementalGroups" not in pod_of(manifest)["securityContext"]

"""Models that are really served: rendered by the operator, run by a kubelet, asked through the load balancer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.engine import BEHAVIOUR_FILE
from testbed.images.model import stage_model
from testbed.installation import wait_for
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode
from tests.node.serving import Model
from tests.scenarios import a_baked_model, a_nim_model, a_share_model, an_image_volume_model, an_sglang_model

pytestmark = pytest.mark.sampled(8, of="models on the real node")

Deploy = Callable[..., Model]
CHAT = {"messages": [{"role": "user", "content": "Are you private?"}]}


def answer_of(model: Model, served_name: str) -> str:
    body = json.dumps({"model": served_name, **CHAT})
    output = model.ask("/v1/chat/completions", "-H", "Content-Type: application/json", "-d", body)
    return str(output["choices"][0]["message"]["content"])


def test_a_share_model_answers_through_its_internal_load_balancer(share_model: Deploy, node: RunningNode) -> None:
    model = share_model()
    model.until_reason("Serving")

    assert "stand-in" in answer_of(model, "meta/llama-3.1-8b-instruct")
    assert model.manifest()["status"]["endpoint"]["address"].startswith("10.13.76.")
    mounted = [c for c in node.csi_calls() if model.namespace in json.dumps(c) and c["call"] == "NodePublishVolume"]
    assert mounted
    assert all("ro" in json.dumps(call) for call in mounted)


def test_the_engine_sees_an_offline_world_and_nothing_of_the_cluster(share_model: Deploy) -> None:
    model = share_model()
    model.until_reason("Serving")

    environment: dict[str, str] = model.ask("/stand-in/environment")
    exact = {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "FLASHINFER_NO_DOWNLOAD"}
    assert {name: environment[name] for name in exact} == dict.fromkeys(exact, "1")
    assert not [name for name in environment if "PROXY" in name.upper() or name in {"HF_TOKEN", "NGC_API_KEY"}]
    assert not [name for name in environment if name.endswith("_SERVICE_HOST") and not name.startswith("KUBERNETES_")]
    assert model.shell("ls /var/run/secrets").strip().endswith("No such file or directory")
    assert "Network is unreachable" in model.shell("nc -w 2 198.51.100.1 443 < /dev/null")


def test_the_pod_cannot_write_where_it_should_not(share_model: Deploy, weights: Path) -> None:
    model = share_model()
    model.until_reason("Serving")

    assert "Read-only file system" in model.shell("touch /weights/planted")
    assert "Read-only file system" in model.shell("touch /planted")
    assert model.shell("id -u; id -g").split() == ["2000", "0"]
    assert model.shell("touch $HOME/x /tmp/x /dev/shm/x && echo written").strip() == "written"
    assert "CapEff:\t0000000000000000" in model.shell("grep CapEff /proc/self/status")
    assert not (weights / "planted").exists()


def test_sglang_serves_and_gives_its_pod_s_uid_and_the_api_key_as_keys(
    deploy: Deploy, weights: Path, kubectl: Kubectl, namespace: str
) -> None:
    """The kubelet puts both into the arguments; neither is in the template of the Deployment."""
    stage_model(weights)
    ours = kubectl.within(namespace)
    ours("create", "secret", "generic", "sglang-key", "--from-literal=token=of-the-clients")
    model = deploy(an_sglang_model(), endpoint={"internalLoadBalancer": {}, "apiKey": {"secretName": "sglang-key"}})
    model.until_reason("Serving")

    def status_of(path: str, key: str) -> str:
        curl = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--retry", "15", "--retry-delay", "1")
        options = ("--retry-connrefused", "-X", "POST", "-H", f"Authorization: Bearer {key}", "-d", "{}")
        return model.node.from_client(*curl, *options, f"{model.url()}{path}").stdout.strip()

    pod = model.pod()
    assert model.ask("/v1/models", "-H", "Authorization: Bearer of-the-clients")["data"]
    changes = "/update_weights_from_disk"
    assert [status_of(changes, key) for key in ("", "of-the-clients", pod["metadata"]["uid"])] == ["401", "401", "200"]
    assert status_of("/invocations", "") == "401"
    assert "of-the-clients" not in json.dumps(pod)
    assert "Network is unreachable" in model.shell("nc -w 2 198.51.100.1 443 < /dev/null")


def test_a_nim_serves_a_model_store(deploy: Deploy, node: RunningNode, namespace: str) -> None:
    manifest = a_nim_model()
    stage_model(node.shares / "contosomodels" / "nim" / namespace / "store" / "llama-3-1-8b")
    model = deploy(manifest)
    model.until_reason("Serving")

    assert "stand-in" in answer_of(model, "meta/llama-3.1-8b-instruct")
    environment = model.ask("/stand-in/environment")
    assert environment["NIM_DISABLE_MODEL_DOWNLOAD"] == "1"
    assert environment["NIM_MODEL_PATH"] == "/weights"


def test_a_staged_nim_cache_is_linked_into_a_writable_one(deploy: Deploy, node: RunningNode, namespace: str) -> None:
    cache = node.shares / "contosomodels" / "nim" / namespace / "store" / "llama-3-1-8b"
    stage_model(cache / "ngc" / "hub" / "models--nim--meta--llama" / "snapshots" / "1")
    manifest = a_nim_model()
    manifest["spec"]["engine"]["nim"]["profile"] = "vllm-bf16-tp1"
    model = deploy(manifest)
    wait_for("linked cache", lambda: _init_exit_code(model) == 0, timeout=60)


def _init_exit_code(model: Model) -> int | None:
    statuses: list[dict[str, Any]] = model.pod()["status"].get("initContainerStatuses") or []
    ended = [status["state"].get("terminated", {}).get("exitCode") for status in statuses]
    return ended[0] if ended else None


def test_weights_baked_into_the_image_are_served(deploy: Deploy) -> None:
    model = deploy(a_baked_model())
    model.until_reason("Serving")
    assert "stand-in" in answer_of(model, "meta/llama-3.1-8b-instruct")


def test_weights_from_an_image_volume_are_served(deploy: Deploy) -> None:
    model = deploy(an_image_volume_model())
    model.until_reason("Serving")
    assert "stand-in" in answer_of(model, "meta/llama-3.1-8b-instruct")
    assert "Read-only file system" in model.shell("touch /weights/planted")


def test_a_missing_folder_is_named_and_heals_once_it_is_staged(deploy: Deploy, weights: Path) -> None:
    model = deploy(a_share_model())
    ready = model.until_reason("MountFailed")
    assert "llama-3-1-8b" in ready["message"]

    stage_model(weights)
    model.until_reason("Serving", timeout=180)


def test_what_the_engine_died_of_becomes_the_reason(deploy: Deploy, weights: Path) -> None:
    stage_model(weights)
    (weights / "config.json").unlink()
    model = deploy(a_share_model())
    ready = model.until_reason("ModelIncomplete")

    assert "config.json" in ready["message"] or "local directory" in ready["message"]
    assert model.condition("Stalled")["status"] == "True"


def test_an_engine_that_outgrows_its_memory_says_so(share_model: Deploy) -> None:
    small = {"cpu": "100m", "memory": "12Mi", "sharedMemory": "4Mi", "scratch": "64Mi"}
    ready = share_model(resources=small).until_reason("OutOfMemory")
    assert "12Mi" in ready["message"]


@pytest.mark.parametrize(
    ("failure", "reason", "expected"),
    [
        ("weights-missing", "ModelIncomplete", "Cannot find any model weights"),
        ("gpu-busy", "GpuBusy", "Free memory on"),
    ],
)
def test_a_root_cause_further_up_than_a_kubelet_keeps_of_a_log_is_told(
    share_model: Deploy, weights: Path, failure: str, reason: str, expected: str
) -> None:
    weights.mkdir(parents=True)
    (weights / BEHAVIOUR_FILE).write_text(json.dumps({"fail_with": failure}))
    ready = share_model().until_reason(reason)
    assert expected in ready["message"]


def test_an_image_that_no_node_has_is_named(deploy: Deploy) -> None:
    manifest = a_baked_model("absent")
    manifest["spec"]["engine"]["vllm"]["image"] = "contoso.azurecr.io/not/there@sha256:" + "0" * 64
    ready = deploy(manifest).until_reason("ImagePullFailed")
    assert "contoso.azurecr.io/not/there" in ready["message"]


def test_more_gpus_than_any_node_has_are_counted(share_model: Deploy) -> None:
    ready = share_model(accelerator={"count": 16}).until_reason("Unschedulable")
    assert "needs 16 nvidia.com/gpu on one node" in ready["message"]
    assert "12 short" in ready["message"]

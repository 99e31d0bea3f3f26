"""Serving images with the engine stand-in run as a pod would run the real ones, read-only root and all.

What is rendered for a model is tested elsewhere; here the images are held to being images of that kind.
"""

from __future__ import annotations

import json
import sys

import pytest

from testbed.images.model import stage_model
from testbed.images.oci import write_archive
from testbed.images.recipes import baked_image, model_image, nim_image, vllm_image
from tests.sampled_groups import TEST_BED_NODE

pytestmark = TEST_BED_NODE

PLAIN_USER = {"runAsUser": 2000, "runAsGroup": 0, "runAsNonRoot": True}
LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
CACHE = {"HOME": "/cache", "USER": "vllm", "VLLM_CACHE_ROOT": "/cache/vllm", "NIM_CACHE_PATH": "/cache/nim"}
WRITABLE = {"cache": "/cache", "tmp": "/tmp"}
CHAT = """
import json, sys, urllib.request
body = json.dumps({"model": sys.argv[2], "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}).encode()
request = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", body, {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=10).read().decode())
"""


@pytest.fixture(scope="module")
def images(node, tmp_path_factory):
    """Every serving image, given to the node."""
    images_by_name = {
        "vllm": vllm_image(),
        "nim": nim_image("2.1"),
        "nim-1": nim_image("1.15"),
        "baked": baked_image("phi-4"),
        "model": model_image("phi-4"),
    }
    archive = tmp_path_factory.mktemp("images") / "images.tar"
    write_archive(archive, images_by_name.values())
    node.import_images(archive)
    return images_by_name


@pytest.fixture
def serve(start_pod):
    """Starts an engine pod and returns it when it is ready; `model` is a volume that is mounted at /weights."""

    def start(image, model=None, environment=None, ready="/health", **container):
        volumes = [{"name": name, "emptyDir": {}} for name in WRITABLE]
        mounts = [{"name": name, "mountPath": path} for name, path in WRITABLE.items()]
        if model is not None:
            volumes.append({**model, "name": "weights"})
            mounts.append({"name": "weights", "mountPath": "/weights", "readOnly": True})
        return start_pod(
            "engine",
            {
                "image": image.by_digest,
                "env": [{"name": name, "value": value} for name, value in {**CACHE, **(environment or {})}.items()],
                "securityContext": LOCKED,
                "readinessProbe": {"httpGet": {"path": ready, "port": 8000}, "periodSeconds": 1},
                "volumeMounts": mounts,
                **container,
            },
            securityContext=PLAIN_USER,
            volumes=volumes,
        ).until("Ready")

    return start


@pytest.fixture
def chat(node):
    """Asks a pod for a chat completion and returns the answer's text."""

    def ask(pod, model: str) -> str:
        output = node.inside(sys.executable, "-c", CHAT, f"http://{pod.status()['podIP']}:8000", model)
        assert output.returncode == 0, output.stderr
        return json.loads(output.stdout)["choices"][0]["message"]["content"]

    return ask


def test_vllm_serves_a_model_from_a_share(images, serve, chat, share, share_volume):
    stage_model(share / "llama")
    arguments = ["/weights", "--served-model-name", "llama", "--port", "8000"]

    pod = serve(images["vllm"], share_volume(folderName="llama"), command=["vllm", "serve"], args=arguments)

    assert chat(pod, "llama")


def test_vllm_serves_a_model_from_an_image_volume(images, serve, chat):
    volume = {"image": {"reference": images["model"].by_digest, "pullPolicy": "IfNotPresent"}}

    pod = serve(images["vllm"], volume, args=["/weights/phi-4", "--served-model-name", "phi-4"])

    assert chat(pod, "phi-4")


def test_vllm_serves_the_model_that_is_baked_into_its_image(images, serve, chat):
    pod = serve(images["baked"], args=["/models/phi-4", "--served-model-name", "phi-4"])

    assert chat(pod, "phi-4")


def test_vllm_refuses_a_flag_that_its_version_does_not_know(images, start_pod):
    container = {"image": images["vllm"].by_digest, "args": ["/weights", "--no-such-flag"]}

    pod = start_pod("engine", container, restartPolicy="Never").until("jsonpath={.status.phase}=Failed")

    assert pod.status()["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 2
    assert "unrecognized arguments: --no-such-flag" in pod.kubectl("logs", pod.name)


@pytest.mark.parametrize(("image", "setting"), [("nim", "NIM_MODEL_PATH"), ("nim-1", "NIM_MODEL_NAME")])
def test_a_nim_of_either_line_serves_the_model_it_is_told(images, serve, chat, image, setting):
    volume = {"image": {"reference": images["model"].by_digest, "pullPolicy": "IfNotPresent"}}
    variables = {setting: "/weights/phi-4", "NIM_SERVED_MODEL_NAME": "phi-4"}

    pod = serve(images[image], volume, variables, ready="/v1/health/ready")

    assert chat(pod, "phi-4")

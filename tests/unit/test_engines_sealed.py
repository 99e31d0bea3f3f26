"""Whatever is rendered: no credential, no proxy, no way to fetch, in any pod of any shape."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.reserved_flags import ENVIRONMENT, VLLM_FLAGS
from hermetic.objects.accelerator_checks import CHECKER, check_command
from tests.renderings import RENDERINGS
from tests.snapshots import rendered

CREDENTIALS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "NGC_API_KEY", "NGC_CLI_API_KEY", "MODELSCOPE_API_TOKEN")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
UNSAFE = (
    "VLLM_SERVER_DEV_MODE",
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
    "VLLM_ALLOW_INSECURE_SERIALIZATION",
    "VLLM_PLUGINS",
    "VLLM_USE_MODELSCOPE",
    "VLLM_USAGE_STATS_SERVER",
    "HF_ENDPOINT",
    "NIM_REPOSITORY_OVERRIDE",
    "NIM_SAGEMAKER_MODE",
    "LD_PRELOAD",
)
NEVER_PASSED = ("--trust-remote-code", "--allowed-local-media-path", "--api-key", "--hf-token", "--download-dir")

every_rendering = pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    pod = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]
    return [*pod.get("initContainers", ()), *pod["containers"]]


@every_rendering
def test_no_credential_no_proxy_and_no_unsafe_switch_is_ever_set(manifest):
    forbidden = {name.upper() for name in (*CREDENTIALS, *PROXIES, *UNSAFE)}
    names = {variable["name"].upper() for c in containers(manifest) for variable in c.get("env", ())}
    assert not names & forbidden


@pytest.mark.parametrize("name", [*CREDENTIALS, *PROXIES, *(name.lower() for name in PROXIES), *UNSAFE])
def test_no_user_can_set_one_either(name):
    assert name in ENVIRONMENT


@every_rendering
def test_no_flag_that_opens_an_egress_path_is_ever_passed(manifest):
    arguments = {word for c in containers(manifest) for word in c.get("args", ())}
    assert not arguments & set(NEVER_PASSED)
    assert set(NEVER_PASSED) <= VLLM_FLAGS.keys()


@every_rendering
def test_nothing_is_fetched_from_a_url_and_nothing_runs_through_a_shell(manifest):
    for container in containers(manifest):
        command, args = container.get("command", ()), container.get("args", ())
        if container["name"] == CHECKER:
            # Its shell only looks for python3, and is the same for every model: values are arguments.
            assert tuple(word.replace("$$", "$") for word in command) == check_command()
            command = ()
        arguments = [*command, *args]
        assert not any("://" in word for word in arguments)
        assert not {"sh", "bash", "/bin/sh", "/bin/bash"} & set(arguments)


@every_rendering
def test_secrets_are_only_named(manifest):
    """The operator holds no Secret verbs: a value could only come from the spec, and none is taken from there."""
    for container in containers(manifest):
        assert "envFrom" not in container
        for variable in container.get("env", ()):
            secret = variable.get("valueFrom", {}).get("secretKeyRef")
            assert secret is None or set(secret) == {"name", "key"}


@every_rendering
def test_every_image_is_named_by_digest_and_pulled_only_when_missing(manifest):
    for container in containers(manifest):
        assert "@sha256:" in container["image"]
        assert container["imagePullPolicy"] == "IfNotPresent"

"""`make run`: the operator from the checkout, against the cluster of a kubeconfig."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from testbed.installation import CONFIGURATION, REPOSITORY, wait_for
from testbed.kubectl import Kubectl
from testbed.processes import free_port
from testbed.run import VERIFIER
from tests.scenarios import reporting

SAMPLE = yaml.safe_load((REPOSITORY / "manifests/samples/vllm-azure-files.yaml").read_text())


def test_operator_from_source_creates_the_children_of_a_sample_and_cleans_up(
    kubectl: Kubectl, cluster: Path, namespace: str, tmp_path: Path
) -> None:
    config, temporary = tmp_path / "config.yaml", tmp_path / "temporary"
    own = {"integrity": {"verifiers": [VERIFIER]}, "watchNamespaces": [namespace], "httpPort": free_port()}
    config.write_text(yaml.safe_dump({**CONFIGURATION, **own}))
    temporary.mkdir()
    command = ["make", "-s", "run", f"KUBECONFIG={cluster}", f"CONFIG={config}", f"BIN={Path(sys.executable).parent}"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    # Without evidence of isolation a model with the default enforcement has no Deployment.
    model = reporting({**SAMPLE, "metadata": {"name": SAMPLE["metadata"]["name"], "namespace": namespace}})
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log)
    try:
        wait_for("the CRD", lambda: kubectl("get", "crd", "modeldeployments.hermetic.dev", "--ignore-not-found"))
        kubectl.apply(model)
        in_namespace = kubectl.within(namespace)
        wait_for("the Deployment", lambda: in_namespace.json("get", "deployments")["items"], timeout=120)
    finally:
        running.send_signal(signal.SIGTERM)
        exit_code = running.wait(60)

    # make passes the signal on, waits, and ends by the same signal itself.
    printed = (tmp_path / "log").read_text()
    assert (exit_code, "lease released" in printed) == (-signal.SIGTERM, True), printed
    assert list(temporary.iterdir()) == [], "the token of the operator was left behind"


def test_missing_kubeconfig_is_named_with_the_command_that_makes_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "testbed", "run", "--kubeconfig", str(tmp_path / "none")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"{tmp_path / 'none'}: no such file" in done.stderr
    assert "`make controlplane`" in done.stderr

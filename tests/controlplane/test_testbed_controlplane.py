"""The embedded control plane is a real one, at its pinned version, and survives what fault tests do to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed import audit
from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError
from testbed.kubectl import Kubectl
from testbed.programs import KUBERNETES_VERSION
from tests.sampled_groups import TEST_BED_CONTROL_PLANE

pytestmark = TEST_BED_CONTROL_PLANE

REPOSITORY = Path(__file__).resolve().parents[2]


def test_server_and_kubectl_report_the_pinned_version(kubectl: Kubectl) -> None:
    versions = kubectl.json("version")

    assert versions["serverVersion"]["gitVersion"] == KUBERNETES_VERSION == "v1.36.4"
    assert versions["clientVersion"]["gitVersion"] == KUBERNETES_VERSION


def test_cluster_survives_a_killed_api_server(controlplane: ControlPlane, api: Api, namespace: str) -> None:
    before = controlplane.pids["kube-apiserver"]

    controlplane.restart_apiserver()

    assert controlplane.pids["kube-apiserver"] != before
    assert api.get(f"/api/v1/namespaces/{namespace}")["metadata"]["name"] == namespace
    controlplane.raise_if_dead()


def test_audit_log_tells_writes_of_one_user_from_another(controlplane: ControlPlane, namespace: str) -> None:
    offset = controlplane.audit_log.stat().st_size
    somebody = Api(controlplane.kubeconfig_for("somebody", "system:masters"))
    config_map = {"metadata": {"name": "counted"}}

    somebody.create(f"/api/v1/namespaces/{namespace}/configmaps", config_map)
    somebody.get(f"/api/v1/namespaces/{namespace}/configmaps/counted")

    requests = [request for request in audit.requests(controlplane.audit_log, offset) if request.user == "somebody"]
    assert [(request.verb, request.resource, request.is_write) for request in requests] == [
        ("create", "configmaps", True),
        ("get", "configmaps", False),
    ]


def test_certificate_user_without_rights_is_refused(controlplane: ControlPlane) -> None:
    nobody = Api(controlplane.kubeconfig_for("nobody"))

    with pytest.raises(ApiError) as refusal:
        nobody.get("/api/v1/nodes")

    assert refusal.value.status == 403


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_foreground_command_leaves_no_process_behind(tmp_path: Path, how: signal.Signals) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "testbed", "controlplane"]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        line = json.loads(running.stdout.readline())
        assert Path(line["kubeconfig"]).is_file()
        assert line["version"] == KUBERNETES_VERSION
        assert set(line["pids"]) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
        running.send_signal(how)

    assert running.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 0)
    assert _gone(line["pids"].values()), "programs outlived the command"
    if how != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == [], "data was left behind"


def _gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True

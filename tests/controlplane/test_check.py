"""`hermetic check` against a real API server: before, installed, and by an account that may see little."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.fleet import Pool
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from tests.commandline import Ran, hermetic_process


def check(kubeconfig: Path, *arguments: str) -> Ran:
    return hermetic_process("check", *arguments, "--kubeconfig", kubeconfig, "-o", "json")


def rows_by_check(ran: Ran) -> dict[str, list[dict[str, Any]]]:
    grouped_rows: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(ran.out)["rows"]:
        grouped_rows.setdefault(row["check"], []).append(row)
    return grouped_rows


@pytest.fixture
def nobody(cluster: Path, kubectl: Kubectl, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig of an account without any right."""
    kubectl("create", "serviceaccount", "nobody", "--namespace", namespace)
    token = kubectl("create", "token", "nobody", "--namespace", namespace).strip()
    path = tmp_path / "nobody.kubeconfig"
    path.write_text(Path(cluster).read_text())
    mine = Kubectl(kubectl.program, path)
    mine("config", "set-credentials", "nobody", f"--token={token}")
    mine("config", "set-context", "--current", "--user=nobody")
    return path


def test_a_cluster_with_gpus_can_take_an_installation(cluster: Path, fleet: Callable[..., list[str]]) -> None:
    fleet(Pool("gpu"))
    fleet(Pool("bare", driver=False))
    ran = check(cluster)
    rows = rows_by_check(ran)
    assert (ran.code, ran.err) == (1, "")
    for name in ("kubernetes-version", "policy-engine", "permissions"):
        assert [row["verdict"] for row in rows[name]] == ["Pass"], rows[name]
    by_verdict = {row["verdict"]: row["message"] for row in rows["gpu-nodes"]}
    assert "1 nvidia.com/gpu each" in by_verdict["Pass"]
    assert "no DaemonSet is a device plug-in for nvidia.com/gpu" in by_verdict["Fail"]
    assert [row["verdict"] for row in rows["image-pull"]] == ["NotChecked"]


def test_an_account_without_rights_is_told_which_it_lacks(nobody: Path) -> None:
    ran = check(nobody)
    rows = rows_by_check(ran)
    assert ran.code == 1
    assert "create customresourcedefinitions.apiextensions.k8s.io" in rows["permissions"][0]["message"]
    assert [row["verdict"] for row in rows["gpu-nodes"]] == ["Unknown"]
    installed = check(nobody, "--installed")
    assert installed.code == 3


@pytest.mark.usefixtures("installed")
def test_what_is_installed_is_compared_with_this_release(
    cluster: Path, kubectl: Kubectl, operator: OperatorProcess
) -> None:
    assert operator
    rows = rows_by_check(check(cluster, "--installed"))
    for name in ("crds", "policies", "release"):
        assert {row["verdict"] for row in rows[name]} == {"Pass"}, rows[name]
    assert rows["operator"][0]["verdict"] == "Fail", "the operator runs outside of the cluster here"
    before = rows["rbac"]
    kubectl(
        "create", "clusterrolebinding", "quick-fix", "--clusterrole=cluster-admin",
        "--serviceaccount=hermetic-system:hermetic-operator",
    )  # fmt: skip
    try:
        after = rows_by_check(check(cluster, "--installed"))["rbac"]
    finally:
        kubectl("delete", "clusterrolebinding", "quick-fix")
    assert {row["verdict"] for row in before} == {"Pass"}, before
    assert "quick-fix" in after[-1]["message"]

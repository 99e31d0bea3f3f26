"""Every row of `hermetic check`, both ways: what is fine passes, what is not says what is, why, and what to do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from hermetic.cli.check.before import POLICIES, needed, rows_before
from hermetic.cli.check.facts import DryRun, PreflightFacts, Read, Right
from hermetic.cli.check.gpu_nodes import pools, without_gpus
from hermetic.cli.check.rows import CheckRow, RowVerdict, overall
from hermetic.plan.node_faults import GPU_CONDITIONS
from testbed.fleet import Pool, node
from testbed.installation import REPOSITORY

TAINT = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}


def a_node(*, gpus: int | None = 1, size: str = "Standard_NC24ads_A100_v4", **changes: Any) -> dict[str, Any]:
    """A node as the test bed's fleet makes it, Ready; `gpus` None is one without any GPU resource."""
    gpu_node = node(Pool("gpu", size, driver=gpus is not None, **changes), 0)
    gpu_node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    gpu_node["spec"]["taints"] = [taint for taint in gpu_node["spec"].get("taints", []) if "kwok" not in taint["key"]]
    return gpu_node


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


FINE = PreflightFacts(
    version=(1, 34),
    served=frozenset({POLICIES}),
    rights=dict.fromkeys(needed(), True),
    nodes=Read((a_node(),)),
    drivers=Read((named("file.csi.azure.com"),)),
    dry_runs=(DryRun("modeldeployments.hermetic.dev"),),
    storage_classes=Read((named("managed-csi", provisioner="disk.csi.azure.com"),)),
)


def rows(check: str, **changes: Any) -> list[CheckRow]:
    return [row for row in rows_before(replace(FINE, **changes)) if row.check == check]


def complaint(check: str, **changes: Any) -> CheckRow:
    """The one row of this check that is no Pass; it says why it matters and what to do."""
    (row,) = (row for row in rows(check, **changes) if row.verdict is not RowVerdict.PASS)
    assert row.why
    assert row.fix
    return row


def test_a_cluster_with_everything_passes_and_a_pull_is_never_said_to() -> None:
    verdict_of = {row.check: row.verdict for row in rows_before(FINE)}
    assert verdict_of.pop("image-pull") is RowVerdict.NOT_CHECKED
    assert set(verdict_of.values()) == {RowVerdict.PASS}
    assert overall(rows_before(FINE)) is RowVerdict.PASS


@pytest.mark.parametrize(
    ("version", "verdict"),
    [((1, 31), RowVerdict.FAIL), ((1, 32), None), ((1, 36), None), ((1, 37), RowVerdict.WARNING)],
)
def test_the_version_of_the_api_server(version: tuple[int, int], verdict: RowVerdict | None) -> None:
    if verdict is None:
        assert [row.verdict for row in rows("kubernetes-version", version=version)] == [RowVerdict.PASS]
    else:
        assert complaint("kubernetes-version", version=version).verdict is verdict


def test_a_version_that_cannot_be_read_is_unknown() -> None:
    row = complaint("kubernetes-version", version=None, version_problem="forbidden")
    assert (row.verdict, "forbidden" in row.message) == (RowVerdict.UNKNOWN, True)


def test_a_crd_that_the_api_server_refuses_fails_with_its_words() -> None:
    refusal = "CustomResourceDefinition is invalid: " + "x" * 2000 + ": estimated rule cost exceeds budget"
    row = complaint("crds", dry_runs=(DryRun("modeldeployments.hermetic.dev", refusal=refusal),))
    assert row.verdict is RowVerdict.FAIL
    assert "modeldeployments.hermetic.dev" in row.message
    assert row.message.endswith("estimated rule cost exceeds budget")


def test_a_dry_run_that_was_not_decided_is_unknown() -> None:
    row = complaint("crds", dry_runs=(DryRun("a"), DryRun("b", problem="cannot patch resource")))
    assert row.verdict is RowVerdict.UNKNOWN
    assert "the CRDs b: cannot patch resource" in row.message
    assert "--dry-run=server" in row.commands[0]


def test_an_api_server_without_admission_policies_fails() -> None:
    assert complaint("policy-engine", served=frozenset()).verdict is RowVerdict.FAIL
    assert complaint("policy-engine", served_problem="forbidden").verdict is RowVerdict.UNKNOWN


def test_rights_that_are_missing_are_named() -> None:
    right = Right("apiextensions.k8s.io", "customresourcedefinitions", "create")
    row = complaint("permissions", rights={**FINE.rights, right: False})
    assert row.verdict is RowVerdict.FAIL
    assert "create customresourcedefinitions.apiextensions.k8s.io" in row.message
    assert row.commands == ("kubectl auth can-i create customresourcedefinitions.apiextensions.k8s.io",)


def test_who_may_create_roles_and_not_escalate_is_warned() -> None:
    right = Right("rbac.authorization.k8s.io", "clusterroles", "escalate")
    assert complaint("permissions", rights={**FINE.rights, right: False}).verdict is RowVerdict.WARNING


def test_rights_that_cannot_be_asked_for_are_unknown() -> None:
    assert complaint("permissions", rights=dict.fromkeys(needed())).verdict is RowVerdict.UNKNOWN


def test_every_kind_that_the_manifests_create_is_asked_for() -> None:
    files = [
        file for folder in ("operator", "rbac", "policies") for file in REPOSITORY.glob(f"manifests/{folder}/*.yaml")
    ]
    read = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    kinds = {document["kind"].lower() for document in read if document.get("kind", "Kustomization") != "Kustomization"}
    plurals = {re.sub("y$", "ie", kind) + "s" for kind in kinds}
    resources_asked = {right.resource for right in needed()}
    assert plurals <= resources_asked
    assert resources_asked - plurals == {"customresourcedefinitions", "configmaps"}


# ------------------------------------------------------------------ GPU machines


PLUG_IN = {
    "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "gpu"},
    "spec": {
        "template": {
            "spec": {
                "tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
                "containers": [{"image": "contoso.azurecr.io/nvidia/k8s-device-plugin:v0.17.1"}],
            }
        }
    },
}


def changed_plug_in(**changes: Any) -> dict[str, Any]:
    spec = {**PLUG_IN["spec"]["template"]["spec"], **changes}
    metadata = {"name": "device-plugin", "namespace": "gpu"}
    return {"metadata": metadata, "spec": {"template": {"spec": spec}}}


def a_pod(*, ready: bool = True, waiting: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    owner = {"kind": "DaemonSet", "name": PLUG_IN["metadata"]["name"]}
    return {
        "metadata": {"name": "plug-in-x", "namespace": "gpu", "ownerReferences": [owner]},
        "status": {
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"state": state}],
        },
    }


def without(node_: dict[str, Any], plug_in: dict[str, Any] | None = PLUG_IN, *pods: dict[str, Any]) -> dict[str, Any]:
    """Facts of a cluster whose one GPU machine is this, with this device plug-in and these pods on it."""
    return {
        "nodes": Read((node_,)),
        "daemon_sets": Read((plug_in,) if plug_in else ()),
        "beside": {node_["metadata"]["name"]: Read(pods)},
    }


def test_gpus_of_a_pool_are_counted() -> None:
    (row,) = rows("gpu-nodes", nodes=Read((a_node(), a_node())))
    assert row.message.endswith("(2 nodes Standard_NC24ads_A100_v4): 1 nvidia.com/gpu each")


def an_arm_node(architecture: str = "arm64") -> dict[str, Any]:
    grace = a_node()
    grace["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "Standard_ND128isr_GB300_v6"
    grace["status"]["nodeInfo"] = {"architecture": architecture}
    return grace


def test_nodes_of_grace_ask_for_engine_images_for_arm64() -> None:
    row = complaint("engine-architecture", nodes=Read((an_arm_node(), an_arm_node())))
    assert row.verdict is RowVerdict.NOT_CHECKED
    assert "(2 nodes Standard_ND128isr_GB300_v6): the nodes are arm64" in row.message
    assert row.commands


@pytest.mark.parametrize("architecture", ["amd64", ""])
def test_nodes_that_are_amd64_or_report_nothing_have_no_row_about_it(architecture: str) -> None:
    assert rows("engine-architecture", nodes=Read((an_arm_node(architecture),))) == []


def test_no_gpu_machine_is_a_warning() -> None:
    row = complaint("gpu-nodes", nodes=Read((a_node(size="Standard_D16s_v5", gpus=None),)))
    assert (row.verdict, row.message[:14]) == (RowVerdict.WARNING, "none of 1 node")


def test_sizes_with_an_fpga_are_no_gpu_machines_and_those_of_amd_offer_their_own_resource() -> None:
    fpga = a_node()
    fpga["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "Standard_NP10s"
    (pool,) = pools([fpga, a_node(size="Standard_ND96isr_MI300X_v5", gpus=8)])
    assert pool.resource == "amd.com/gpu"
    assert without_gpus(pool) == ()


CAUSES = {
    "the plug-in is missing": (without(a_node(gpus=None), None), "no DaemonSet is a device plug-in for nvidia.com/gpu"),
    "the plug-in of another vendor": (
        without(a_node(gpus=None), changed_plug_in(containers=[{"image": "x/amd/k8s-device-plugin"}])),
        "no DaemonSet is a device plug-in for nvidia.com/gpu",
    ),
    "a taint": (
        without(a_node(gpus=None, taints=({"key": "team", "value": "a", "effect": "NoSchedule"},))),
        "does not tolerate the taint team=a:NoSchedule",
    ),
    "a node selector": (
        without(
            a_node(gpus=None),
            changed_plug_in(nodeSelector={"accelerator": "x"}),
        ),
        "selects nodes with accelerator=x",
    ),
    "affinity": (without(a_node(gpus=None)), "has no pod there"),
    "the image": (
        without(a_node(gpus=None), PLUG_IN, a_pod(ready=False, waiting="ImagePullBackOff")),
        "cannot be pulled (ImagePullBackOff)",
    ),
    "a crash": (
        without(a_node(gpus=None), PLUG_IN, a_pod(ready=False, waiting="CrashLoopBackOff")),
        "does not run there (CrashLoopBackOff)",
    ),
    "the driver": (without(a_node(gpus=None), PLUG_IN, a_pod()), "finds no GPU: the driver is not loaded"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_gpu_machine_without_gpus_is_told_with_the_cause(cause: str) -> None:
    facts, says = CAUSES[cause]
    row = complaint("gpu-nodes", **facts)
    assert row.verdict is RowVerdict.FAIL
    assert says in row.message
    assert row.commands[0].startswith("kubectl describe node aks-gpu-")


def test_a_node_that_is_not_ready_a_failed_mig_and_sick_gpus_are_told_before_the_plug_in() -> None:
    down = a_node(gpus=None)
    down["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert "the node is not Ready" in complaint("gpu-nodes", **without(down)).message
    mig = a_node(gpus=None, labels={"nvidia.com/mig.config.state": "failed"})
    assert "nvidia.com/mig.config.state is failed" in complaint("gpu-nodes", **without(mig)).message
    sick = a_node()
    sick["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    assert "calls every GPU unhealthy" in complaint("gpu-nodes", **without(sick)).message


def test_gpus_in_slices_are_told_by_the_name_to_ask_for() -> None:
    cut = a_node()
    for amounts in (cut["status"]["allocatable"], cut["status"]["capacity"]):
        del amounts["nvidia.com/gpu"]
        amounts["nvidia.com/mig-1g.10gb"] = "7"
    row = complaint("gpu-nodes", nodes=Read((cut,)))
    assert (row.verdict, "accelerator.resource of the models to nvidia.com/mig-1g.10gb" in row.fix) == (
        RowVerdict.WARNING,
        True,
    )


@pytest.mark.parametrize(
    ("size", "resource", "part"),
    [
        ("Standard_NC24ads_A100_v4", "nvidia.com/gpu", "nvidia.com/gpu.shared"),
        ("Standard_ND96isr_MI300X_v5", "amd.com/gpu", "amd.com/cpx_nps4"),
    ],
)
def test_parts_of_gpus_that_have_a_name_of_their_own_are_not_missing(size: str, resource: str, part: str) -> None:
    cut = a_node(size=size, gpus=None)
    for amounts in (cut["status"]["allocatable"], cut["status"]["capacity"]):
        amounts[part] = "4"
    row = complaint("gpu-nodes", nodes=Read((cut,)))
    assert row.verdict is RowVerdict.WARNING
    assert f"GPUs are offered as {part}, and none as {resource}" in row.message


SLICED = {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}


def test_slices_that_are_offered_as_whole_gpus_are_told_with_their_memory() -> None:
    cut = a_node(gpus=7, labels=SLICED | {"nvidia.com/gpu.memory": "9728"})
    counted, sliced = rows("gpu-nodes", nodes=Read((cut,)))
    assert (counted.verdict, sliced.verdict) == (RowVerdict.PASS, RowVerdict.PASS)
    assert "nvidia.com/gpu is a slice 1g.10gb of a GPU (MIG, single strategy) of 9.5 GiB" in sliced.message


def test_slices_without_a_label_of_their_memory_are_a_warning() -> None:
    row = complaint("gpu-nodes", nodes=Read((a_node(gpus=7, labels=SLICED),)))
    assert row.verdict is RowVerdict.WARNING
    assert "no label nvidia.com/gpu.memory states its memory" in row.message


def an_mi300x_node(listed: int, labels: dict[str, str] | None = None) -> dict[str, Any]:
    cut = a_node(size="Standard_ND96isr_MI300X_v5", labels=labels or {})
    for amounts in (cut["status"]["allocatable"], cut["status"]["capacity"]):
        amounts.pop("nvidia.com/gpu", None)
        amounts["amd.com/gpu"] = str(listed)
    return cut


@pytest.mark.parametrize(
    ("mode", "verdict", "says"),
    [
        (
            "cpx_nps4",
            RowVerdict.PASS,
            "with 1/8 of its computing (single strategy) of 24.0 GiB, which ModelFits counts",
        ),
        ("qpx_nps4", RowVerdict.WARNING, "(single strategy), and its memory is not confirmed"),
        (
            "cpx_nps8",
            RowVerdict.WARNING,
            "the memory of a partition 'cpx_nps8' of AMD Instinct MI300X 192 GB is not known",
        ),
    ],
)
def test_partitions_that_are_offered_as_whole_gpus_are_told_with_their_memory(mode, verdict, says) -> None:
    node = an_mi300x_node(64, {"amd.com/gpu.compute-memory-partition": mode})
    _, row = rows("gpu-nodes", nodes=Read((node,)))
    assert row.verdict is verdict
    assert says in row.message


def test_more_gpus_than_the_vm_has_are_a_warning() -> None:
    (counted,) = rows("gpu-nodes", nodes=Read((an_mi300x_node(8),)))
    assert counted.verdict is RowVerdict.PASS
    row = complaint("gpu-nodes", nodes=Read((an_mi300x_node(64),)))
    assert row.verdict is RowVerdict.WARNING
    assert "a node lists more 'amd.com/gpu' than the VM has GPUs" in row.message


def test_gpus_shared_by_time_are_a_warning() -> None:
    labels = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    row = complaint("gpu-nodes", nodes=Read((a_node(gpus=4, labels=labels),)))
    assert row.verdict is RowVerdict.WARNING
    assert "GPUs are shared by time" in row.message


@pytest.mark.parametrize("kind", GPU_CONDITIONS)
def test_fault_that_a_node_reports_is_a_warning_with_its_name(kind):
    node = a_node()
    node["status"]["conditions"].append({"type": kind, "status": "True"})
    row = next(row for row in rows("gpu-nodes", nodes=Read((a_node(), node))) if row.verdict is RowVerdict.WARNING)
    assert f"{node['metadata']['name']} has the condition {kind}" in row.message
    assert row.commands[-1] == f"kubectl cordon {node['metadata']['name']}"


@pytest.mark.parametrize("truth", ["False", "Unknown"])
def test_condition_of_a_gpu_that_is_not_true_is_no_fault(truth):
    node = a_node()
    node["status"]["conditions"] += [{"type": kind, "status": truth} for kind in GPU_CONDITIONS]
    assert {row.verdict for row in rows("gpu-nodes", nodes=Read((node,)))} == {RowVerdict.PASS}


def test_a_pool_without_a_taint_and_one_that_models_do_not_accept_are_warned() -> None:
    assert "has no taint" in complaint("gpu-taints", nodes=Read((a_node(taints=()),))).message
    other = a_node(taints=(TAINT, {"key": "team", "value": "a", "effect": "NoExecute"}))
    assert "has the taint team=a:NoExecute" in complaint("gpu-taints", nodes=Read((other,))).message
    assert rows("gpu-taints", nodes=Read((a_node(taints=(TAINT,)),))) == []


@pytest.mark.parametrize("field", ["nodes", "storage_classes", "drivers", "namespaces"])
def test_what_may_not_be_listed_is_unknown_and_never_a_pass(field: str) -> None:
    unread_rows = rows_before(replace(FINE, **{field: Read(problem="forbidden")}))
    assert overall(unread_rows) is RowVerdict.UNKNOWN


# ------------------------------------------------------------------ storage and namespaces


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"protocol": "nfs"}, "adds a storage service endpoint to every subnet of the nodes (NFS)"),
        ({"skuName": "Premium_LRS"}, "makes an account with a public endpoint (SMB, and not NFS)"),
        ({"protocol": "nfs", "networkEndpointType": "privateEndpoint"}, ""),
    ],
)
def test_a_storage_class_that_opens_a_way_is_warned(parameters: dict[str, str], says: str) -> None:
    storage_class = named("files", provisioner="file.csi.azure.com", parameters=parameters)
    if says:
        assert says in complaint("storage", storage_classes=Read((storage_class,))).message
    else:
        assert {row.verdict for row in rows("storage", storage_classes=Read((storage_class,)))} == {RowVerdict.PASS}


def test_a_missing_driver_for_azure_files_is_warned() -> None:
    assert complaint("storage", drivers=Read()).verdict is RowVerdict.WARNING


def test_the_level_of_the_operators_namespace_and_of_those_that_the_configuration_names() -> None:
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    system = {"metadata": {"name": "hermetic-system", "labels": {}}}
    assert "enforces privileged, not restricted" in complaint("pod-security", namespaces=Read((system,))).message
    system["metadata"]["labels"] = restricted
    assert [row.verdict for row in rows("pod-security", namespaces=Read((system,)))] == [RowVerdict.PASS]
    missing = [row for row in rows_before(FINE, ("inference",)) if row.check == "pod-security"]
    assert [row.verdict for row in missing] == [RowVerdict.PASS, RowVerdict.FAIL]


ND = "Standard_ND96isr_H100_v5"


@pytest.mark.parametrize(
    ("resources", "offered", "fix"),
    [
        ({"rdma/ib": "8"}, "nodes offer 8 rdma/ib;", "resource: rdma/ib,"),
        ({"nvidia.com/mlnxnics": "8"}, "nodes offer 8 nvidia.com/mlnxnics;", "resource: nvidia.com/mlnxnics,"),
        ({"rdma/shared_ib": "0", "cpu": "96"}, "no node offers an InfiniBand device;", "install drivers"),
    ],
)
def test_what_nodes_offer_of_infiniband_is_told_and_nothing_is_claimed(resources, offered, fix) -> None:
    with_devices = a_node(size=ND)
    with_devices["status"]["allocatable"] |= resources
    row = complaint("interconnect", nodes=Read((with_devices,)))
    assert row.verdict is RowVerdict.NOT_CHECKED
    assert offered in row.message
    assert fix in row.fix


def test_pools_without_infiniband_have_no_row_about_it() -> None:
    assert rows("interconnect") == []

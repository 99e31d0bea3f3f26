"""PersistentVolumes have no owner that Kubernetes could follow: ours go when they have served, others' never do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.api import Api
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments
from tests.controlplane.operator_fixtures import StartOperator
from tests.scenarios import Manifest, a_share_model, changed, reporting

pytestmark = pytest.mark.sampled(5, of="volumes without an owner")

VOLUMES = "/api/v1/persistentvolumes"
OTHER_FOLDER = {"azureFiles": {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b/bf16"}}


@pytest.fixture
def watched(operator: OperatorProcess, api: Api, kubectl: Kubectl, namespace: str) -> Deployments:
    """This test's namespace, the only one that its operator watches."""
    return Deployments(api, kubectl, namespace, operator)


@pytest.fixture
def by_the_platform_team(api: Api) -> Iterator[list[str]]:
    """Names of volumes that others make, removed after the test."""
    names: list[str] = []
    yield names
    for name in names:
        if name in {item["metadata"]["name"] for item in api.get(VOLUMES)["items"]}:
            api.delete(f"{VOLUMES}/{name}")


def idle(name: str = "llama", **spec: Any) -> Manifest:
    """A deployment that has volume and claim, and no pods that would hold on to them unless it is asked for some."""
    return reporting(a_share_model(name, **{"replicas": 0, "endpoint": {}, **spec}))


def claims(deployments: Deployments) -> dict[str, Manifest]:
    items = deployments.api.get(f"/api/v1/namespaces/{deployments.namespace}/persistentvolumeclaims")["items"]
    return {item["metadata"]["name"]: item for item in items}


def volumes(deployments: Deployments) -> dict[str, Manifest]:
    """The volumes of this namespace."""
    chosen = f"hermetic.dev/namespace={deployments.namespace}"
    return {item["metadata"]["name"]: item for item in deployments.api.get(VOLUMES, labelSelector=chosen)["items"]}


def bound(deployments: Deployments) -> tuple[Manifest, Manifest] | None:
    """The one volume and the one claim of this namespace, when each is bound to the other."""
    pairs = list(zip(volumes(deployments).values(), claims(deployments).values(), strict=False))
    if len(pairs) != 1 or len(volumes(deployments)) != len(claims(deployments)):
        return None
    ((volume, claim),) = pairs
    phases = (volume["status"].get("phase"), claim["status"].get("phase"))
    same = volume["spec"]["claimRef"].get("uid") == claim["metadata"]["uid"]
    return (volume, claim) if same and phases == ("Bound", "Bound") else None


def until_bound(deployments: Deployments) -> tuple[Manifest, Manifest]:
    volume, claim = deployments.wait("one volume bound to one claim", lambda: bound(deployments))
    return volume, claim


def test_a_volume_follows_its_claim_and_leaves_the_share_alone(watched: Deployments) -> None:
    watched.apply(idle())
    volume, claim = until_bound(watched)
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain", "or the driver would delete the share"

    watched.api.delete(f"{watched.collection}/llama")

    watched.wait("nothing left", lambda: not volumes(watched) and not claims(watched))
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]


def test_a_deployment_of_the_same_name_gets_a_volume_of_its_own(watched: Deployments) -> None:
    watched.apply(idle())
    before, _ = until_bound(watched)

    watched.api.delete(f"{watched.collection}/llama")
    watched.apply(idle())

    def replaced() -> tuple[Manifest, Manifest] | None:
        pair = bound(watched)
        return pair if pair and pair[0]["metadata"]["name"] != before["metadata"]["name"] else None

    after, _ = watched.wait("another volume, and only that", replaced)
    assert after["spec"]["csi"]["volumeHandle"] != before["spec"]["csi"]["volumeHandle"]
    watched.until("llama", "ScaledToZero")


@pytest.mark.usefixtures("gpu_nodes")
@pytest.mark.parametrize("replicas", [0, 1], ids=["idle", "serving"])
def test_another_folder_is_another_volume_and_the_first_goes_when_no_pod_reads_it(
    watched: Deployments, replicas: int
) -> None:
    settled = "Serving" if replicas else "ScaledToZero"
    watched.apply(idle(replicas=replicas))
    watched.until("llama", settled)
    before, _ = until_bound(watched)

    watched.apply(changed(idle(replicas=replicas), weights=OTHER_FOLDER))
    watched.until("llama", settled)

    after, claim = watched.wait("the first one gone", lambda: bound(watched))
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert after["spec"]["csi"]["volumeAttributes"]["folderName"] == "llama-3-1-8b/bf16"
    mounted = watched.workload("llama")
    assert mounted is not None
    named = [volume["persistentVolumeClaim"]["claimName"] for volume in mounted["spec"]["template"]["spec"]["volumes"]
             if "persistentVolumeClaim" in volume]  # fmt: skip
    assert named == [claim["metadata"]["name"]]


def test_a_claim_that_is_deleted_by_hand_is_bound_again(watched: Deployments) -> None:
    watched.apply(idle())
    volume, claim = until_bound(watched)
    path = f"/api/v1/namespaces/{watched.namespace}/persistentvolumeclaims/{claim['metadata']['name']}"

    watched.api.delete(path)

    def again() -> tuple[Manifest, Manifest] | None:
        pair = bound(watched)
        return pair if pair and pair[1]["metadata"]["uid"] != claim["metadata"]["uid"] else None

    after, _ = watched.wait("bound again", again)
    # a released volume cannot be bound again, not even by a claim of the same name
    assert after["metadata"]["name"] == volume["metadata"]["name"]
    assert after["metadata"]["uid"] != volume["metadata"]["uid"]


def test_a_deleted_namespace_leaves_no_volume(
    start_operator: StartOperator, api: Api, kubectl: Kubectl, namespace: str
) -> None:
    brief = f"{namespace}-brief"
    api.create("/api/v1/namespaces", {"metadata": {"name": brief}})
    watched = Deployments(api, kubectl, brief, start_operator(watchNamespaces=[brief]))
    watched.apply(idle())
    until_bound(watched)

    api.delete(f"/api/v1/namespaces/{brief}")

    watched.wait("no volume left", lambda: not volumes(watched))


# ---------------------------------------------------------------------- whose volumes


def a_volume_of_the_past(name: str, namespace: str, **labels: str) -> Manifest:
    """A volume as the operator makes it, of a deployment that is gone."""
    marked = {
        "app.kubernetes.io/managed-by": "hermetic",
        "hermetic.dev/modeldeployment": "forgotten",
        "hermetic.dev/namespace": namespace,
        "hermetic.dev/owner-uid": "11111111-2222-3333-4444-555555555555",
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {key: value for key, value in (marked | labels).items() if value}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": ["ro"],
            "claimRef": {"namespace": namespace, "name": "forgotten-weights"},
            "csi": {"driver": "file.csi.azure.com", "volumeHandle": name, "readOnly": True},
        },
    }


@pytest.mark.parametrize(
    ("elsewhere", "labels"),
    [
        ("", {"hermetic.dev/owner-uid": ""}),
        ("", {"app.kubernetes.io/managed-by": "somebody"}),
        ("another-namespace", {}),
    ],
    ids=["without an owner's uid", "made by others", "of a namespace that is not watched"],
)
def test_a_volume_that_is_not_ours_to_judge_stays(
    watched: Deployments, by_the_platform_team: list[str], elsewhere: str, labels: dict[str, str]
) -> None:
    theirs, ours = f"theirs-{watched.namespace}", f"ours-{watched.namespace}"
    by_the_platform_team += [theirs, ours]
    watched.api.create(VOLUMES, a_volume_of_the_past(theirs, elsewhere or watched.namespace, **labels))

    # a sweep that took place is one that took what it should
    watched.api.create(VOLUMES, a_volume_of_the_past(ours, watched.namespace))
    watched.wait("the sweep", lambda: not any(name == ours for name in volumes(watched)))

    live = watched.api.get(f"{VOLUMES}/{theirs}")
    assert "deletionTimestamp" not in live["metadata"]

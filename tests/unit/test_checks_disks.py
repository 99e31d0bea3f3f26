"""Table F, disks: links (SAS) to what the nodes keep."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import CLUSTER, GROUP, NODE_GROUP, SCALE_SET, SUBSCRIPTION
from tests.audit_services import (
    OTHER_SUBSCRIPTION,
    REGISTRY_ENDPOINT,
    FakeServices,
    consumer,
    only,
    served_cluster,
    verdicts,
)

COMPUTE = "providers/Microsoft.Compute"
DISK = f"{NODE_GROUP}/{COMPUTE}/disks/pvc-1"
SNAPSHOT = f"{NODE_GROUP}/{COMPUTE}/snapshots/one"
DATA_GROUP = f"{SUBSCRIPTION}/resourceGroups/data"
FAR_DISK = f"{DATA_GROUP}/{COMPUTE}/disks/weights"
ACCESS = f"{GROUP}/{COMPUTE}/diskAccesses/ours"
FAR_ACCESS = f"{OTHER_SUBSCRIPTION}/resourceGroups/x/{COMPUTE}/diskAccesses/theirs"
FOREIGN_ENDPOINT = f"{OTHER_SUBSCRIPTION}/resourceGroups/x/providers/Microsoft.Network/privateEndpoints/pe"
CLOSED = {"networkAccessPolicy": "DenyAll", "publicNetworkAccess": "Disabled", "diskState": "Attached"}
OPEN = {"networkAccessPolicy": "AllowAll", "publicNetworkAccess": "Enabled", "diskState": "Attached"}
BEHIND = {**CLOSED, "networkAccessPolicy": "AllowPrivate", "diskAccessId": ACCESS}
CHECK = "disk-export"


def _with(arm_id: str = DISK, **properties: Any) -> FakeServices:
    azure = served_cluster()
    azure.put(arm_id, {**CLOSED, **properties})
    return azure


def test_a_cluster_without_disks_passes_with_evidence() -> None:
    finding = only(served_cluster(), CHECK)
    assert (finding.verdict, finding.resource) == (Verdict.PASS, CLUSTER)
    assert finding.evidence


@pytest.mark.parametrize("arm_id", [DISK, SNAPSHOT])
@pytest.mark.parametrize(
    ("properties", "verdict", "severity"),
    [
        (CLOSED, "Pass", "medium"),
        (OPEN, "Fail", "medium"),
        ({**OPEN, "publicNetworkAccess": None}, "Fail", "medium"),
        ({**OPEN, "publicNetworkAccess": "Odd"}, "Fail", "medium"),
        ({**OPEN, "publicNetworkAccess": "disabled"}, "Pass", "medium"),
        ({"networkAccessPolicy": None, "publicNetworkAccess": None}, "Fail", "medium"),
        ({"networkAccessPolicy": "Odd"}, "Unknown", "medium"),
        ({"networkAccessPolicy": 7}, "Unknown", "medium"),
        ({**OPEN, "diskState": "ActiveSAS"}, "Fail", "high"),
        ({**OPEN, "diskState": "ActiveSASFrozen"}, "Fail", "high"),
        ({"diskState": "ActiveSAS"}, "Fail", "high"),
        ({"diskState": 7}, "Unknown", "medium"),
        ({**BEHIND, "diskAccessId": FAR_ACCESS}, "Fail", "high"),
        ({**BEHIND, "diskAccessId": None}, "Unknown", "medium"),
    ],
)
def test_who_may_have_a_link_decides(arm_id: str, properties: dict[str, Any], verdict: str, severity: str) -> None:
    finding = only(_with(arm_id, **properties), CHECK)
    assert (finding.verdict, finding.severity, finding.resource) == (verdict, severity, arm_id)
    assert bool(finding.paths) is (verdict == "Fail")
    assert finding.evidence


@pytest.mark.parametrize(
    ("connections", "verdict", "severity"),
    [
        ([consumer(REGISTRY_ENDPOINT)], "Pass", "medium"),
        ([], "Pass", "medium"),
        (None, "Unknown", "medium"),
        ([consumer(FOREIGN_ENDPOINT)], "Fail", "high"),
        ([consumer(None)], "Unknown", "high"),
        ([consumer("not an id")], "Unknown", "high"),
        ([consumer(None, "Pending")], "Unknown", "medium"),
        ([consumer(None), consumer(FOREIGN_ENDPOINT)], "Fail", "high"),
        ([consumer(FOREIGN_ENDPOINT, "Pending")], "Fail", "medium"),
        ([consumer(FOREIGN_ENDPOINT, "Rejected")], "Pass", "medium"),
        ([consumer(FOREIGN_ENDPOINT, "Odd")], "Unknown", "medium"),
        ([{"name": "odd", "properties": {"privateEndpoint": 7}}], "Unknown", "medium"),
        ([{"name": "odd", "properties": {"privateEndpoint": 7}}, consumer(FOREIGN_ENDPOINT)], "Fail", "high"),
    ],
)
def test_a_disk_access_is_as_good_as_its_private_endpoints(connections: Any, verdict: str, severity: str) -> None:
    azure = _with(**BEHIND)
    azure.put(ACCESS, {"privateEndpointConnections": connections})
    finding = only(azure, CHECK)
    assert (finding.verdict, finding.severity) == (verdict, severity)


def test_a_disk_access_that_cannot_be_read_is_unknown() -> None:
    assert only(_with(**BEHIND), CHECK).verdict is Verdict.UNKNOWN
    own = Policy(own_subscriptions=(OTHER_SUBSCRIPTION,))
    assert only(_with(**{**BEHIND, "diskAccessId": FAR_ACCESS}), CHECK, own).verdict is Verdict.UNKNOWN


class TestSystemDisks:
    """AKS makes them, and they cannot be closed: low, one finding for each scale set."""

    def _with(self, machine: str | None, name: str = "os", **properties: Any) -> FakeServices:
        azure = served_cluster()
        arm_id = f"{NODE_GROUP}/{COMPUTE}/disks/{name}"
        azure.put(arm_id, {**OPEN, "osType": "Linux", **properties}, managedBy=machine)
        return azure

    def test_those_of_a_scale_set_are_one_finding(self) -> None:
        azure = self._with(f"{SCALE_SET}/virtualMachines/0")
        azure.put(
            f"{NODE_GROUP}/{COMPUTE}/disks/os2", {**OPEN, "osType": "Linux"}, managedBy=f"{SCALE_SET}/virtualMachines/1"
        )
        finding = only(azure, CHECK)
        assert (finding.verdict, finding.severity, finding.resource) == (Verdict.FAIL, Severity.LOW, SCALE_SET)
        assert "os2" in finding.message

    @pytest.mark.parametrize("machine", [f"{NODE_GROUP}/{COMPUTE}/virtualMachines/aks-vm-0", None, "odd"])
    def test_that_of_another_machine_is_its_own(self, machine: str | None) -> None:
        finding = only(self._with(machine), CHECK)
        assert finding.severity is Severity.LOW
        assert finding.resource.endswith("/disks/os")

    def test_an_active_link_is_high_all_the_same(self) -> None:
        finding = only(self._with(f"{SCALE_SET}/virtualMachines/0", diskState="ActiveSAS"), CHECK)
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)

    @pytest.mark.parametrize("properties", [{"osType": 7}, {"osType": None}])
    def test_one_that_does_not_say_that_it_is_one_is_judged_as_data(self, properties: dict[str, Any]) -> None:
        finding = only(self._with(f"{SCALE_SET}/virtualMachines/0", **properties), CHECK)
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.MEDIUM)


@pytest.mark.parametrize(
    ("arm_id", "fields", "command"),
    [
        (DISK, {}, f"az disk update --ids {DISK} --network-access-policy DenyAll"),
        (SNAPSHOT, {}, f"az snapshot update --ids {SNAPSHOT} --network-access-policy DenyAll"),
        (f"{NODE_GROUP}/{COMPUTE}/disks/os", {"osType": "Linux"}, "--node-osdisk-type Ephemeral"),
    ],
)
def test_the_remedy_fits_what_is_open(arm_id: str, fields: dict[str, Any], command: str) -> None:
    finding = only(_with(arm_id, **OPEN, **fields), CHECK)
    assert command in finding.remedy
    assert "DISK_ID" not in finding.remedy


def test_a_stranger_at_a_disk_access_is_rejected_by_its_connection() -> None:
    azure = _with(**BEHIND)
    azure.put(ACCESS, {"privateEndpointConnections": [consumer(FOREIGN_ENDPOINT)]})
    assert "private-endpoint-connection reject --id /c/one" in only(azure, CHECK).remedy


@pytest.mark.parametrize("kind", ["disks", "snapshots"])
@pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED, UnreadReason.REFUSED])
def test_a_list_that_is_not_whole_is_unknown(kind: str, reason: UnreadReason) -> None:
    azure = _with().refuse(NODE_GROUP, reason, kind=f"Microsoft.Compute/{kind}")
    assert verdicts(azure, CHECK)[CLUSTER.lower()] == "Unknown"  # type: ignore[arg-type]


def test_a_cluster_that_cannot_be_read_never_passes() -> None:
    assert only(served_cluster().refuse(CLUSTER), CHECK).verdict is Verdict.UNKNOWN  # type: ignore[arg-type]


def test_disks_of_others_are_not_looked_at() -> None:
    azure = served_cluster()
    azure.put(FAR_DISK, OPEN)
    assert verdicts(azure, CHECK) == {CLUSTER.lower(): "Pass"}


def _volume(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "weights"}, "spec": spec}


def _handle(handle: Any) -> dict[str, Any]:
    return _volume(csi={"driver": "disk.csi.azure.com", "volumeHandle": handle})


class TestDisksOfVolumes:
    """Where the cluster was asked too, its volumes say which disks are in use beside those of the node group."""

    def _with(self, *volumes: dict[str, Any]) -> FakeServices:
        azure = served_cluster()
        azure.sources = ("azure", "kube")
        azure.objects["v1/persistentvolumes"] = list(volumes)
        azure.put(FAR_DISK, OPEN)
        azure.put(f"{DATA_GROUP}/{COMPUTE}/disks/not-ours", OPEN)
        return azure

    @pytest.mark.parametrize(
        "volume", [_handle(FAR_DISK.upper()), _volume(azureDisk={"diskName": "weights", "diskURI": FAR_DISK})]
    )
    def test_a_disk_elsewhere_is_found_by_its_volume(self, volume: dict[str, Any]) -> None:
        assert verdicts(self._with(volume), CHECK) == {FAR_DISK.lower(): "Fail"}

    def test_so_are_snapshots_beside_it_that_were_made_of_it(self) -> None:
        azure = self._with(_handle(FAR_DISK))
        for name, made_of in (
            ("its", {"sourceResourceId": FAR_DISK.upper()}),
            ("odd", 7),
            ("other", {"sourceResourceId": DISK}),
        ):
            azure.put(f"{DATA_GROUP}/{COMPUTE}/snapshots/{name}", {**OPEN, "creationData": made_of})
        names = {resource.rpartition("/")[2] for resource in verdicts(azure, CHECK)}
        assert names == {"weights", "its", "odd"}

    @pytest.mark.parametrize("handle", [f"{DATA_GROUP}/{COMPUTE}/disks/gone", "pvc-1", "", None, ACCESS])
    def test_a_volume_whose_disk_was_not_seen_leaves_a_gap(self, handle: Any) -> None:
        assert verdicts(self._with(_handle(handle)), CHECK)[CLUSTER.lower()] == "Unknown"

    def test_volumes_of_other_drivers_lead_to_no_disk(self) -> None:
        other = _volume(csi={"driver": "file.csi.azure.com", "volumeHandle": "a#b#c"})
        assert verdicts(self._with(other, _volume(nfs={"server": "nas", "path": "/"})), CHECK) == {
            CLUSTER.lower(): "Pass"
        }

    def test_a_damaged_volume_leaves_a_gap(self) -> None:
        azure = self._with(_volume(csi={"driver": "disk.csi.azure.com", "volumeHandle": 7}))
        assert verdicts(azure, CHECK)[CLUSTER.lower()] == "Unknown"

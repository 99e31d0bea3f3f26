"""Table F, storage: accounts and file shares that the nodes are led to."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.model.findings import Verdict
from tests.audit_estates import CLUSTER, NETWORK, NODES, VNET, FakeAzure
from tests.audit_services import ACCOUNT, SHARE, FakeServices, only, served_cluster, verdicts

ACCOUNTS, SHARES = ("storage-public", "storage-copy-scope"), ("fileshare-public", "fileshare-eit", "fileshare-squash")


def _target(check: str) -> str:
    return ACCOUNT if check in ACCOUNTS else SHARE


@pytest.mark.parametrize("check", [*ACCOUNTS, *SHARES])
def test_what_is_closed_passes(check: str) -> None:
    finding = only(served_cluster(), check)
    assert (finding.verdict, finding.resource) == (Verdict.PASS, _target(check))
    assert finding.evidence


@pytest.mark.parametrize("check", [*ACCOUNTS, *SHARES])
def test_what_cannot_be_read_is_unknown(check: str) -> None:
    target = _target(check)
    assert verdicts(served_cluster().refuse(target, verb="get"), check) == {target.lower(): "Unknown"}


@pytest.mark.parametrize("check", [*ACCOUNTS, *SHARES])
def test_nothing_applies_where_none_is_in_use(check: str) -> None:
    azure = served_cluster()
    for name in ("account", "share"):
        azure.drop(f"{NETWORK}/privateEndpoints/{name}")
    assert verdicts(azure, check) == {CLUSTER.lower(): "NotApplicable"}


CLOSED = {"defaultAction": "Deny", "bypass": "None"}


@pytest.mark.parametrize(
    ("properties", "verdict", "severity"),
    [
        ({"publicNetworkAccess": "Enabled"}, "Fail", "high"),
        ({"publicNetworkAccess": None}, "Fail", "high"),
        ({"publicNetworkAccess": "Odd"}, "Fail", "high"),
        ({"publicNetworkAccess": "SecuredByPerimeter"}, "Unknown", "high"),
        (
            {"publicNetworkAccess": "SecuredByPerimeter", "networkAcls": {**CLOSED, "defaultAction": "Allow"}},
            "Unknown",
            "high",
        ),
        ({"publicNetworkAccess": "SecuredByPerimeter", "networkAcls": {"defaultAction": "Deny"}}, "Fail", "high"),
        ({"networkAcls": {**CLOSED, "bypass": "Logging, AzureServices"}}, "Fail", "high"),
        ({"networkAcls": {"defaultAction": "Deny"}}, "Fail", "high"),
        ({"networkAcls": {**CLOSED, "resourceAccessRules": [{"tenantId": "t"}]}}, "Fail", "high"),
        ({"networkAcls": {**CLOSED, "bypass": "Odd"}}, "Unknown", "high"),
        ({"networkAcls": {**CLOSED, "defaultAction": "Allow"}}, "Fail", "medium"),
        ({"networkAcls": {**CLOSED, "ipRules": [{"value": "20.1.2.3"}]}}, "Fail", "medium"),
        ({"networkAcls": {**CLOSED, "virtualNetworkRules": [{"id": NODES}]}}, "Fail", "medium"),
        ({"networkAcls": None}, "Unknown", "high"),
    ],
)
def test_an_account_is_reached_by_private_endpoint_only(
    properties: dict[str, Any], verdict: str, severity: str
) -> None:
    finding = only(served_cluster().change(ACCOUNT, **properties), "storage-public")
    assert (finding.verdict, finding.severity) == (verdict, severity)


@pytest.mark.parametrize(
    ("properties", "verdict"),
    [
        ({"allowedCopyScope": "AAD"}, "Pass"),
        ({"allowedCopyScope": None}, "Fail"),
        ({"allowedCopyScope": "Odd"}, "Unknown"),
        ({"allowCrossTenantReplication": True}, "Fail"),
        ({"allowCrossTenantReplication": None}, "Fail"),
        ({"allowBlobPublicAccess": True}, "Fail"),
        ({"allowBlobPublicAccess": None}, "Fail"),
        ({"allowSharedKeyAccess": True}, "Fail"),
        ({"allowSharedKeyAccess": None}, "Fail"),
        ({"isSftpEnabled": True}, "Fail"),
        ({"isSftpEnabled": None}, "Pass"),
        ({"isSftpEnabled": "no"}, "Unknown"),
    ],
)
def test_nothing_is_copied_out_of_an_account(properties: dict[str, Any], verdict: str) -> None:
    assert only(served_cluster().change(ACCOUNT, **properties), "storage-copy-scope").verdict == verdict


NFS = {"rootSquash": "RootSquash", "encryptionInTransitRequired": "Enabled"}


@pytest.mark.parametrize(
    ("check", "properties", "verdict"),
    [
        ("fileshare-public", {"publicNetworkAccess": "Enabled"}, "Fail"),
        ("fileshare-public", {"publicNetworkAccess": None}, "Fail"),
        ("fileshare-public", {"publicAccessProperties": {"allowedSubnets": [NODES.upper()]}}, "Pass"),
        ("fileshare-public", {"publicAccessProperties": {"allowedSubnets": [f"{VNET}/subnets/tools"]}}, "Fail"),
        ("fileshare-eit", {"nfsProtocolProperties": {**NFS, "encryptionInTransitRequired": "Disabled"}}, "Fail"),
        ("fileshare-eit", {"nfsProtocolProperties": {"rootSquash": "RootSquash"}}, "Fail"),
        ("fileshare-eit", {"protocol": "SMB"}, "NotApplicable"),
        ("fileshare-eit", {"protocol": "Odd"}, "Unknown"),
        ("fileshare-squash", {"nfsProtocolProperties": {**NFS, "rootSquash": "AllSquash"}}, "Pass"),
        ("fileshare-squash", {"nfsProtocolProperties": {**NFS, "rootSquash": "NoRootSquash"}}, "Fail"),
        ("fileshare-squash", {"nfsProtocolProperties": {**NFS, "rootSquash": "Odd"}}, "Unknown"),
        ("fileshare-squash", {"nfsProtocolProperties": None}, "Fail"),
        ("fileshare-squash", {"protocol": "SMB"}, "NotApplicable"),
    ],
)
def test_a_share_is_closed_encrypted_and_squashed(check: str, properties: dict[str, Any], verdict: str) -> None:
    assert only(served_cluster().change(SHARE, **properties), check).verdict == verdict


def _with_volume(azure: FakeServices, **spec: Any) -> FakeServices:
    for name in ("account", "share"):
        azure.drop(f"{NETWORK}/privateEndpoints/{name}")
    azure.sources = ("azure", "kube")
    azure.objects["v1/persistentvolumes"] = [{"metadata": {"name": "weights"}, "spec": spec}]
    return azure


def _azure_files(**attributes: str) -> dict[str, Any]:
    return {"csi": {"driver": "file.csi.azure.com", "volumeHandle": "h", "volumeAttributes": attributes}}


def _csi(driver: str, handle: str, **attributes: str) -> dict[str, Any]:
    return {"csi": {"driver": driver, "volumeHandle": handle, "volumeAttributes": attributes}}


class TestSharesOfVolumes:
    """Where the cluster was asked too, its volumes say which accounts and shares are in use."""

    def test_an_account_is_found_by_its_name(self) -> None:
        azure = _with_volume(served_cluster(), **_azure_files(storageAccount="AISTORE", shareName="weights"))
        assert verdicts(azure, "storage-public") == {ACCOUNT.lower(): "Pass"}
        assert verdicts(azure, "fileshare-public") == {CLUSTER.lower(): "NotApplicable"}

    @pytest.mark.parametrize(
        "spec",
        [
            _azure_files(storageAccount="fs-weights", server="fs-weights.file.storage.azure.net"),
            {"nfs": {"server": "fs-weights.file.storage.azure.net", "path": "/fs-weights/weights"}},
        ],
    )
    def test_a_share_without_an_account_is_found_by_its_host(self, spec: dict[str, Any]) -> None:
        azure = _with_volume(served_cluster(), **spec)
        assert verdicts(azure, "fileshare-public") == {SHARE.lower(): "Pass"}
        assert verdicts(azure, "storage-public") == {CLUSTER.lower(): "NotApplicable"}

    @pytest.mark.parametrize("kind", ["v1/pods", "apps/v1/deployments"])
    @pytest.mark.parametrize(
        ("volume", "verdict"),
        [
            (_azure_files(storageAccount="stranger"), {CLUSTER.lower(): "Unknown"}),
            ({"azureFile": {"secretName": "s", "shareName": "weights"}}, {CLUSTER.lower(): "Unknown"}),
            ({"nfs": {"server": "stranger.file.core.windows.net", "path": "/"}}, {CLUSTER.lower(): "Unknown"}),
            (_azure_files(storageAccount="aistore"), {ACCOUNT.lower(): "Pass"}),
            ({"emptyDir": {}}, {CLUSTER.lower(): "NotApplicable"}),
        ],
    )
    def test_what_a_pod_names_without_a_volume_of_the_cluster_counts_too(
        self, volume: dict[str, Any], verdict: dict[str, str], kind: str
    ) -> None:
        spec = {"containers": [{"name": "main", "image": "x"}], "volumes": [{"name": "weights", **volume}]}
        body = spec if kind == "v1/pods" else {"template": {"spec": spec}}
        azure = _with_volume(served_cluster())
        azure.objects["v1/persistentvolumes"] = []
        azure.objects[kind] = [{"metadata": {"name": "one", "namespace": "team"}, "spec": body}]
        assert verdicts(azure, "storage-public") == verdict

    @pytest.mark.parametrize("check", ["storage-public", "fileshare-public"])
    def test_a_name_that_nothing_of_ours_bears_is_unknown(self, check: str) -> None:
        azure = _with_volume(served_cluster(), **_azure_files(storageAccount="stranger"))
        assert verdicts(azure, check) == {CLUSTER.lower(): "Unknown"}

    @pytest.mark.parametrize(
        "spec",
        [
            _csi("file.csi.azure.com", "ai#aistore#pvcn-1f2e#pvc-1f2e##default", protocol="nfs"),
            _csi("file.csi.azure.com", "ai#AIStore#share"),
            _csi("file.csi.azure.com", "one#of#many", storageAccount="aistore"),
            _csi("blob.csi.azure.com", "ai#aistore#container#uuid"),
            _csi("blob.csi.azure.com", "h", storageAccount="aistore", containerName="c"),
            _csi("nfs.csi.k8s.io", "h", server="aistore.file.core.windows.net", share="/aistore/weights"),
            _csi("smb.csi.k8s.io", "h", source="//aistore.file.core.windows.net/weights"),
            {"nfs": {"server": "aistore.blob.core.windows.net", "path": "/aistore/c"}},
            {"nfs": {"server": "aistore.blob.core.usgovcloudapi.net", "path": "/aistore/c"}},
            {"nfs": {"server": "aistore.privatelink.blob.core.chinacloudapi.cn", "path": "/aistore/c"}},
        ],
    )
    def test_an_account_is_found_wherever_the_volume_names_it(self, spec: dict[str, Any]) -> None:
        azure = _with_volume(served_cluster(), **spec)
        assert verdicts(azure, "storage-public") == {ACCOUNT.lower(): "Pass"}
        azure.change(ACCOUNT, publicNetworkAccess="Enabled")
        assert verdicts(azure, "storage-public") == {ACCOUNT.lower(): "Fail"}

    @pytest.mark.parametrize(
        "spec",
        [
            {"azureFile": {"shareName": "w", "secretName": "s"}},
            _csi("file.csi.azure.com", "h", shareName="weights"),
            _csi("file.csi.azure.com", "group##share"),
            _csi("blob.csi.azure.com", "a#b"),
        ],
    )
    @pytest.mark.parametrize("check", ["storage-public", "fileshare-public"])
    def test_a_volume_that_names_no_account_is_unknown(self, check: str, spec: dict[str, Any]) -> None:
        azure = _with_volume(served_cluster(), **spec)
        finding = only(azure, check)
        assert (finding.verdict, finding.resource) == ("Unknown", CLUSTER)
        assert "PersistentVolume weights" in finding.message

    @pytest.mark.parametrize("host", ["nas.blob.example.com", "blob.core.windows.net.example.com"])
    def test_a_host_that_only_sounds_like_azures_is_ones_own(self, host: str) -> None:
        azure = _with_volume(served_cluster(), nfs={"server": host, "path": "/weights"})
        assert verdicts(azure, "storage-public") == {CLUSTER.lower(): "NotApplicable"}

    def test_a_server_of_ones_own_is_not_azures(self) -> None:
        azure: FakeAzure = _with_volume(served_cluster(), nfs={"server": "10.0.1.9", "path": "/weights"})
        assert verdicts(azure, "storage-public") == {CLUSTER.lower(): "NotApplicable"}

"""The client against a real API server: what only that can tell, its own words for every refusal included."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hermetic.errors import Conflict, Forbidden, NotFound, Rejected
from hermetic.kinds import SERVICE, SERVICE_ACCOUNT
from hermetic.kube.client import FIRST_PAGE, KubernetesApi
from hermetic.kube.connection import from_kubeconfig, from_pod
from testbed.api import Api
from testbed.controlplane import ControlPlane

Manifest = dict[str, Any]
NOBODYS_UID = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
async def kube(cluster: Path) -> AsyncIterator[KubernetesApi]:
    async with KubernetesApi(await from_kubeconfig(str(cluster))) as client:
        yield client


def a_service(namespace: str, port: Any = 80, **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"namespace": namespace, "name": "llama"},
        "spec": {"ports": [{"port": port}], **spec},
    }


def an_account(namespace: str, number: int) -> Manifest:
    metadata = {"namespace": namespace, "name": f"account-{number:04}", "labels": {"fleet": "yes"}}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


async def test_the_version_is_read(kube: KubernetesApi) -> None:
    assert await kube.server_version() >= (1, 30)


async def test_an_apply_owns_its_fields_leaves_the_others_and_repeats_without_a_trace(
    kube: KubernetesApi, api: Api, namespace: str
) -> None:
    first = await kube.apply(a_service(namespace))
    path = SERVICE.path(namespace, "llama")
    assert "managedFields" not in first["metadata"]
    (owner,) = api.get(path)["metadata"]["managedFields"]
    assert (owner["manager"], owner["operation"]) == ("hermetic", "Apply")
    again = await kube.apply(a_service(namespace))
    assert again == first
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "10.1.2.3", "ipMode": "VIP"}]}}}
    head = {key: value for key, value in a_service(namespace).items() if key != "spec"}
    # Of a class that the cloud provider of the cluster leaves alone: it would be an owner as well.
    balanced = {"type": "LoadBalancer", "loadBalancerClass": "hermetic.test/none"}
    with_type = await kube.apply(a_service(namespace, **balanced))
    assert with_type["metadata"]["uid"] == first["metadata"]["uid"]
    assert (await kube.apply_status(head | status))["status"] == status["status"]
    owners = {(entry["manager"], entry.get("subresource")) for entry in api.get(path)["metadata"]["managedFields"]}
    assert owners == {("hermetic", None), ("hermetic-status", "status")}
    assert (await kube.apply(a_service(namespace, **balanced)))["status"] == status["status"]


async def test_an_apply_carries_every_character(kube: KubernetesApi, api: Api, namespace: str) -> None:
    """The API server reads an apply as YAML, which takes fewer characters and escapes than JSON does."""
    text = "".join(map(chr, (*range(1, 0xD800), *range(0xE000, 0x10000), 0x10000, 0x1F600, 0x1FFFF, 0x10FFFF)))
    text += r"\ud83d\ude00"
    for part in (text, text[:300], "\U0001f600"):
        metadata = {"namespace": namespace, "name": "llama", "annotations": {"text": part}}
        await kube.apply(a_service(namespace) | {"metadata": metadata})
        assert api.get(SERVICE.path(namespace, "llama"))["metadata"]["annotations"]["text"] == part


@pytest.mark.parametrize(
    ("port", "spec", "says"),
    [
        (80, {"bogus": 1}, "bogus: field not declared in schema"),
        ("eighty", {}, "expected numeric"),
        (99999, {}, "must be between 1 and 65535"),
    ],
)
async def test_an_object_the_schema_refuses_is_rejected_for_good(
    kube: KubernetesApi, namespace: str, port: Any, spec: Manifest, says: str
) -> None:
    with pytest.raises(Rejected, match=says):
        await kube.apply(a_service(namespace, port, **spec))


async def test_causes_name_what_a_refusal_is_about(kube: KubernetesApi, namespace: str) -> None:
    with pytest.raises(Rejected) as refused:
        await kube.apply(a_service(namespace, 99999))
    assert refused.value.reason == "Invalid"
    assert ("FieldValueInvalid", "Invalid value: 99999: must be between 1 and 65535, inclusive") in refused.value.causes


async def test_a_namespace_that_is_not_there_is_not_found(kube: KubernetesApi) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await kube.apply(a_service("nowhere"))


async def test_missing_rights_a_spent_quota_and_a_closing_namespace_are_told_apart(
    kube: KubernetesApi, controlplane: ControlPlane, api: Api, namespace: str
) -> None:
    async with KubernetesApi(await from_kubeconfig(str(controlplane.kubeconfig_for("stranger")))) as stranger:
        with pytest.raises(Forbidden, match='User "stranger" cannot patch resource "services"') as no_rights:
            await stranger.apply(a_service(namespace))
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"services": "0"}}}
    api.create(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    with pytest.raises(Forbidden, match="exceeded quota: none") as no_room:
        await kube.apply(a_service(namespace))
    api.create(
        f"/api/v1/namespaces/{namespace}/configmaps",
        {"metadata": {"name": "holds", "finalizers": ["hermetic.test/hold"]}},
    )
    api.delete(f"/api/v1/namespaces/{namespace}")
    with pytest.raises(Forbidden, match="being terminated") as closing:
        await kube.apply(an_account(namespace, 1))
    assert (no_rights.value.causes, no_room.value.causes) == ((), ())
    assert [reason for reason, _ in closing.value.causes] == ["NamespaceTerminating"]
    api.merge(f"/api/v1/namespaces/{namespace}/configmaps/holds", {"metadata": {"finalizers": None}})


async def test_a_delete_takes_only_the_object_it_was_meant_for(kube: KubernetesApi, api: Api, namespace: str) -> None:
    metadata = (await kube.apply(a_service(namespace)))["metadata"]
    coordinates = {"namespace": namespace, "name": "llama"}
    with pytest.raises(Conflict, match="UID in the precondition"):
        await kube.delete(SERVICE, **coordinates, uid=NOBODYS_UID)
    with pytest.raises(Conflict, match="ResourceVersion in the precondition"):
        await kube.delete(SERVICE, **coordinates, uid=metadata["uid"], resource_version="1")
    await kube.delete(SERVICE, **coordinates, uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    assert api.get(SERVICE.path(namespace))["items"] == []
    await kube.delete(SERVICE, **coordinates, uid=metadata["uid"])  # already gone


async def test_a_long_list_comes_in_pages_that_share_one_version(kube: KubernetesApi, namespace: str) -> None:
    await asyncio.gather(*(kube.apply(an_account(namespace, number)) for number in range(501)))
    pages = [page async for page in kube.pages(SERVICE_ACCOUNT, namespace=namespace, label_selector="fleet=yes")]
    assert [len(items) for items, _ in pages][:2] == [FIRST_PAGE, 4 * FIRST_PAGE]
    assert sum(len(items) for items, _ in pages) == 501
    assert len({version for _, version in pages}) == 1
    items = [item for page, _ in pages for item in page]
    assert {(item["apiVersion"], item["kind"]) for item in items} == {("v1", "ServiceAccount")}
    assert not any("managedFields" in item["metadata"] for item in items)


async def test_a_service_account_works_from_the_files_of_its_pod_and_follows_their_rotation(
    controlplane: ControlPlane, api: Api, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(controlplane.authority)
    (tmp_path / "token").write_text("not.a.token")
    server = urlsplit(controlplane.server)
    environ = {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
    async with KubernetesApi(from_pod(environ, tmp_path)) as kube:
        with pytest.raises(Forbidden, match="Unauthorized") as refused:
            await kube.server_version()
        assert refused.value.status == 401
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        token = api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token", request)["status"]["token"]
        (tmp_path / "token").write_text(token)
        assert await kube.server_version() >= (1, 30)
        with pytest.raises(Forbidden, match=f'User "system:serviceaccount:{namespace}:default" cannot patch'):
            await kube.apply(a_service(namespace))

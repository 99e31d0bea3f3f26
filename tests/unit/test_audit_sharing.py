"""What is kept of long lists: bodies as text, and once what many resources have in common."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Answer, Body, PackedBody, Question
from hermetic.audit.estate.resource import Part
from hermetic.audit.model.findings import Evidence
from hermetic.collect.kube.cache import CacheSnapshot, ObservedList
from hermetic.collect.kube.list_requests import ListRequest
from hermetic.errors import FactDamaged
from tests.traced_memory import traced_memory

SUBSCRIPTION = "/subscriptions/3c1f6a52-8e0b-4d7a-9b64-2f5c7d10e8a1"
NETWORK = f"{SUBSCRIPTION}/resourceGroups/rg-inference-network/providers/Microsoft.Network"
SEEN = (Evidence("GET /subscriptions/…/networkInterfaces", 200, "ab" * 32),)
MANY = 1_000
MOST_BYTES = 2_900
"""Of one interface, its row and its model together (2,420 as measured; 4,060 where rows are not packed)."""

MOST_BYTES_OF_A_POD = 3_000
"""Of a pod of a controller with many, JSON and model together (2,480 as measured; 5,500 without shared parts)."""
CONTAINER = {
    "name": "main",
    "image": "contoso.azurecr.io/app@sha256:" + "0" * 64,
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy.contoso.internal:3128"}],
    "ports": [{"containerPort": 80}],
    "securityContext": {"privileged": False, "capabilities": {"drop": ["ALL"]}},
}


def _row(number: int, subnet: Any = None) -> dict[str, Any]:
    configuration = {
        "subnet": subnet if subnet is not None else {"id": f"{NETWORK}/virtualNetworks/vnet/subnets/snet-{number % 4}"},
        "primary": True,
    }
    address = {
        "name": "ipconfig1",
        "properties": configuration | {"privateIPAddress": f"10.0.{number // 250}.{number % 250}"},
    }
    name = f"nic-{number}"
    properties = {"ipConfigurations": [address], "dnsSettings": {"dnsServers": []}, "enableIPForwarding": False}
    return {"id": f"{NETWORK}/networkInterfaces/{name}", "name": name, "location": "eu", "properties": properties}


def _listing(rows: list[dict[str, Any]], body: type[Body]) -> Listing[NetworkInterface]:
    question = Question("azure", "list", NetworkInterface.TYPE, SUBSCRIPTION, NetworkInterface.API_VERSION)
    answer = Answer(tuple(body(json.loads(json.dumps(row)), SEEN) for row in rows), SEEN)
    return Estate("/cluster", ("azure",), {question: answer}).every(NetworkInterface, SUBSCRIPTION)


def test_an_interface_of_a_long_list_takes_little_memory() -> None:
    rows = [_row(number) for number in range(MANY)]
    _listing(rows[:1], PackedBody)  # what the first model costs, later ones do not
    with traced_memory() as memory:
        question = Question("azure", "list", NetworkInterface.TYPE, SUBSCRIPTION, NetworkInterface.API_VERSION)
        answer = Answer(tuple(PackedBody(json.loads(json.dumps(row)), SEEN) for row in rows), SEEN)
        interfaces = Estate("/cluster", ("azure",), {question: answer}).every(NetworkInterface, SUBSCRIPTION)
        memory_use, _ = memory()
    assert len(interfaces) == MANY
    assert memory_use / MANY <= MOST_BYTES


def test_resources_are_what_they_are_when_read_alone() -> None:
    rows = [_row(number) for number in range(10)]
    for body in (Body, PackedBody):
        for interface, row in zip(_listing(rows, body), rows, strict=True):
            alone = NetworkInterface.read(Body(row, SEEN))
            assert interface == alone
            assert interface.model_fields_set == alone.model_fields_set
            assert interface.evidence == alone.evidence


def test_equal_references_of_one_list_are_one() -> None:
    first, _, _, _, again = _listing([_row(number) for number in range(5)], PackedBody)
    assert first.ip_configurations[0].subnet is again.ip_configurations[0].subnet


@pytest.mark.parametrize("broken", [{"id": 7}, {"id": None}, {}, []])
@pytest.mark.parametrize("is_first", [True, False])
def test_damage_of_one_reference_is_not_that_of_another(broken: Any, is_first: bool) -> None:
    rows = [_row(0, broken), _row(4), _row(8)] if is_first else [_row(4), _row(8), _row(0, broken)]
    read = {interface.name: interface for interface in _listing(rows, PackedBody)}
    with pytest.raises(FactDamaged):
        _ = read["nic-0"].subnet_ids
    for name in ("nic-4", "nic-8"):
        assert read[name].subnet_ids == (f"{NETWORK}/virtualNetworks/vnet/subnets/snet-0",)


@pytest.mark.parametrize(
    "value",
    [
        {"id": "x", "properties": {"a": [1, 1.5, -0.0, 1e300, 10**30, True, None, ""]}},
        {"key": "Übergröße \u2028 \x00 \U0001f600", "lone": "\ud800"},
        {"z": 1, "a": {"z": 1, "a": 2}},
        {"": {}, "deep": [[[[{}]]]]},
    ],
)
def test_a_packed_body_gives_back_what_it_was_given(value: dict[str, Any]) -> None:
    packed = PackedBody(value, SEEN)
    assert packed.value == value
    assert json.dumps(packed.value) == json.dumps(value)  # in the same order, each of the same type
    assert packed == Body(value, SEEN)
    assert Body(value, SEEN) == packed
    assert packed != Body(value, ())
    assert pickle.loads(pickle.dumps(packed)) == packed
    text = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")
    assert PackedBody.of_text(text, SEEN) == packed


# --- pods of one list -------------------------------------------------------------------------------------------------


def _snapshot(pods: list[dict[str, Any]]) -> CacheSnapshot:
    bodies = {("team", pod["metadata"]["name"]): json.dumps(pod).encode() for pod in pods}
    request = ListRequest(Pod, EVERYWHERE)
    return CacheSnapshot(None, {request: ObservedList(bodies, 1, was_settled=True, problem=None, shown_absent=())})


def _pods(*containers: dict[str, Any]) -> tuple[Pod, ...]:
    """The pods that have these containers, of one list of the operator's cache, and in the order of the containers."""
    answers = _snapshot([_pod(number, container) for number, container in enumerate(containers)]).answers()
    return Estate("/cluster", ("kube",), answers).every(Pod, EVERYWHERE).items


def _pod(number: int, container: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{number:04}", "namespace": "team", "labels": {"app": "app"}},
        "spec": {"nodeName": f"node-{number}", "containers": [container, {**container, "name": "side"}]},
    }


def test_equal_containers_of_the_pods_of_one_list_are_one() -> None:
    first, other, again = _pods(CONTAINER, {**CONTAINER, "image": "contoso.azurecr.io/other:1"}, CONTAINER)
    assert first.spec.containers[0] is again.spec.containers[0]
    assert first.spec.containers[0] is not other.spec.containers[0]
    assert first.spec.containers[0].env == other.spec.containers[0].env
    assert [pod.spec.node_name for pod in (first, other, again)] == ["node-0", "node-1", "node-2"]


@pytest.mark.parametrize(
    "container",
    [
        {**CONTAINER, "securityContext": {"privileged": True}},
        {**CONTAINER, "securityContext": {"privileged": "yes"}},
        {**CONTAINER, "securityContext": {}},
        {**CONTAINER, "securityContext": None},
        {**CONTAINER, "env": [{"name": "HTTPS_PROXY", "value": ""}]},
        {**CONTAINER, "env": [{"name": "HTTPS_PROXY"}]},
        {**CONTAINER, "env": [{"name": 7, "value": "http://proxy.contoso.internal:3128"}]},
        {**CONTAINER, "env": CONTAINER["env"] * 2},
        {**CONTAINER, "ports": [{"containerPort": 80}, {"containerPort": 443}]},
        {**CONTAINER, "ports": []},
        {**CONTAINER, "resources": {"limits": {"nvidia.com/gpu": "1"}}},
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_pod_among_others_is_what_it_is_when_it_is_read_alone(container: dict[str, Any], is_first: bool) -> None:
    containers = [container, CONTAINER, CONTAINER] if is_first else [CONTAINER, CONTAINER, container]
    for number, pod in enumerate(_pods(*containers)):
        alone = Pod.read(Body(_pod(number, containers[number]), pod.evidence))
        assert _state(pod) == _state(alone)


def _state(value: Any) -> Any:
    """All of a part: its fields, which of them were set, and which are damaged, also of the parts in it."""
    if isinstance(value, list):
        return [_state(item) for item in value]
    if not isinstance(value, Part):
        return type(value), value
    damages = {field: str(damage) for field, damage in value._damages().items()}
    return type(value), {name: _state(field) for name, field in vars(value).items()}, value.model_fields_set, damages


def test_a_pod_of_a_controller_with_many_takes_little_memory() -> None:
    _pods(CONTAINER)  # what the first model costs, later ones do not
    snapshot = _snapshot([_pod(number, CONTAINER) for number in range(MANY)])
    with traced_memory() as memory:
        pods = Estate("/cluster", ("kube",), snapshot.answers()).every(Pod, EVERYWHERE)
        memory_use, highest = memory()
    assert len(pods) == MANY
    assert memory_use / MANY <= MOST_BYTES_OF_A_POD
    assert highest / MANY <= 1.7 * MOST_BYTES_OF_A_POD

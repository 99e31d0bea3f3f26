"""Devices of pods, which can lead where no NetworkPolicy applies.

Sources: learn.microsoft.com/azure/aks/managed-support-for-dranet, dranet.sigs.k8s.io/docs/user/azure-aks,
kubernetes.io/docs/concepts/resource-management/dynamic-resource-allocation.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.devices import DeviceClass, ResourceClaim
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.result.run import evaluate
from testbed.kubernetes_plants.pieces import manifest, put
from tests.kubernetes_estates import POLICY, Manifest, estate, sealed_cluster

FINE, OPEN, UNSEEN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
API = "resource.k8s.io/v1"


def findings_with(*added: Manifest) -> list[Finding]:
    manifests = copy.deepcopy(sealed_cluster())
    for manifest_added in added:
        put(manifests, manifest_added)
    return [finding for finding in evaluate(estate(manifests), POLICY) if finding.check == "k8s-other-ways"]


def worst(*added: Manifest) -> Verdict:
    verdicts = {finding.verdict for finding in findings_with(*added)}
    return OPEN if OPEN in verdicts else UNSEEN if UNSEEN in verdicts else FINE


def a_class(*expressions: str, name: str = "device", **spec: Any) -> Manifest:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return manifest(API, "DeviceClass", name, spec={"selectors": selectors, **spec})


def of(driver: str) -> str:
    return f'device.driver == "{driver}"'


def a_slice(driver: str) -> Manifest:
    return manifest(API, "ResourceSlice", f"node-{driver}", spec={"driver": driver, "pool": {"name": "node"}})


def a_claim(*requests: Manifest, config: list[Manifest] | None = None, **fields: Any) -> Manifest:
    spec = {"devices": {"requests": list(requests), "config": config or []}}
    return manifest(API, "ResourceClaim", "claim", "team", spec=spec, **fields)


def exactly(name: str = "device", *expressions: str) -> Manifest:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return {"name": "r", "exactly": {"deviceClassName": name, "selectors": selectors}}


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([of("gpu.nvidia.com")], FINE),
        (["device.driver == 'gpu.amd.com'"], FINE),
        ([of("compute-domain.nvidia.com")], FINE),
        ([f'{of("gpu.nvidia.com")} && device.attributes["gpu.nvidia.com"].type == "mig"'], FINE),
        ([of("dra.net")], OPEN),
        ([of("azure.dra.net")], OPEN),
        ([f'{of("dra.net")} && device.attributes["dra.net"].rdma == true'], OPEN),
        ([of("sriovnetwork.k8snetworkplumbingwg.io")], OPEN),
        ([of("fabric.example.com")], UNSEEN),
        ([of("dra.net.example.com")], UNSEEN),
    ],
)
def test_a_class_of_devices_is_open_where_its_driver_is_one_of_a_network(
    expressions: list[str], expected: Verdict
) -> None:
    assert worst(a_class(*expressions)) is expected


@pytest.mark.parametrize(
    "expression",
    [
        f"{of('gpu.nvidia.com')} || {of('dra.net')}",
        f"!({of('gpu.nvidia.com')})",
        'device.driver in ["gpu.nvidia.com", "dra.net"]',
        'device.driver != "gpu.nvidia.com"',
        'device.attributes["dra.net"].rdma',
        f"{of('gpu.nvidia.com')} ? false : true",
    ],
)
@pytest.mark.parametrize(("driver", "expected"), [("dra.net", OPEN), ("x.example.com", UNSEEN), ("gpu.amd.com", FINE)])
def test_a_class_that_names_no_single_driver_accepts_devices_of_every_driver_there_is(
    expression: str, driver: str, expected: Verdict
) -> None:
    assert worst(a_class(expression), a_slice("gpu.nvidia.com"), a_slice(driver)) is expected


def test_a_class_without_selectors_accepts_every_device() -> None:
    assert worst(a_class(), a_slice("dra.net")) is OPEN
    assert worst(a_class(), a_slice("gpu.nvidia.com")) is FINE


@pytest.mark.parametrize(("driver", "expected"), [("dra.net", OPEN), ("x.example.com", UNSEEN), ("gpu.amd.com", FINE)])
def test_a_driver_that_no_class_names_counts_once_for_all_machines(driver: str, expected: Verdict) -> None:
    second = a_slice(driver)
    second["metadata"]["name"] = "other-node"
    assert worst(a_slice(driver), second) is expected
    assert len(findings_with(a_slice(driver), second)) == 1


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (a_claim(exactly()), OPEN),
        (a_claim({"name": "r", "deviceClassName": "device"}), OPEN),  # v1beta1
        (a_claim({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "device"}]}), OPEN),
        (a_claim(exactly("absent")), FINE),
        (a_claim(config=[{"opaque": {"driver": "dra.net", "parameters": {}}}]), OPEN),
        (a_claim(status={"allocation": {"devices": {"results": [{"driver": "dra.net"}]}}}), OPEN),
        (a_claim(status={"allocation": {"devices": {"results": [{"driver": "x.example.com"}]}}}), UNSEEN),
        (a_claim(status={"allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com"}]}}}), FINE),
        (a_claim(status={"devices": [{"driver": "gpu.nvidia.com", "networkData": {"interfaceName": "eth1"}}]}), OPEN),
    ],
)
def test_a_claim_counts_by_the_drivers_that_may_meet_it(claim: Manifest, expected: Verdict) -> None:
    results = findings_with(a_class(of("dra.net")), claim)
    verdicts = [result.verdict for result in results if result.resource == f"{API}/ResourceClaim team/claim"]
    assert verdicts == ([] if expected is FINE else [expected])


def test_a_template_counts_like_the_claims_that_it_makes() -> None:
    spec = {"spec": {"devices": {"requests": [exactly()]}}}
    template = manifest(API, "ResourceClaimTemplate", "t", "team", spec=spec)
    results = findings_with(a_class(of("dra.net")), template)
    assert {result.resource for result in results} == {
        f"{API}/DeviceClass device", f"{API}/ResourceClaimTemplate team/t"
    }  # fmt: skip
    assert {result.severity for result in results} == {Severity.HIGH}
    assert worst(a_class(of("gpu.nvidia.com")), template) is FINE


def test_a_request_that_insists_on_a_gpu_driver_is_met_by_no_network_device() -> None:
    claim = a_claim(exactly("device", of("gpu.nvidia.com")))
    results = findings_with(a_class(), a_slice("dra.net"), a_slice("gpu.nvidia.com"), claim)
    assert [result.resource for result in results] == [f"{API}/DeviceClass device"]


def test_a_class_that_cannot_be_read_is_unknown() -> None:
    assert worst(manifest(API, "DeviceClass", "device", spec={"selectors": "all"})) is UNSEEN


def test_the_cache_keeps_what_a_claim_and_a_class_are_evaluated_by() -> None:
    claim = a_claim(exactly(), status={"allocation": {"devices": {"results": [{"driver": "dra.net", "pool": "x"}]}}})
    projection = projected(ResourceClaim, claim)
    assert projection["status"] == {"allocation": {"devices": {"results": [{"driver": "dra.net"}]}}}
    assert projected(DeviceClass, a_class(of("dra.net")))["spec"]["selectors"]

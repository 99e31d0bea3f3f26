"""The Service: private by construction, with exactly the annotations that make it so."""

from __future__ import annotations

import pytest

from hermetic.api.public_services import PUBLIC_SIDE
from tests.renderings import RENDERINGS
from tests.scenarios import a_nim_model, a_share_model
from tests.snapshots import rendered

PREFIX = "service.beta.kubernetes.io/"
INTENT = "hermetic.dev/intent"


def service(endpoint: dict) -> dict:
    return rendered(a_share_model(endpoint=endpoint))["Service"]


def annotations(endpoint: dict) -> dict[str, str]:
    return {k: v for k, v in service(endpoint)["metadata"]["annotations"].items() if k != INTENT}


def test_short_form_is_private_with_exactly_these_annotations():
    assert annotations({"internalLoadBalancer": {}}) == {
        PREFIX + "azure-load-balancer-internal": "true",
        PREFIX + "azure-load-balancer-tcp-idle-timeout": "30",
        PREFIX + "azure-load-balancer-health-probe-request-path": "/health",
    }


def test_everything_said_adds_exactly_these():
    balancer = {
        "subnet": "ilb",
        "address": "10.13.76.40",
        "allowedSourceRanges": ["10.0.0.0/8", "192.168.7.0/24"],
        "idleTimeoutMinutes": 4,
    }
    assert annotations({"internalLoadBalancer": balancer}) == {
        PREFIX + "azure-load-balancer-internal": "true",
        PREFIX + "azure-load-balancer-internal-subnet": "ilb",
        PREFIX + "azure-load-balancer-ipv4": "10.13.76.40",
        PREFIX + "azure-deny-all-except-load-balancer-source-ranges": "true",
        PREFIX + "azure-load-balancer-tcp-idle-timeout": "4",
        PREFIX + "azure-load-balancer-health-probe-request-path": "/health",
    }
    spec = service({"internalLoadBalancer": balancer})["spec"]
    assert spec["loadBalancerSourceRanges"] == ["10.0.0.0/8", "192.168.7.0/24"]


def test_source_ranges_and_the_flag_that_makes_them_count_come_together():
    """An internal load balancer lets the whole virtual network in: source ranges alone would do nothing."""
    flag = PREFIX + "azure-deny-all-except-load-balancer-source-ranges"
    for ranges in ([], ["10.0.0.0/8"]):
        balancer = {"allowedSourceRanges": ranges}
        service_manifest = service({"internalLoadBalancer": balancer})
        assert ("loadBalancerSourceRanges" in service_manifest["spec"]) == bool(ranges)
        assert (flag in service_manifest["metadata"]["annotations"]) == bool(ranges)


def test_health_path_of_the_load_balancer_is_the_engine_s_own():
    path = PREFIX + "azure-load-balancer-health-probe-request-path"
    assert rendered(a_nim_model())["Service"]["metadata"]["annotations"][path] == "/v1/health/ready"


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_no_annotation_with_a_public_side_is_ever_rendered(manifest):
    service_manifest = rendered(manifest)["Service"]
    assert not set(service_manifest["metadata"].get("annotations", {})) & set(PUBLIC_SIDE)
    assert not service_manifest["spec"].keys() & {"externalIPs", "loadBalancerIP", "externalName", "loadBalancerClass"}
    if service_manifest["spec"]["type"] == "LoadBalancer":
        assert service_manifest["metadata"]["annotations"][PREFIX + "azure-load-balancer-internal"] == "true"


def test_every_public_side_annotation_of_the_cloud_provider_is_known():
    refused = {
        "azure-load-balancer-resource-group",
        "azure-pip-name",
        "azure-pip-name-ipv6",
        "azure-pip-prefix-id",
        "azure-pip-prefix-id-ipv6",
        "azure-pip-tags",
        "azure-pip-ip-tags",
        "azure-dns-label-name",
        "azure-additional-public-ips",
        "azure-pls-create",
        "azure-allowed-service-tags",
        "azure-disable-load-balancer-nsg-rule",
    }
    assert {PREFIX + name for name in refused} <= set(PUBLIC_SIDE)


def test_client_addresses_stay_visible_to_the_network_policy():
    assert service({"internalLoadBalancer": {}})["spec"]["externalTrafficPolicy"] == "Local"


def test_without_a_load_balancer_the_service_is_inside_the_cluster_only():
    service_manifest = service({})
    assert service_manifest["spec"]["type"] == "ClusterIP"
    assert set(service_manifest["metadata"]["annotations"]) == {INTENT}


@pytest.mark.parametrize("port", [1024, 8000, 65535])
def test_port_is_the_same_from_the_load_balancer_to_the_engine(port):
    children = rendered(a_share_model(endpoint={"port": port, "internalLoadBalancer": {}}))
    (port_found,) = children["Service"]["spec"]["ports"]
    (engine,) = children["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert (port_found["port"], port_found["targetPort"]) == (port, port)
    assert engine["ports"] == [{"name": "http", "containerPort": port, "protocol": "TCP"}]


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_selectors_of_every_child_find_the_pods_and_no_others(manifest):
    children = rendered(manifest)
    pods = children["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        children["Service"]["spec"]["selector"],
        children["Deployment"]["spec"]["selector"]["matchLabels"],
        children["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    if "PodDisruptionBudget" in children:
        selectors.append(children["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"])
    assert all(selector == {"hermetic.dev/modeldeployment": manifest["metadata"]["name"]} for selector in selectors)
    assert all(pods[key] == value for selector in selectors for key, value in selector.items())

"""The stand-in for Azure reads as ARM is documented to: versions, paging, letter case, refusals, nothing written."""

from __future__ import annotations

import httpx
import pytest

from testbed.azure.baseline import estate_of, sealed_estate
from testbed.azure.baseline.layout import CONNECTIVITY, WORKLOAD
from tests.sampled_groups import AZURE_STAND_IN
from tests.unit.azure_stand_in import NETWORK, calling, code_of

pytestmark = AZURE_STAND_IN

SUBSCRIPTION = f"/subscriptions/{WORKLOAD}"


def test_subnet_says_the_same_alone_and_inside_its_network() -> None:
    estate = sealed_estate()
    estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] = None
    with calling(estate) as caller:
        alone = caller.get(estate.site.gpu_subnet).json()
        inside = caller.get(estate.site.vnet).json()["properties"]["subnets"]

    assert alone["properties"] == next(s for s in inside if s["id"] == alone["id"])["properties"]
    assert alone["properties"]["defaultOutboundAccess"] is None


def test_ids_are_found_in_any_letter_case() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        for path in (estate.site.gpu_subnet.upper(), estate.site.registry.lower()):
            version = NETWORK if "SUBNETS" in path else "2025-11-01"
            assert caller.get(path, version).status_code == 200


def test_compute_lists_write_group_names_in_capitals() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        rows = caller.every(f"{estate.site.gpu_scale_set}/networkInterfaces", "2018-10-01")

    assert len(rows) == 2
    assert all("/MC_RG-INFERENCE_AKS-INFERENCE_SWEDENCENTRAL/" in row["id"] for row in rows)
    assert all("/microsoft.Compute/" in row["id"] for row in rows)


def test_what_agents_report_is_shown_to_those_who_expand_it() -> None:
    estate = sealed_estate()
    path = f"{estate.site.gpu_scale_set}/virtualMachines"
    with calling(estate, page_size=1) as caller:
        plain = caller.every(path, "2025-04-01")
        expanded = caller.every(path, "2025-04-01", **{"$expand": "instanceView"})

    assert len(plain) == len(expanded) == 2
    assert not any("instanceView" in row["properties"] for row in plain)
    handlers = [row["properties"]["instanceView"]["vmAgent"]["extensionHandlers"] for row in expanded]
    assert all(
        {"Microsoft.AKS.Compute.AKS.Linux.AKSNode"} < {extension["type"] for extension in handler}
        for handler in handlers
    )


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pages_hold_every_row_once(size: int) -> None:
    estate = sealed_estate()
    with calling(estate, page_size=size) as caller:
        rows = caller.every(f"{SUBSCRIPTION}/providers/Microsoft.Network/networkInterfaces")

    expected = {body["id"] for body in estate.of_type("Microsoft.Network/networkInterfaces")}
    assert sorted(row["id"] for row in rows) == sorted(expected)


@pytest.mark.parametrize(
    ("kind", "version", "hidden"),
    [
        ("gpu_subnet", "2022-07-01", "defaultOutboundAccess"),
        ("sentinel", "2024-05-01", "defaultOutboundConnectivityEnabled"),
        ("registry", "2023-07-01", "anonymousPullEnabled"),
        ("cluster", "2024-09-01", "bootstrapProfile"),
    ],
)
def test_old_version_leaves_newer_fields_out(kind: str, version: str, hidden: str) -> None:
    estate = sealed_estate()
    target = getattr(estate.site, kind)
    newest = {"registry": "2025-11-01", "cluster": "2026-01-01"}.get(kind, NETWORK)
    with calling(estate) as caller:
        assert hidden not in caller.get(target, version).json()["properties"]
        assert hidden in caller.get(target, newest).json()["properties"]


def test_old_version_leaves_newer_fields_of_embedded_subnets_out() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        old = caller.get(estate.site.vnet, "2022-07-01").json()["properties"]["subnets"]

    assert all("defaultOutboundAccess" not in subnet["properties"] for subnet in old)
    assert estate.properties(estate.site.gpu_subnet)["defaultOutboundAccess"] is False


def test_version_that_is_missing_or_unknown_is_refused() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        assert code_of(caller.get(estate.site.vnet, "")) == (400, "MissingApiVersionParameter")
        assert code_of(caller.get(estate.site.vnet, "2001-01-01")) == (400, "NoRegisteredProviderFound")
        assert code_of(caller.get("/subscriptions", "2001-01-01")) == (400, "InvalidApiVersionParameter")
        nics = f"{estate.site.gpu_scale_set}/networkInterfaces"
        assert code_of(caller.get(nics, "2025-04-01")) == (400, "NoRegisteredProviderFound")


def test_what_is_not_there_is_said_at_its_level() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        assert code_of(caller.get(f"{estate.site.vnet}x")) == (404, "ResourceNotFound")
        assert code_of(caller.get(f"{estate.site.vnet}/subnets/nope")) == (404, "NotFound")
        group = f"{SUBSCRIPTION}/resourceGroups/nope/providers/Microsoft.Network/natGateways"
        assert code_of(caller.get(group)) == (404, "ResourceGroupNotFound")
        foreign = "/subscriptions/00000000-0000-0000-0000-000000000000"
        assert code_of(caller.get(foreign, "2022-12-01")) == (404, "SubscriptionNotFound")


def test_what_may_not_be_read_names_the_action_and_is_missing_from_wider_lists() -> None:
    estate = sealed_estate()
    estate.deny(estate.site.sentinel)
    with calling(estate) as caller:
        refused = caller.get(estate.site.sentinel)
        rows = caller.every(f"{SUBSCRIPTION}/providers/Microsoft.Network/networkInterfaces")

    assert code_of(refused) == (403, "AuthorizationFailed")
    assert "Microsoft.Network/networkInterfaces/read" in refused.json()["error"]["message"]
    assert estate.site.sentinel not in [row["id"] for row in rows]
    assert rows


def test_denied_subscription_is_refused_and_not_listed() -> None:
    estate = sealed_estate()
    estate.add(f"/subscriptions/{CONNECTIVITY}/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/hub")
    estate.deny(f"/subscriptions/{CONNECTIVITY}")
    with calling(estate) as caller:
        assert code_of(caller.get(f"/subscriptions/{CONNECTIVITY}", "2022-12-01")) == (403, "AuthorizationFailed")
        listed = caller.get("/subscriptions", "2022-12-01").json()["value"]

    assert [row["subscriptionId"] for row in listed] == [WORKLOAD]


def test_role_assignments_above_a_scope_are_inherited() -> None:
    estate = sealed_estate()
    scope = estate.site.registry.partition("/providers/")[0]
    inherited = f"{scope}/providers/Microsoft.Authorization/roleAssignments/11111111-0000-0000-0000-000000000000"
    estate.add(inherited, {"principalId": "x"})
    with calling(estate) as caller:
        rows = caller.every(f"{estate.site.registry}/providers/Microsoft.Authorization/roleAssignments", "2022-04-01")

    assert len(rows) == 2
    assert inherited in [row["id"] for row in rows]


def test_tokens_are_checked_and_expire_midway() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        bare = httpx.get(f"{caller.arm.url}{estate.site.vnet}", params={"api-version": NETWORK})
        wrong = caller.client.get(estate.site.vnet, headers={"Authorization": "Bearer other"})
        caller.arm.expire_token_after(1)
        good, dead = caller.get(estate.site.vnet), caller.get(estate.site.vnet)

    assert code_of(bare) == (401, "AuthenticationFailed")
    assert code_of(wrong) == (401, "InvalidAuthenticationToken")
    assert "Bearer" in wrong.headers["WWW-Authenticate"]
    assert good.status_code == 200
    assert code_of(dead) == (401, "ExpiredAuthenticationToken")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST"])
def test_whatever_would_write_is_refused_and_remembered(method: str) -> None:
    estate = sealed_estate()
    before = estate.copy().resources
    path = f"{estate.cluster}/listClusterAdminCredential" if method == "POST" else estate.site.vnet
    with calling(estate) as caller:
        answer = caller.client.request(method, path, params={"api-version": NETWORK}, json={})
        assert [(r.method, r.path) for r in caller.arm.forbidden_requests] == [(method, path)]

    assert answer.status_code == 405
    assert estate.resources == before


def test_requests_tell_the_permission_that_they_need() -> None:
    estate = sealed_estate()
    with calling(estate) as caller:
        caller.get(estate.site.vnet)
        caller.get(f"{estate.site.gpu_scale_set}/networkInterfaces", "2018-10-01")
        caller.act(f"{estate.site.sentinel}/effectiveRouteTable")
        caller.get(f"{SUBSCRIPTION}/resourceGroups", "2021-04-01")
        caller.graph("Resources | count")

        assert caller.arm.actions == {
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces/read",
            "Microsoft.Network/networkInterfaces/effectiveRouteTable/action",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.ResourceGraph/resources/read",
        }
        assert caller.arm.forbidden_requests == []


def test_estate_can_be_exchanged_under_the_same_address() -> None:
    estate, other = sealed_estate(), sealed_estate()
    other.remove(other.site.sentinel)
    with calling(estate) as caller:
        assert caller.get(estate.site.sentinel).status_code == 200
        caller.arm.serve(other)
        assert caller.get(estate.site.sentinel).status_code == 404


def test_a_provider_says_whether_it_is_registered_and_refuses_when_it_is_not() -> None:
    estate = sealed_estate()
    estate.unregister(WORKLOAD, "microsoft.kubernetes")
    provider = f"{SUBSCRIPTION}/providers/Microsoft.Kubernetes"
    with calling(estate) as caller:
        registered = caller.get(provider, "2021-04-01").json()
        assert (registered["namespace"], registered["registrationState"]) == (
            "Microsoft.Kubernetes",
            "NotRegistered",
        )
        refused = caller.get(f"{provider}/connectedClusters", "2024-01-01")
        assert code_of(refused) == (409, "MissingSubscriptionRegistration")
        registration = caller.get(f"{SUBSCRIPTION}/providers/Microsoft.Network", "2021-04-01").json()
        assert registration["registrationState"] == "Registered"
        unknown = caller.get(f"{SUBSCRIPTION}/providers/Microsoft.Nothing", "2021-04-01")
        assert code_of(unknown) == (404, "InvalidResourceNamespace")
        assert code_of(caller.get(provider, NETWORK)) == (400, "InvalidApiVersionParameter")


def test_a_locked_group_can_be_read_and_refuses_every_action() -> None:
    estate = estate_of("managed")
    estate.lock(estate.site.node_group)
    with calling(estate) as caller:
        assert caller.get(estate.site.vnet).status_code == 200
        refused = caller.post(f"{estate.site.vnet}/listDnsResolverPolicies")
        assert code_of(refused) == (403, "DenyAssignmentAuthorizationFailed")
        assert "deny assignment" in refused.json()["error"]["message"]


def test_a_deny_assignment_is_named_before_a_missing_right() -> None:
    estate = estate_of("managed")
    estate.deny(estate.site.vnet)
    estate.lock(estate.site.node_group)
    with calling(estate) as caller:
        refused = caller.post(f"{estate.site.vnet}/listDnsResolverPolicies")
        assert code_of(refused) == (403, "DenyAssignmentAuthorizationFailed")
        assert code_of(caller.get(estate.site.vnet)) == (403, "AuthorizationFailed")


@pytest.mark.parametrize(("code", "status"), [("NoRegisteredProviderFound", 400), ("InvalidResourceType", 404)])
def test_a_type_that_a_region_does_not_offer_is_refused_and_not_among_its_providers_types(
    code: str, status: int
) -> None:
    estate = sealed_estate()
    estate.leave_out("Microsoft.Network/serviceGateways", code)
    with calling(estate) as caller:
        refused = caller.get(f"{SUBSCRIPTION}/providers/Microsoft.Network/serviceGateways")
        assert code_of(refused) == (status, code)
        registered = caller.get(f"{SUBSCRIPTION}/providers/Microsoft.Network", "2021-04-01").json()
        offered = {resource_type["resourceType"].lower() for resource_type in registered["resourceTypes"]}
        assert "servicegateways" not in offered
        assert "virtualnetworkappliances" in offered

"""Remedies never make it worse: the commands of a planted finding are carried out on its estate, and audited again.

The finding must be gone, and no other finding may appear. The test bed carries the commands out by a table of what az
documents; the product itself never writes. A remedy that leaves a choice to a person, or that is not in the table, is
counted with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import pytest

from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.remedies.steps import steps_of
from testbed.azure.baseline import LAYOUTS, estate_of
from testbed.azure.estate import Estate
from testbed.azure.plants import PLANTS
from testbed.azure.remedy_writes import NotCarriedOut, carry_out, parsed
from tests.remedy_commands import KNOWN, placeholders_in
from tests.replanted import Base

Record = Callable[[str, object], None]
Key = tuple[str, str]

# In a network that AKS manages most remedies go through AKS, whose own clean-up no table describes: it is used last.
BARE = {
    name: estate_of(name) for name in sorted(LAYOUTS, key=lambda name: (LAYOUTS[name].managed, LAYOUTS[name].gpu_pools))
}


def first_layout_for(name: str, profile: str) -> str | None:
    fitting = (layout for layout, bare in BARE.items() if bare.profile == profile and PLANTS[name].fits(bare))
    return next(fitting, None)


PLANTED = [
    (name, layout)
    for name in sorted(PLANTS)
    for layout in (first_layout_for(name, "sealed"), first_layout_for(name, "filtered"))
    if layout is not None
]


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("name", "layout"), PLANTED)
def test_a_remedy_ends_its_finding_and_causes_no_other(name: str, layout: str, record_property: Record) -> None:
    planted = estate_of(layout)
    expected = PLANTS[name].into(planted)
    findings = base_of(layout).findings(planted)
    failing = [
        finding
        for finding in findings
        if finding.verdict is Verdict.FAIL
        and any(
            misconfiguration.is_met_by(finding.check, finding.resource, finding.severity.value)
            for misconfiguration in expected
        )
    ]
    assert failing
    for finding in failing:
        remedied = planted.copy()
        if reason := reason_not_applied(finding, name) or refusal_of(finding, remedied):
            assert not reason.startswith("Azure refuses"), (reason, finding.remedy)
            record_property("remedies not applied", 1)
            record_property(f"remedies not applied: {reason}", 1)
            continue
        after = by_key(base_of(layout).findings(remedied))
        is_gone = key_of(finding) not in after
        announced = ANNOUNCED.get((finding.check, name), "")
        worse = [new_finding for new_finding in new_findings(by_key(findings), after) if new_finding.check != announced]
        assert announced in finding.remedy
        record_property("remedies applied", 1)
        record_property("findings gone after their remedy", int(is_gone))
        record_property("new findings after a remedy", len(worse))
        assert [
            f"{new_finding.verdict} {new_finding.check} {new_finding.resource}: {new_finding.message}"
            for new_finding in worse
        ] == [], finding.remedy
        stays = STAYS.keys() & {(finding.check, name), (finding.check, "")}
        assert is_gone or stays, (finding.remedy, after[key_of(finding)].message)


def test_the_estate_is_as_it_was_where_a_command_is_not_carried_out() -> None:
    estate = estate_of("sealed")
    before = estate.copy()
    with pytest.raises(NotCarriedOut, match="no row: az network watcher"):
        carry_out(estate, "az network watcher configure --locations swedencentral --enabled false")
    assert estate.resources == before.resources


def test_a_receiver_is_removed_from_an_action_group_and_the_others_stay() -> None:
    estate = estate_of("sealed")
    (expected,) = PLANTS["alert_of_a_log_search_to_a_webhook"].into(estate)
    group = estate.properties(expected.resource)
    workflow = {"name": "w", "resourceId": f"{estate.site.node_group}/providers/Microsoft.Logic/workflows/tell"}
    hub = {"name": "own", "eventHubNameSpace": "n", "subscriptionId": estate.cluster.split("/")[2]}
    group |= {"webhookReceivers": [{"name": "a", "serviceUri": "https://a.example"}, *group["webhookReceivers"]]}
    group |= {"logicAppReceivers": [workflow], "eventHubReceivers": [hub]}
    findings = base_of("sealed").findings(estate)
    (finding,) = [
        candidate for candidate in findings if key_of(candidate) == (expected.check, expected.resource.lower())
    ]
    assert refusal_of(finding, estate) == ""
    assert key_of(finding) not in by_key(base_of("sealed").findings(estate))
    left = {name: receivers for name, receivers in group.items() if name.endswith("Receivers") and receivers}
    assert left == {"eventHubReceivers": [hub]}


def test_a_place_that_a_list_does_not_have_is_refused() -> None:
    estate = estate_of("sealed")
    (expected,) = PLANTS["alert_of_a_log_search_to_a_webhook"].into(estate)
    with pytest.raises(NotCarriedOut, match="no entry 1"):
        carry_out(estate, f"az resource update --ids {expected.resource} --remove properties.webhookReceivers 1")


def test_a_gateway_in_use_is_not_deleted() -> None:
    estate = estate_of("sealed")
    PLANTS["nat_gateway_on_the_gpu_subnet"].into(estate)
    gateway = estate.properties(estate.site.gpu_subnet)["natGateway"]["id"]
    delete = f"az network nat gateway delete --ids {gateway}"
    with pytest.raises(NotCarriedOut, match="Azure refuses"):
        carry_out(estate, delete)
    carry_out(estate, f"az network vnet subnet update --ids {estate.site.gpu_subnet} --remove natGateway")
    carry_out(estate, delete)
    assert gateway not in estate


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_nodes_made_again_have_public_addresses_where_their_pool_asks_for_them(is_asked_for: bool) -> None:
    """learn.microsoft.com/azure/aks/use-node-public-ips: the setting of the pool."""
    estate = estate_of("sealed")
    PLANTS["scale_set_model_with_a_public_address"].into(estate)
    pool = f"{estate.cluster}/agentPools/{estate[estate.site.gpu_scale_set]['tags']['aks-managed-poolName']}"
    estate.properties(pool)["enableNodePublicIP"] = is_asked_for
    carry_out(estate, f"az aks nodepool upgrade --ids {pool} --node-image-only")
    profile = estate.properties(estate.site.gpu_scale_set)["virtualMachineProfile"]["networkProfile"]
    configuration = profile["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"][-1]["properties"]
    assert ("publicIPAddressConfiguration" in configuration) is is_asked_for


def test_a_group_that_is_created_again_loses_its_own_rules() -> None:
    estate = estate_of("sealed")
    group = estate.site.node_rules
    subscription, resource_group = group.split("/")[2], group.split("/")[4]
    name = group.rpartition("/")[2]
    where = f"--subscription {subscription} --resource-group {resource_group}"
    carry_out(estate, f"az network nsg create {where} --name {name}")
    assert estate.properties(group)["securityRules"] == []
    assert estate.properties(group)["defaultSecurityRules"]


@cache
def base_of(layout: str) -> Base:
    """The layout without plants, judged check by check."""
    return Base(BARE[layout])


def commands_of(finding: Finding) -> list[str]:
    """The commands of the remedy, without those of a step that is another way to the same end."""
    steps = [step for step in steps_of(finding.remedy) if not step.explanation.startswith(("Or ", "Or, "))]
    return [command for step in steps for command in step.commands]


def reason_not_applied(finding: Finding, name: str) -> str:
    """Why the remedy is left to a person; "" where every command is whole."""
    commands = commands_of(finding)
    if not commands:
        return "prose only"
    if any(not command.startswith("az ") for command in commands):
        return "a program other than az"
    if any(placeholder in KNOWN for command in commands for placeholder in placeholders_in(command)):
        return "a placeholder that the user chooses"
    if all(parsed(command).is_read for command in commands):
        return "the commands only read"
    return NOT_JUDGED.get((finding.check, name), "")


def refusal_of(finding: Finding, estate: Estate) -> str:
    """Carries the commands out; a text where one of them is not in the tables."""
    try:
        for command in commands_of(finding):
            carry_out(estate, command)
    except NotCarriedOut as error:
        return str(error) if str(error).startswith("no row") else str(error).partition(":")[0]
    return ""


def key_of(finding: Finding) -> Key:
    return finding.check, finding.resource.lower()


def by_key(findings: Iterable[Finding]) -> dict[Key, Finding]:
    """Findings that are Fail or Unknown."""
    return {key_of(finding): finding for finding in findings if finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}}


def new_findings(before: dict[Key, Finding], after: dict[Key, Finding]) -> list[Finding]:
    """Findings that were not there, and those that were Unknown and are Fail."""
    return [
        finding
        for key, finding in after.items()
        if key not in before or (finding.verdict is Verdict.FAIL and before[key].verdict is Verdict.UNKNOWN)
    ]


# (check, plant) -> why the simulator cannot say what the remedy does
NOT_JUDGED: dict[Key, str] = {
    ("aks-static-egress", "gateway_pool"): "the plant makes the only pool of a pod subnet the gateway pool",
    ("lb-outbound-rule", "outbound_rule_of_a_balancer"): "AKS itself takes the outbound rule away",
    ("nsg-block-type", "block_without_its_rules"): "AKS itself writes the rules again",
    ("natgw-inventory", "nat_gateway_that_names_a_subnet"): "AKS itself takes its gateway away",
}
# (check, plant; "" for every plant) -> why a finding is still there after the commands of its remedy
STAYS: dict[Key, str] = {
    ("aks-http-proxy", "http_proxy"): "AKS keeps the servers of a proxy that is off: medium, one change from use",
    ("aks-ingress-addon", "gateway_for_containers"): "the last step, the association and the delegation, is by hand",
    ("nsg-internet-deny", "allow_to_the_virtual_network_before_the_deny"): "the last step, the allow, is by hand",
    ("service-pivot", ""): "the first step, the service leaves the network, is by hand",
    ("storage-public", "storage_open_to_an_address"): "the last step, the rules behind it, is by hand",
}
# (check, plant) -> the check that fails after the remedy, whose own text says so and what to do
ANNOUNCED: dict[Key, str] = {("diag-foreign-sink", "flow_log_to_an_account_of_others"): "nsg-flowlogs"}

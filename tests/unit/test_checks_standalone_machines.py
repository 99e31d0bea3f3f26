"""Nodes that are machines of their own: of a flexible scale set, or of a pool of virtual machines."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.projection import projected_row
from hermetic.audit.model.findings import Verdict
from tests.audit_estates import (
    CLUSTER,
    NIC,
    NODE_GROUP,
    NODES,
    SCALE_SET,
    FakeAzure,
    instance_view,
    ip_configuration,
    small_cluster,
)
from tests.audit_services import ACR_PUSH, REGISTRY, FakeServices, assign, served_cluster

MACHINE = f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachines/aks-gpu-0"
ALONE = f"{NODE_GROUP}/providers/Microsoft.Network/networkInterfaces/aks-gpu-0"
RUN_COMMANDS = "Microsoft.Compute/virtualMachines/runCommands"
IDENTITY = f"{NODE_GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/extra"
BUILD = "77777777-0000-0000-0000-000000000000"
FORBIDDEN_LISTS = (
    "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces",
    "Microsoft.Compute/virtualMachineScaleSets/publicIPAddresses",
)


def flexible(azure: FakeAzure, **nic: Any) -> FakeAzure:
    """The same node as a machine of its own; what Azure lists by scale set is refused."""
    del azure.bodies[NIC.lower()]
    azure.change(SCALE_SET, orchestrationMode="Flexible")
    fields = {"ipConfigurations": [ip_configuration("10.0.1.4", NODES)], "defaultOutboundConnectivityEnabled": False}
    azure.put(ALONE, {**fields, "virtualMachine": {"id": MACHINE}, **nic})
    azure.put(MACHINE, {"timeCreated": "2026-07-02T00:00:00Z", "instanceView": instance_view()})
    for kind in FORBIDDEN_LISTS:
        azure.refuse(SCALE_SET, kind=kind)
    return azure


def _verdicts(azure: FakeAzure, check: str) -> set[Verdict]:
    return {finding.verdict for finding in azure.findings(check).values()}


@pytest.mark.parametrize(
    "check", ["subnet-default-outbound", "nsg-internet-deny", "nic-default-outbound", "nic-public-ip"]
)
def test_a_flexible_scale_set_is_judged_by_the_interfaces_of_its_machines(check: str) -> None:
    assert _verdicts(flexible(small_cluster()), check) <= {Verdict.PASS, Verdict.NOT_APPLICABLE}


def test_what_is_open_there_is_found() -> None:
    azure = flexible(small_cluster(), defaultOutboundConnectivityEnabled=True)
    assert azure.findings("nic-default-outbound")[ALONE.lower()].verdict is Verdict.FAIL
    public = {**ip_configuration("10.0.1.4", NODES)}
    public["properties"]["publicIPAddress"] = {"id": f"{NODE_GROUP}/providers/Microsoft.Network/publicIPAddresses/p"}
    azure = flexible(small_cluster(), ipConfigurations=[public])
    assert azure.findings("nic-public-ip")[ALONE.lower()].verdict is Verdict.FAIL


def test_addresses_by_instance_are_no_question_there() -> None:
    finding = flexible(small_cluster()).findings("vmss-instance-pip")[SCALE_SET.lower()]
    assert (finding.verdict, finding.reason) == (Verdict.NOT_APPLICABLE, "FlexibleMode")


def test_machines_without_any_interface_cannot_be() -> None:
    azure = flexible(small_cluster())
    del azure.bodies[ALONE.lower()]
    assert Verdict.UNKNOWN in _verdicts(azure, "nic-default-outbound")
    assert Verdict.UNKNOWN in _verdicts(azure, "subnet-default-outbound")


@pytest.mark.parametrize("mode", ["Uniform", None, 7])
def test_any_other_mode_is_read_by_scale_set(mode: Any) -> None:
    azure = small_cluster().change(SCALE_SET, orchestrationMode=mode)
    for kind in FORBIDDEN_LISTS:
        azure.refuse(SCALE_SET, kind=kind)
    assert Verdict.UNKNOWN in _verdicts(azure, "nic-default-outbound")


class TestTheirIdentities:
    def azure(self, identity: Any) -> FakeServices:
        azure: Any = served_cluster()
        flexible(azure)
        azure.bodies[MACHINE.lower()]["identity"] = identity
        assign(azure, BUILD, ACR_PUSH, name="two")
        return azure  # type: ignore[no-any-return]

    def test_count(self) -> None:
        azure = self.azure({"userAssignedIdentities": {IDENTITY: {"principalId": BUILD}}})
        finding = azure.findings("acr-push-identity")[REGISTRY.lower()]
        assert finding.verdict is Verdict.FAIL
        assert "aks-gpu-0" in finding.message

    def test_system_assigned_ones_too(self) -> None:
        azure = self.azure({"principalId": BUILD})
        assert azure.findings("acr-push-identity")[REGISTRY.lower()].verdict is Verdict.FAIL

    def test_of_a_pool_of_virtual_machines(self) -> None:
        azure = self.azure({"principalId": BUILD})
        pool = {"name": "gpu", "count": 1, "type": "VirtualMachines", "vnetSubnetID": NODES}
        azure.change(CLUSTER, agentPoolProfiles=[pool])
        del azure.bodies[SCALE_SET.lower()]
        assert azure.findings("acr-push-identity")[REGISTRY.lower()].verdict is Verdict.FAIL

    def test_of_a_machine_that_cannot_be_read_are_unknown(self) -> None:
        azure = self.azure(None).refuse(MACHINE)
        assert azure.findings("acr-push-identity")[REGISTRY.lower()].verdict is Verdict.UNKNOWN


AKS_NODE = {"publisher": "Microsoft.AKS", "type": "Compute.AKS.Linux.AKSNode"}
SCRIPT = {"publisher": "Microsoft.Azure.Extensions", "type": "CustomScript"}
EXTENSION = f"{MACHINE}/extensions"
EXTENSIONS = "Microsoft.Compute/virtualMachines/extensions"


def _extended(**extensions: dict[str, Any]) -> FakeAzure:
    azure = flexible(small_cluster())
    for name, extension in extensions.items():
        azure.put(f"{EXTENSION}/{name}", extension, type=EXTENSIONS)
    return azure


class TestExtensions:
    @pytest.mark.parametrize(
        "extensions",
        [{}, {"node": AKS_NODE}, {"node": AKS_NODE, "cse-agent-0": SCRIPT}, {"vmssCSE": {**SCRIPT, "settings": {}}}],
    )
    def test_those_of_aks_pass(self, extensions: dict[str, dict[str, Any]]) -> None:
        finding = _extended(**extensions).findings("vmss-extensions")[MACHINE.lower()]
        assert finding.verdict is Verdict.PASS
        assert finding.evidence

    @pytest.mark.parametrize(
        ("extension", "severity"),
        [
            ({"publisher": "Contoso.Tools", "type": "AgentLinux"}, "high"),
            ({"publisher": "Contoso.Tools", "type": "Compute.AKS.Linux.AKSNode"}, "high"),
            ({"publisher": "Microsoft.AKS", "type": "CustomScript"}, "high"),
            ({**SCRIPT, "settings": {"fileUris": ["https://x.example/a.sh"]}}, "high"),
            ({}, "high"),
            ({"publisher": "Microsoft.Azure.Monitor", "type": "AzureMonitorLinuxAgent"}, "medium"),
        ],
    )
    def test_any_other_is_found_and_named(self, extension: dict[str, Any], severity: str) -> None:
        finding = _extended(node=AKS_NODE, extra=extension).findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, severity)
        assert "extra" in finding.message

    def test_a_vm_application_is_found_and_named(self) -> None:
        package = {"packageReferenceId": "/subscriptions/x/galleries/g/applications/miner/versions/1.0.0"}
        azure = _extended(node=AKS_NODE)
        azure.change(MACHINE, applicationProfile={"galleryApplications": [package]})
        finding = azure.findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, "high")
        assert "miner" in finding.message

    def test_of_two_custom_scripts_neither_is_taken_for_that_of_aks(self) -> None:
        finding = _extended(one=SCRIPT, two=SCRIPT).findings("vmss-extensions")[MACHINE.lower()]
        assert finding.verdict is Verdict.FAIL

    @pytest.mark.parametrize(
        "broken", [{"publisher": 7, "type": "AgentLinux"}, {**SCRIPT, "settings": "none"}, {**AKS_NODE, "type": ["x"]}]
    )
    def test_one_that_cannot_be_read_is_unknown(self, broken: dict[str, Any]) -> None:
        finding = _extended(extra=broken).findings("vmss-extensions")[MACHINE.lower()]
        assert finding.verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize("properties", [None, [], "none"])
    def test_one_without_properties_is_never_a_pass(self, properties: Any) -> None:
        azure = _extended(extra=AKS_NODE)
        azure.bodies[f"{EXTENSION}/extra".lower()]["properties"] = properties
        assert azure.findings("vmss-extensions")[MACHINE.lower()].verdict is not Verdict.PASS

    def test_a_list_that_is_refused_is_unknown(self) -> None:
        azure = _extended(node=AKS_NODE).refuse(MACHINE, kind=EXTENSIONS, verb="list")
        finding = azure.findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, "high")

    def test_a_machine_that_is_no_node_is_not_asked(self) -> None:
        other = MACHINE.replace("aks-gpu-0", "jump").replace(NODE_GROUP, NODE_GROUP.replace("ai-nodes", "tools"))
        azure = small_cluster().put(other, {}).put(f"{other}/extensions/x", {"publisher": "Contoso"})
        assert other.lower() not in azure.findings("vmss-extensions")

    def test_a_run_command_that_the_agent_reports_is_found(self) -> None:
        azure = _extended(node=AKS_NODE)
        azure.change(MACHINE, instanceView=instance_view("Microsoft.CPlat.Core.RunCommandHandlerLinux"))
        finding = azure.findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.severity, finding.reason) == (Verdict.FAIL, "high", "CodeOnOneMachine")
        assert "aks-gpu-0" in finding.message
        assert "RunCommandHandlerLinux" in finding.message

    def test_a_run_command_that_azure_keeps_is_found_before_the_agent_reports_it(self) -> None:
        source = {"script": "echo secret", "scriptUri": "https://a.example/x.sh?sig=secret"}
        azure = _extended(node=AKS_NODE).put(f"{MACHINE}/runCommands/tunnel", {"source": source})
        finding = azure.findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.severity, finding.reason) == (Verdict.FAIL, "high", "CodeOnOneMachine")
        assert "run commands that Azure keeps: tunnel" in finding.message
        assert "secret" not in str(finding)

    def test_of_a_run_command_the_name_alone_is_kept(self) -> None:
        source = {"script": "echo secret", "scriptUri": "https://a.example/x.sh?sig=secret"}
        row = {"id": f"{MACHINE}/runCommands/tunnel", "name": "tunnel", "type": "x", "properties": {"source": source}}
        assert projected_row(RUN_COMMANDS, row) == {"id": row["id"], "name": "tunnel", "properties": {}}

    def test_run_commands_that_may_not_be_listed_are_unknown(self) -> None:
        azure = _extended(node=AKS_NODE).refuse(MACHINE, kind=RUN_COMMANDS, verb="list")
        finding = azure.findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, "high")

    def test_what_is_listed_is_not_told_twice(self) -> None:
        azure = _extended(node=AKS_NODE, extra={"publisher": "Contoso", "type": "Tool"})
        azure.change(MACHINE, instanceView=instance_view("Contoso.Tool"))
        finding = azure.findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.reason) == (Verdict.FAIL, "ExtensionOfOthers")
        assert "handler" not in finding.message

    def test_a_silent_agent_is_unknown(self) -> None:
        finding = _extended(node=AKS_NODE).drop(MACHINE, "instanceView").findings("vmss-extensions")[MACHINE.lower()]
        assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "AgentSilent")

"""Logs to others, code on machines, consoles and taps: both ways, and Unknown."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import (
    CLUSTER,
    GROUP,
    INSTANCE,
    NETWORK,
    NIC,
    NODE_GROUP,
    RULES,
    SCALE_SET,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    instance_view,
)
from tests.audit_services import ACCOUNT, OTHER_SUBSCRIPTION, REGISTRY, FakeServices, only, served_cluster, verdicts

IDS = ("diag-foreign-sink", "vmss-extensions", "vmss-boot-diagnostics", "nic-tap", "packet-capture")
FOREIGN = f"{OTHER_SUBSCRIPTION}/resourceGroups/soc/providers"
WORKSPACE = "Microsoft.OperationalInsights/workspaces/logs"
LOG = f"{NETWORK}/networkWatchers/watcher/flowLogs/ai"
PARTNER = f"{GROUP}/providers/Microsoft.Datadog/monitors/dd"
BALANCER = f"{NODE_GROUP}/providers/Microsoft.Network/loadBalancers/kubernetes-internal"
INSTANCES = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
INSTANCE_NICS = "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces"
OUR_SINK = f"{GROUP}/providers/{WORKSPACE}"


@pytest.mark.parametrize("check", IDS)
def test_a_closed_cluster_passes(check: str) -> None:
    findings = served_cluster().findings(check)
    assert {finding.verdict for finding in findings.values()} == {Verdict.PASS}
    assert all(finding.evidence for finding in findings.values())


@pytest.mark.parametrize("check", IDS)
def test_a_cluster_that_cannot_be_read_is_unknown(check: str) -> None:
    assert verdicts(served_cluster().refuse(CLUSTER, verb="get"), check)[CLUSTER.lower()] == "Unknown"


def _balanced() -> FakeServices:
    """With a load balancer of the nodes."""
    azure = served_cluster()
    azure.put(BALANCER, {"frontendIPConfigurations": [], "backendAddressPools": []})
    return azure


def _sent(resource: str, **sink: Any) -> tuple[FakeServices, str]:
    setting = f"{resource}/providers/Microsoft.Insights/diagnosticSettings/s"
    azure = _balanced()
    azure.put(setting, sink)
    azure.lists[resource.lower(), "microsoft.insights/diagnosticsettings"] = [azure.bodies[setting.lower()]]
    return azure, setting


class TestDiagnosticSettings:
    @pytest.mark.parametrize(
        ("sink", "verdict"),
        [
            ({"workspaceId": f"{FOREIGN}/{WORKSPACE}"}, "Fail"),
            ({"storageAccountId": f"{FOREIGN}/Microsoft.Storage/storageAccounts/a"}, "Fail"),
            (
                {"eventHubAuthorizationRuleId": f"{FOREIGN}/Microsoft.EventHub/namespaces/n/authorizationrules/r"},
                "Fail",
            ),
            ({"workspaceId": OUR_SINK, "serviceBusRuleId": f"{FOREIGN}/Microsoft.ServiceBus/namespaces/n"}, "Fail"),
            ({"marketplacePartnerId": PARTNER}, "Fail"),
            ({"workspaceId": "a text"}, "Fail"),
            ({"workspaceId": OUR_SINK}, "Pass"),
            ({"workspaceId": OUR_SINK.upper()}, "Pass"),
            ({}, "Unknown"),
            ({"workspaceId": 7}, "Unknown"),
        ],
    )
    def test_every_sink_must_be_ours(self, sink: dict[str, Any], verdict: str) -> None:
        azure, setting = _sent(CLUSTER, **sink)
        assert verdicts(azure, "diag-foreign-sink")[setting.lower()] == verdict

    @pytest.mark.parametrize(
        "resource",
        [
            *(CLUSTER, VNET, REGISTRY, RULES, BALANCER),
            *(f"{ACCOUNT}/blobServices/default", f"{ACCOUNT}/fileServices/default"),
        ],
    )
    def test_settings_of_each_kind_of_resource_are_read(self, resource: str) -> None:
        azure, setting = _sent(resource, workspaceId=f"{FOREIGN}/{WORKSPACE}")
        finding = azure.findings("diag-foreign-sink")[setting.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert "workspace" in finding.message
        assert finding.paths
        assert finding.remedy

    def test_a_subscription_that_the_policy_names_is_ours(self) -> None:
        azure, setting = _sent(CLUSTER, workspaceId=f"{FOREIGN}/{WORKSPACE}")
        ours = Policy(own_subscriptions=(OTHER_SUBSCRIPTION.rpartition("/")[2],))
        assert verdicts(azure, "diag-foreign-sink", ours)[setting.lower()] == "Pass"

    def test_a_security_group_of_an_interface_counts_beside_that_of_its_subnet(self) -> None:
        own = f"{NODE_GROUP}/providers/Microsoft.Network/networkSecurityGroups/aks-agentpool-nsg"
        azure, setting = _sent(own, workspaceId=f"{FOREIGN}/{WORKSPACE}")
        azure.put(own, {"securityRules": [], "defaultSecurityRules": []})
        azure.change(NIC, networkSecurityGroup={"id": own})
        assert verdicts(azure, "diag-foreign-sink")[setting.lower()] == "Fail"

    def test_a_load_balancer_that_serves_no_node_is_not_asked(self) -> None:
        other = f"{GROUP}/providers/Microsoft.Network/loadBalancers/other"
        azure, setting = _sent(other, workspaceId=f"{FOREIGN}/{WORKSPACE}")
        azure.put(other, {"frontendIPConfigurations": [], "backendAddressPools": []})
        assert setting.lower() not in verdicts(azure, "diag-foreign-sink")

    @pytest.mark.parametrize("kind", ["Microsoft.Network/loadBalancers", INSTANCE_NICS])
    def test_a_list_that_may_show_more_of_them_leaves_it_unknown(self, kind: str) -> None:
        azure = served_cluster()
        for scope in (SUBSCRIPTION, GROUP, NODE_GROUP, SCALE_SET):
            azure.refuse(scope, kind=kind, verb="list")
        assert verdicts(azure, "diag-foreign-sink")[CLUSTER.lower()] == "Unknown"

    @pytest.mark.parametrize("resource", [CLUSTER, VNET, REGISTRY, RULES, BALANCER])
    def test_settings_that_cannot_be_listed_are_unknown(self, resource: str) -> None:
        azure = _balanced().refuse(resource, kind="Microsoft.Insights/diagnosticSettings")
        finding = azure.findings("diag-foreign-sink")[resource.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.HIGH)

    def test_a_file_account_has_no_service_of_blobs(self) -> None:
        azure = served_cluster()
        azure.bodies[ACCOUNT.lower()]["kind"] = "FileStorage"
        verdict_of = verdicts(azure, "diag-foreign-sink")
        assert f"{ACCOUNT}/fileServices/default".lower() in verdict_of
        assert f"{ACCOUNT}/blobServices/default".lower() not in verdict_of

    def test_services_are_asked_for_when_the_account_was(self) -> None:
        verdict_of = verdicts(served_cluster().refuse(ACCOUNT, UnreadReason.NOT_ASKED, verb="get"), "diag-foreign-sink")
        assert verdict_of[ACCOUNT.lower()] == "Unknown"
        assert not [key for key in verdict_of if key.startswith(f"{ACCOUNT}/".lower())]

    def test_every_service_is_asked_for_where_the_account_cannot_be_read(self) -> None:
        verdict_of = verdicts(served_cluster().refuse(ACCOUNT, verb="get"), "diag-foreign-sink")
        services = (f"{ACCOUNT}/{service_kind}/default".lower() for service_kind in ("blobServices", "fileServices"))
        assert all(service in verdict_of for service in services)

    @pytest.mark.parametrize(
        ("properties", "verdict"),
        [
            ({"storageId": f"{FOREIGN}/Microsoft.Storage/storageAccounts/a"}, "Fail"),
            ({"storageId": ACCOUNT}, "Pass"),
            (
                {
                    "storageId": ACCOUNT,
                    "flowAnalyticsConfiguration": {
                        "networkWatcherFlowAnalyticsConfiguration": {"workspaceResourceId": f"{FOREIGN}/{WORKSPACE}"}
                    },
                },
                "Fail",
            ),
            ({"storageId": 7}, "Unknown"),
        ],
    )
    def test_a_flow_log_goes_to_accounts_and_workspaces_of_ours(self, properties: dict[str, Any], verdict: str) -> None:
        azure = served_cluster().change(LOG, **properties)
        assert verdicts(azure, "diag-foreign-sink")[LOG.lower()] == verdict

    def test_a_flow_log_that_cannot_be_read_is_unknown(self) -> None:
        assert verdicts(served_cluster().refuse(LOG), "diag-foreign-sink")[LOG.lower()] == "Unknown"


def _model(**profile: Any) -> FakeServices:
    azure = served_cluster()
    azure.properties(SCALE_SET)["virtualMachineProfile"].update(profile)
    return azure


def _extension(name: str, publisher: Any, kind: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "properties": {"publisher": publisher, "type": kind, "settings": settings}}


class TestExtensions:
    @pytest.mark.parametrize(
        ("extension", "verdict", "severity"),
        [
            (_extension("vmssCSE", "Microsoft.Azure.Extensions", "CustomScript"), "Pass", "high"),
            (
                _extension("vmssCSE", "Microsoft.Azure.Extensions", "CustomScript", fileUris=["https://x"]),
                "Fail",
                "high",
            ),
            (_extension("more", "Microsoft.Azure.Extensions", "CustomScript"), "Fail", "high"),
            (_extension("AKSLinuxExtension", "Microsoft.AKS", "Compute.AKS.Linux.AKSNode"), "Pass", "high"),
            (_extension("a", "microsoft.aks", "COMPUTE.AKS.LINUX.BILLING"), "Pass", "high"),
            (_extension("AKSLinuxExtension", "Contoso", "Compute.AKS.Linux.AKSNode"), "Fail", "high"),
            (_extension("run", "Microsoft.CPlat.Core", "RunCommandLinux"), "Fail", "high"),
            (_extension("ssh", "Microsoft.OSTCExtensions", "VMAccessForLinux"), "Fail", "high"),
            (_extension("watch", "Microsoft.Azure.NetworkWatcher", "NetworkWatcherAgentLinux"), "Fail", "high"),
            (_extension("ama", "Microsoft.Azure.Monitor", "AzureMonitorLinuxAgent"), "Fail", "medium"),
            (_extension("", None, ""), "Fail", "high"),
            (_extension("odd", 7, "x"), "Unknown", "high"),
        ],
    )
    def test_only_those_of_aks_pass(self, extension: dict[str, Any], verdict: str, severity: str) -> None:
        finding = only(_model(extensionProfile={"extensions": [extension]}), "vmss-extensions")
        assert (finding.verdict, finding.severity, finding.resource) == (verdict, severity, SCALE_SET)

    def test_a_strangers_extension_is_not_hidden_by_an_agent(self) -> None:
        both = [
            _extension("ama", "Microsoft.Azure.Monitor", "AzureMonitorLinuxAgent"),
            _extension("run", "Contoso", "Tool"),
        ]
        finding = only(_model(extensionProfile={"extensions": both}), "vmss-extensions")
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)

    def test_the_login_by_entra_id_has_a_remedy_of_its_own(self) -> None:
        """learn.microsoft.com/azure/aks/manage-ssh-node-access: sshAccess EntraId brings AADSSHLoginForLinux."""
        login = _extension("AADSSHLoginForLinux", "Microsoft.Azure.ActiveDirectory", "AADSSHLoginForLinux")
        finding = only(_model(extensionProfile={"extensions": [login]}), "vmss-extensions")
        assert (finding.verdict, finding.severity, finding.reason) == (Verdict.FAIL, Severity.HIGH, "EntraLogin")
        assert "--ssh-access disabled" in finding.remedy
        assert "nodepool delete" not in finding.remedy
        both = [login, _extension("run", "Contoso", "Tool")]
        finding = only(_model(extensionProfile={"extensions": both}), "vmss-extensions")
        assert "not those of AKS: run" in finding.message
        assert "Entra ID: AADSSHLoginForLinux" in finding.message

    def test_a_vm_application_in_the_model_is_found_and_named(self) -> None:
        package = {"packageReferenceId": "/subscriptions/x/galleries/g/applications/miner/versions/1.0.0"}
        azure = _model(applicationProfile={"galleryApplications": [package]})
        finding = azure.findings("vmss-extensions")[SCALE_SET.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert "miner" in finding.message

    def test_scale_sets_that_cannot_be_listed_are_unknown(self) -> None:
        azure = served_cluster().refuse(f"{SUBSCRIPTION}/resourceGroups/ai-nodes", verb="list")
        assert verdicts(azure, "vmss-extensions")[CLUSTER.lower()] == "Unknown"


AKS_NODE = _extension("AKSLinuxExtension", "Microsoft.AKS", "Compute.AKS.Linux.AKSNode")
NODE_SCRIPT = _extension("vmssCSE", "Microsoft.Azure.Extensions", "CustomScript")


def _instance(
    view: Any, *own: dict[str, Any], model: tuple[dict[str, Any], ...] = (NODE_SCRIPT, AKS_NODE)
) -> FakeAzure:
    azure = _model(extensionProfile={"extensions": list(model)})
    return azure.put(INSTANCE, {"instanceView": view}, resources=list(own))


class TestSingleInstances:
    @pytest.mark.parametrize(
        ("handler", "severity"),
        [
            ("Microsoft.CPlat.Core.RunCommandLinux", "high"),
            ("Microsoft.CPlat.Core.RunCommandHandlerLinux", "high"),
            ("Contoso.Tool", "high"),
            ("", "high"),
            ("Microsoft.Azure.Monitor.AzureMonitorLinuxAgent", "medium"),
        ],
    )
    def test_a_handler_that_the_model_does_not_have_is_named(self, handler: str, severity: str) -> None:
        finding = _instance(instance_view(handler)).findings("vmss-extensions")
        assert finding[SCALE_SET.lower()].verdict is Verdict.PASS
        assert (finding[INSTANCE.lower()].verdict, finding[INSTANCE.lower()].severity) == (Verdict.FAIL, severity)
        assert handler in finding[INSTANCE.lower()].message
        assert "machine 0" in finding[INSTANCE.lower()].message

    def test_what_the_model_has_is_told_once(self) -> None:
        strange = _extension("tool", "Contoso", "Tool")
        view = instance_view("Contoso.Tool")
        view["extensions"].append({"name": "tool", "type": "Contoso.Tool"})
        finding = only(_instance(view, strange, model=(NODE_SCRIPT, AKS_NODE, strange)), "vmss-extensions")
        assert (finding.verdict, finding.resource) == (Verdict.FAIL, SCALE_SET)

    @pytest.mark.parametrize(
        ("own", "verdict"),
        [
            (NODE_SCRIPT, None),
            (AKS_NODE, None),
            (_extension("old", "Microsoft.AKS", "Compute.AKS.Linux.Billing"), None),
            (_extension("tool", "Contoso", "Tool"), "Fail"),
            (_extension("0/tool", "Contoso", "Tool"), "Fail"),
            (_extension("vmssCSE", "Microsoft.Azure.Extensions", "CustomScript", fileUris=["https://x"]), "Fail"),
        ],
    )
    def test_an_extension_of_its_own_is_found(self, own: dict[str, Any], verdict: str | None) -> None:
        azure = _instance(instance_view(), own)
        assert verdicts(azure, "vmss-extensions").get(INSTANCE.lower()) == verdict

    def test_a_second_custom_script_is_found_by_its_name(self) -> None:
        view = instance_view()
        view["extensions"].append({"name": "more", "type": "Microsoft.Azure.Extensions.CustomScript"})
        finding = _instance(view).findings("vmss-extensions")[INSTANCE.lower()]
        assert (finding.verdict, "more" in finding.message) == (Verdict.FAIL, True)

    @pytest.mark.parametrize(
        "view",
        [
            None,
            {},
            "ready",
            {"vmAgent": None},
            {"vmAgent": {"statuses": [{"code": "ProvisioningState/succeeded"}], "extensionHandlers": None}},
            {"vmAgent": {"statuses": [{"code": "ProvisioningState/succeeded"}], "extensionHandlers": []}},
            {"vmAgent": {"statuses": [{"code": "ProvisioningState/succeeded"}], "extensionHandlers": "none"}},
            {"vmAgent": {"statuses": [{"code": "ProvisioningState/succeeded"}], "extensionHandlers": [{"type": 7}]}},
            {"vmAgent": {"statuses": None, "extensionHandlers": [{"type": "Microsoft.Azure.Extensions.CustomScript"}]}},
            instance_view(code="ProvisioningState/Unavailable"),
        ],
    )
    def test_an_agent_that_does_not_report_is_unknown(self, view: Any) -> None:
        finding = only(_instance(view), "vmss-extensions")
        assert (finding.verdict, finding.severity, finding.resource) == (Verdict.UNKNOWN, "high", SCALE_SET)
        assert finding.reason in {"AgentSilent", "Unreadable"}
        assert finding.reason == "Unreadable" or "1 of 1 instances" in finding.message

    @pytest.mark.parametrize(
        ("states", "verdict"),
        [
            (["deallocated"], Verdict.PASS),
            (["Deallocated"], Verdict.PASS),
            (["stopped"], Verdict.UNKNOWN),
            (["deallocating"], Verdict.UNKNOWN),
            (["starting"], Verdict.UNKNOWN),
            (["running"], Verdict.UNKNOWN),
            (["deallocated", "running"], Verdict.UNKNOWN),
            ([], Verdict.UNKNOWN),
        ],
    )
    def test_a_silent_instance_passes_only_where_it_is_deallocated(self, states: list[str], verdict: Verdict) -> None:
        """learn.microsoft.com/azure/virtual-machines/states-billing; GPU pools scale down by deallocation."""
        view = {"statuses": [{"code": f"PowerState/{state}"} for state in states], "vmAgent": None}
        finding = only(_instance(view), "vmss-extensions")
        assert finding.verdict == verdict
        assert verdict is Verdict.UNKNOWN or "deallocated" in finding.message

    def test_code_stored_at_a_deallocated_instance_fails_all_the_same(self) -> None:
        view = {
            "statuses": [{"code": "PowerState/deallocated"}],
            "extensions": [{"name": "tool", "type": "Acme.Agent"}],
        }
        verdict_of = verdicts(_instance(view), "vmss-extensions")
        assert "Fail" in verdict_of.values()

    def test_a_strange_handler_fails_though_the_agent_is_not_ready(self) -> None:
        view = instance_view("Contoso.Tool", code="ProvisioningState/Unavailable")
        verdict_of = verdicts(_instance(view), "vmss-extensions")
        assert verdict_of == {SCALE_SET.lower(): "Unknown", INSTANCE.lower(): "Fail"}

    def test_instances_that_cannot_be_listed_are_unknown(self) -> None:
        azure = _instance(instance_view()).refuse(SCALE_SET, kind=INSTANCES, verb="list")
        assert verdicts(azure, "vmss-extensions")[SCALE_SET.lower()] == "Unknown"
        azure = _instance(instance_view()).drop(INSTANCE)
        assert verdicts(azure, "vmss-extensions")[SCALE_SET.lower()] == "Unknown"


class TestBootDiagnostics:
    @pytest.mark.parametrize(
        ("document", "verdict"),
        [
            ({"enabled": True}, "Pass"),
            ({"enabled": False}, "Pass"),
            ({"enabled": True, "storageUri": "https://aistore.blob.core.windows.net/"}, "Pass"),
            ({"enabled": True, "storageUri": "https://stranger.blob.core.windows.net/"}, "Fail"),
            ({"enabled": False, "storageUri": "https://stranger.blob.core.windows.net/"}, "Fail"),
            ({"enabled": True, "storageUri": "stranger"}, "Fail"),
            ({"enabled": True, "storageUri": 7}, "Unknown"),
        ],
    )
    def test_an_account_has_to_be_ours(self, document: dict[str, Any], verdict: str) -> None:
        finding = only(_model(diagnosticsProfile={"bootDiagnostics": document}), "vmss-boot-diagnostics")
        assert (finding.verdict, finding.resource) == (verdict, SCALE_SET)

    def test_accounts_that_cannot_be_listed_leave_it_open(self) -> None:
        fields = {"enabled": True, "storageUri": "https://stranger.blob.core.windows.net/"}
        azure = _model(diagnosticsProfile={"bootDiagnostics": fields})
        azure.refuse(SUBSCRIPTION, kind="Microsoft.Storage/storageAccounts")
        assert only(azure, "vmss-boot-diagnostics").verdict is Verdict.UNKNOWN


class TestTaps:
    def test_a_tapped_interface_fails(self) -> None:
        tap = f"{FOREIGN}/Microsoft.Network/virtualNetworkTaps/t"
        azure = served_cluster().change(NIC, tapConfigurations=[{"properties": {"virtualNetworkTap": {"id": tap}}}])
        finding = azure.findings("nic-tap")[NIC.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert tap in finding.message

    def test_a_tap_that_does_not_name_itself_is_one(self) -> None:
        azure = served_cluster().change(NIC, tapConfigurations=[{}])
        assert verdicts(azure, "nic-tap")[NIC.lower()] == "Fail"

    def test_what_cannot_be_read_is_unknown(self) -> None:
        azure = served_cluster().change(NIC, tapConfigurations="one")
        assert verdicts(azure, "nic-tap")[CLUSTER.lower()] == "Unknown"
        azure = served_cluster().refuse(SCALE_SET, verb="list")
        assert verdicts(azure, "nic-tap")[CLUSTER.lower()] == "Unknown"


class TestCaptures:
    WATCHER = f"{NETWORK}/networkWatchers/watcher"

    def _azure(self, location: str = "westeurope", **properties: Any) -> FakeServices:
        azure = served_cluster()
        azure.put(self.WATCHER, {}, location=location)
        azure.put(f"{self.WATCHER}/packetCaptures/one", properties)
        return azure

    @pytest.mark.parametrize(
        ("stored", "verdict", "severity"),
        [
            ({"storageId": f"{FOREIGN}/Microsoft.Storage/storageAccounts/a"}, "Fail", "high"),
            ({"storagePath": "https://stranger.blob.core.windows.net/x.cap"}, "Fail", "high"),
            ({"storageId": ACCOUNT}, "Fail", "medium"),
            ({"filePath": "/var/captures/x.cap"}, "Fail", "medium"),
            ({"storageId": 7}, "Unknown", "high"),
        ],
    )
    def test_a_capture_of_nodes_is_as_bad_as_where_it_is_kept(
        self, stored: dict[str, Any], verdict: str, severity: str
    ) -> None:
        azure = self._azure(target=SCALE_SET, storageLocation=stored)
        finding = only(azure, "packet-capture")
        assert (finding.verdict, finding.severity) == (verdict, severity)

    def test_a_capture_that_names_no_target_is_unknown(self) -> None:
        assert only(self._azure(), "packet-capture").verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(
        ("location", "target"),
        [
            ("westeurope", f"{GROUP}/providers/Microsoft.Compute/virtualMachines/tools"),
            ("northeurope", SCALE_SET),
        ],
    )
    def test_captures_of_other_machines_and_regions_do_not_matter(self, location: str, target: str) -> None:
        azure = self._azure(location, target=target, storageLocation={"storageId": ACCOUNT})
        assert verdicts(azure, "packet-capture") == {CLUSTER.lower(): "Pass"}

    def test_what_cannot_be_listed_is_unknown(self) -> None:
        azure = served_cluster().refuse(SUBSCRIPTION, kind="Microsoft.Network/networkWatchers")
        assert verdicts(azure, "packet-capture") == {CLUSTER.lower(): "Unknown"}
        azure = self._azure(target=SCALE_SET).refuse(self.WATCHER, verb="list")
        assert verdicts(azure, "packet-capture") == {CLUSTER.lower(): "Unknown"}

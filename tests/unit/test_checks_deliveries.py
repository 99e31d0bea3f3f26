"""What Azure carries out by itself: logs, events, exports, members of monitor scopes, shared disks, vaults.

Sources of the shapes are named in testbed/azure/plants/deliveries.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.checks.registry import PAGES
from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.estate.resource import MODELS
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.delivery_table import DELIVERIES, NOTHING_DELIVERED, deliveries_of
from tests.audit_estates import CLUSTER, GROUP, NETWORK, NODE_GROUP, RULES, SUBSCRIPTION, VNET, FakeAzure
from tests.audit_services import (
    ACCOUNT,
    DNS_POLICY,
    OTHER_SUBSCRIPTION,
    REGISTRY,
    FakeServices,
    add_endpoint,
    only,
    served_cluster,
    verdicts,
)

FOREIGN = f"{OTHER_SUBSCRIPTION}/resourceGroups/soc/providers"
FOREIGN_ACCOUNT = f"{FOREIGN}/Microsoft.Storage/storageAccounts/drop"
FOREIGN_WORKSPACE = f"{FOREIGN}/Microsoft.OperationalInsights/workspaces/logs"
WORKSPACE = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs"
SCOPE = f"{GROUP}/providers/Microsoft.Insights/privateLinkScopes/monitor"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/secrets"
DISK = f"{NODE_GROUP}/providers/Microsoft.Compute/disks/pvc-1"
OUTSIDE = f"{SUBSCRIPTION}/resourceGroups/other/providers/Microsoft.Compute/virtualMachines/reader"
NODE = f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/nodes/virtualMachines/1"
OURS = Policy(own_subscriptions=(OTHER_SUBSCRIPTION,))
EVENTS = "providers/Microsoft.EventGrid/eventSubscriptions"


def _setting(azure: FakeAzure, resource: str, **sink: str) -> str:
    setting = f"{resource}/providers/Microsoft.Insights/diagnosticSettings/all"
    azure.put(setting, sink)
    return setting


class TestTheTable:
    def test_each_row_names_a_check_that_is_there(self) -> None:
        assert {row.check for rows in DELIVERIES.values() for row in rows} <= PAGES.keys()

    def test_each_row_names_a_list_that_a_model_reads(self) -> None:
        assert {row.listed.lower() for rows in DELIVERIES.values() for row in rows} <= MODELS.keys()

    def test_each_type_without_a_row_has_a_reason_and_no_row(self) -> None:
        assert all(NOTHING_DELIVERED.values())
        assert not NOTHING_DELIVERED.keys() & DELIVERIES.keys()

    def test_a_type_in_scope_without_a_row_is_named(self) -> None:
        azure, target = served_cluster(), f"{GROUP}/providers/Microsoft.Novel/things/one"
        add_endpoint(azure, f"{NETWORK}/privateEndpoints/novel", target)
        finding = azure.findings("delivery-kinds")[target.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.LOW)
        assert "Microsoft.Novel/things" in finding.message
        assert not deliveries_of(target)

    def test_a_plain_estate_has_no_type_without_a_row(self) -> None:
        assert verdicts(served_cluster(), "delivery-kinds") == {CLUSTER.lower(): "Pass"}


class TestLogs:
    @pytest.mark.parametrize(
        "resource",
        [
            DNS_POLICY,
            f"{ACCOUNT}/queueServices/default",
            f"{ACCOUNT}/tableServices/default",
            f"{ACCOUNT}/blobServices/default",
        ],
    )
    def test_words_of_pods_sent_to_others_fail(self, resource: str) -> None:
        azure = served_cluster()
        setting = _setting(azure, resource, workspaceId=FOREIGN_WORKSPACE)
        finding = azure.findings("diag-foreign-sink")[setting.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, Severity.HIGH)
        assert verdicts(azure, "diag-foreign-sink", OURS)[setting.lower()] == "Pass"

    @pytest.mark.parametrize("resource", [DNS_POLICY, f"{ACCOUNT}/queueServices/default"])
    def test_settings_that_cannot_be_listed_are_unknown(self, resource: str) -> None:
        azure = served_cluster().refuse(resource, kind="Microsoft.Insights/diagnosticSettings")
        assert verdicts(azure, "diag-foreign-sink")[resource.lower()] == "Unknown"

    def test_dns_policies_that_cannot_be_listed_are_unknown_and_do_not_decide(self) -> None:
        azure = served_cluster().refuse(VNET, verb="post", kind="Microsoft.Network/virtualNetworks")
        finding = azure.findings("diag-foreign-sink")[VNET.lower()]
        assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.MEDIUM)

    @pytest.mark.parametrize("target", [RULES, f"{VNET}/subnets/nodes"])
    def test_a_flow_log_that_no_network_lists_fails(self, target: str) -> None:
        azure, watcher = served_cluster(), f"{NETWORK}/networkWatchers/watcher"
        azure.put(watcher, {})
        azure.put(f"{watcher}/flowLogs/other", {"targetResourceId": target, "storageId": FOREIGN_ACCOUNT})
        assert verdicts(azure, "diag-foreign-sink")[f"{watcher}/flowLogs/other".lower()] == "Fail"

    def test_a_flow_log_of_another_team_is_not_evaluated(self) -> None:
        azure, watcher = served_cluster(), f"{NETWORK}/networkWatchers/watcher"
        azure.put(watcher, {})
        elsewhere = f"{SUBSCRIPTION}/resourceGroups/other/providers/Microsoft.Network/virtualNetworks/v"
        azure.put(f"{watcher}/flowLogs/other", {"targetResourceId": elsewhere, "storageId": FOREIGN_ACCOUNT})
        assert f"{watcher}/flowLogs/other".lower() not in verdicts(azure, "diag-foreign-sink")


class TestExports:
    def _exporting(self, target: str | None, **fields: Any) -> tuple[FakeServices, str]:
        azure, export = served_cluster(), f"{WORKSPACE}/dataExports/all"
        _setting(azure, CLUSTER, workspaceId=WORKSPACE)
        azure.put(export, {"destination": {"resourceId": target}, **fields})
        return azure, export

    @pytest.mark.parametrize(
        ("target", "verdict"),
        [
            (FOREIGN_ACCOUNT, "Fail"),
            (f"{FOREIGN}/Microsoft.EventHub/namespaces/hub", "Fail"),
            (ACCOUNT, "Pass"),
            (None, "Unknown"),
            ("hub", "Unknown"),
        ],
    )
    def test_the_target_decides(self, target: str | None, verdict: str) -> None:
        azure, export = self._exporting(target)
        assert verdicts(azure, "workspace-export")[export.lower()] == verdict

    def test_a_disabled_export_counts(self) -> None:
        azure, export = self._exporting(FOREIGN_ACCOUNT, enable=False)
        assert verdicts(azure, "workspace-export")[export.lower()] == "Fail"

    def test_exports_that_cannot_be_listed_are_unknown(self) -> None:
        azure, _ = self._exporting(ACCOUNT)
        azure.refuse(WORKSPACE, kind="Microsoft.OperationalInsights/workspaces/dataExports")
        assert verdicts(azure, "workspace-export")[WORKSPACE.lower()] == "Unknown"

    def test_a_workspace_that_was_deleted_is_no_doubt(self) -> None:
        azure, _ = self._exporting(ACCOUNT)
        azure.refuse(WORKSPACE, UnreadReason.NOT_FOUND)
        assert only(azure, "workspace-export").verdict is Verdict.NOT_APPLICABLE
        assert WORKSPACE.lower() not in verdicts(azure, "diag-foreign-sink")

    def test_workspaces_that_send_to_each_other_are_each_read_once(self) -> None:
        azure, second = served_cluster(), WORKSPACE.replace("/logs", "/second")
        _setting(azure, CLUSTER, workspaceId=WORKSPACE)
        _setting(azure, WORKSPACE, workspaceId=second)
        _setting(azure, second, workspaceId=WORKSPACE.upper())
        azure.put(f"{second}/dataExports/all", {"destination": {"resourceId": FOREIGN_ACCOUNT}})
        assert verdicts(azure, "workspace-export")[f"{second}/dataExports/all".lower()] == "Fail"

    def test_without_a_workspace_it_does_not_apply(self) -> None:
        assert only(served_cluster(), "workspace-export").verdict is Verdict.NOT_APPLICABLE


def _to(kind: str | None, target: str | None) -> dict[str, Any]:
    return {"endpointType": kind, "properties": {"resourceId": target}}


FUNCTION = f"{GROUP}/providers/Microsoft.Web/sites/f/functions/scan"
HYBRID = f"{GROUP}/providers/Microsoft.Relay/namespaces/r/hybridConnections/h"
WEBHOOK = {"endpointType": "WebHook", "properties": {"endpointBaseUrl": "https://collect.example/in?code=secret"}}


class TestEvents:
    @pytest.mark.parametrize("source", [ACCOUNT, REGISTRY])
    @pytest.mark.parametrize(
        ("destination", "verdict"),
        [
            (WEBHOOK, "Fail"),
            ({"endpointType": "WebHook"}, "Fail"),
            (_to("EventHub", f"{FOREIGN}/Microsoft.EventHub/namespaces/n/eventhubs/h"), "Fail"),
            (_to("StorageQueue", FOREIGN_ACCOUNT), "Fail"),
            (_to("ServiceBusQueue", f"{FOREIGN}/Microsoft.ServiceBus/namespaces/n/queues/q"), "Fail"),
            (_to("AzureFunction", FUNCTION), "Fail"),
            (_to("HybridConnection", HYBRID), "Fail"),
            (_to("MonitorAlert", None), "Fail"),
            (_to("PartnerDestination", f"{GROUP}/providers/Microsoft.EventGrid/partnerDestinations/p"), "Fail"),
            (_to("StorageQueue", ACCOUNT), "Pass"),
            (_to("eventhub", f"{GROUP}/providers/Microsoft.EventHub/namespaces/n/eventhubs/h"), "Pass"),
            (_to("StorageQueue", None), "Unknown"),
            (_to("Novel", ACCOUNT), "Unknown"),
            (_to(None, ACCOUNT), "Unknown"),
            (None, "Unknown"),
            ("queue", "Unknown"),
        ],
    )  # fmt: skip
    def test_the_destination_decides(self, source: str, destination: Any, verdict: str) -> None:
        azure = served_cluster().put(f"{source}/{EVENTS}/one", {"destination": destination})
        finding = azure.findings("event-foreign-sink")[f"{source}/{EVENTS}/one".lower()]
        assert (finding.verdict.value, finding.severity) == (verdict, Severity.HIGH)
        assert "secret" not in finding.message

    def test_the_worse_of_two_destinations_decides(self) -> None:
        azure = served_cluster()
        subscription = {"destination": _to("StorageQueue", ACCOUNT)}
        azure.put(
            f"{ACCOUNT}/{EVENTS}/one", {**subscription, "deadLetterDestination": _to("StorageBlob", FOREIGN_ACCOUNT)}
        )
        dead = {"deadLetterDestination": _to("StorageBlob", FOREIGN_ACCOUNT)}
        azure.put(f"{ACCOUNT}/{EVENTS}/two", {**subscription, "deadLetterWithResourceIdentity": dead})
        verdict_of = verdicts(azure, "event-foreign-sink")
        assert verdict_of[f"{ACCOUNT}/{EVENTS}/one".lower()] == verdict_of[f"{ACCOUNT}/{EVENTS}/two".lower()] == "Fail"

    def test_a_function_that_the_policy_names_passes(self) -> None:
        azure = served_cluster().put(f"{ACCOUNT}/{EVENTS}/one", {"destination": _to("AzureFunction", FUNCTION)})
        allowed = Policy(allowed_private_link_services=(FUNCTION,))
        assert verdicts(azure, "event-foreign-sink", allowed)[f"{ACCOUNT}/{EVENTS}/one".lower()] == "Pass"

    @pytest.mark.parametrize(
        ("source", "verdict"), [(ACCOUNT.upper(), "Fail"), (None, "Fail"), (7, "Fail"), (FOREIGN_ACCOUNT, None)]
    )
    def test_a_system_topic_of_the_account_or_of_no_known_source_is_read(
        self, source: Any, verdict: str | None
    ) -> None:
        azure, topic = served_cluster(), f"{GROUP}/providers/Microsoft.EventGrid/systemTopics/t"
        azure.put(topic, {"source": source}).put(f"{topic}/eventSubscriptions/one", {"destination": WEBHOOK})
        assert verdicts(azure, "event-foreign-sink").get(f"{topic}/eventSubscriptions/one".lower()) == verdict

    @pytest.mark.parametrize(
        ("target", "kind"),
        [(ACCOUNT, "Microsoft.EventGrid/eventSubscriptions"), (SUBSCRIPTION, "Microsoft.EventGrid/systemTopics")],
    )
    @pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED])
    def test_a_list_that_is_not_whole_is_unknown(self, target: str, kind: str, reason: UnreadReason) -> None:
        azure = served_cluster().refuse(target, reason, kind=kind)
        assert verdicts(azure, "event-foreign-sink")[ACCOUNT.lower()] == "Unknown"


def _disk(**properties: Any) -> FakeServices:
    return served_cluster().put(DISK, {"diskState": "Attached", "networkAccessPolicy": "DenyAll", **properties})


class TestSharedDisks:
    @pytest.mark.parametrize(
        ("properties", "verdict"),
        [
            ({"managedBy": NODE}, "Pass"),
            ({"managedBy": OUTSIDE}, "Fail"),
            ({"maxShares": 3, "managedBy": NODE, "managedByExtended": [NODE]}, "Pass"),
            ({"maxShares": 3, "managedBy": NODE, "managedByExtended": [NODE, OUTSIDE]}, "Fail"),
            ({"maxShares": 3, "managedBy": NODE, "shareInfo": [{"vmUri": OUTSIDE}]}, "Fail"),
            ({"maxShares": 3}, "Unknown"),
            ({"maxShares": 3, "diskState": None}, "Unknown"),
            ({"maxShares": 3, "diskState": "Unattached"}, "Pass"),
            ({"maxShares": "three", "managedBy": NODE}, "Unknown"),
            ({"managedBy": NODE, "managedByExtended": "all"}, "Unknown"),
        ],
    )
    def test_the_machines_decide(self, properties: dict[str, Any], verdict: str) -> None:
        finding = _disk(**properties).findings("disk-shared")[DISK.lower()]
        assert (finding.verdict.value, finding.severity) == (verdict, Severity.HIGH)

    def test_disks_that_cannot_be_listed_are_unknown(self) -> None:
        azure = served_cluster().refuse(NODE_GROUP, kind="Microsoft.Compute/disks")
        assert verdicts(azure, "disk-shared")[CLUSTER.lower()] == "Unknown"

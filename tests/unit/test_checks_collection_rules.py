"""Data collection rules of the cluster: what agents collect goes to subscriptions of ours only."""

from __future__ import annotations

from typing import Any

import pytest

from tests.audit_estates import CLUSTER, GROUP, SCALE_SET
from tests.audit_services import OTHER_SUBSCRIPTION, FakeServices, served_cluster, verdicts

ASSOCIATIONS = "microsoft.insights/datacollectionruleassociations"
COLLECTION_RULE = f"{GROUP}/providers/Microsoft.Insights/dataCollectionRules/r"
FOREIGN = f"{OTHER_SUBSCRIPTION}/resourceGroups/soc/providers"
WORKSPACE = "Microsoft.OperationalInsights/workspaces/logs"
OUR_SINK = f"{GROUP}/providers/{WORKSPACE}"
FOREIGN_ACCOUNT = f"{FOREIGN}/Microsoft.Storage/storageAccounts/a"
HUB = f"{FOREIGN}/Microsoft.EventHub/namespaces/n/eventhubs/h"


def _collected(rule: dict[str, Any] | None, target: str = CLUSTER, **properties: Any) -> tuple[FakeServices, str]:
    """With a data collection rule (None: one that is not there) that is associated with the cluster or the target."""
    association = f"{target}/providers/Microsoft.Insights/dataCollectionRuleAssociations/a"
    azure = served_cluster()
    azure.put(association, properties or {"dataCollectionRuleId": COLLECTION_RULE})
    azure.lists[target.lower(), ASSOCIATIONS] = [azure.bodies[association.lower()]]
    if rule is not None:
        azure.put(COLLECTION_RULE, rule)
    return azure, association


def _to(kind: str, field: str, resource: str) -> dict[str, Any]:
    return {kind: [{field: resource, "name": "d"}]}


TO_US = _to("logAnalytics", "workspaceResourceId", OUR_SINK)


@pytest.mark.parametrize(
    ("destinations", "verdict"),
    [
        (TO_US, "Pass"),
        (_to("logAnalytics", "WorkspaceResourceID", OUR_SINK.upper()), "Pass"),
        (_to("logAnalytics", "workspaceResourceId", f"{FOREIGN}/{WORKSPACE}"), "Fail"),
        (_to("monitoringAccounts", "accountResourceId", f"{FOREIGN}/Microsoft.Monitor/accounts/m"), "Fail"),
        (_to("eventHubs", "eventHubResourceId", HUB), "Fail"),
        (_to("eventHubsDirect", "eventHubResourceId", HUB), "Fail"),
        (_to("storageAccounts", "storageAccountResourceId", FOREIGN_ACCOUNT), "Fail"),
        (_to("storageBlobsDirect", "storageAccountResourceId", FOREIGN_ACCOUNT), "Fail"),
        (_to("storageTablesDirect", "storageAccountResourceId", FOREIGN_ACCOUNT), "Fail"),
        (_to("azureDataExplorer", "resourceId", f"{FOREIGN}/Microsoft.Kusto/clusters/k"), "Fail"),
        (_to("microsoftFabric", "ingestionUri", "https://abc.kusto.fabric.microsoft.com"), "Fail"),
        ({**TO_US, **_to("eventHubs", "eventHubResourceId", HUB)}, "Fail"),
        ({**TO_US, "azureMonitorMetrics": {"name": "m"}}, "Pass"),
        ({"azureMonitorMetrics": {"name": "m"}}, "Pass"),
        ({**TO_US, "eventHubs": []}, "Pass"),
        ({}, "Pass"),
        ({**TO_US, "aNewKind": [{"name": "x"}]}, "Unknown"),
        ({**TO_US, "eventHubs": [{"name": "x"}]}, "Unknown"),
        ({**TO_US, "eventHubs": ["x"]}, "Unknown"),
        (_to("logAnalytics", "workspaceResourceId", ""), "Unknown"),
        (None, "Unknown"),
        (7, "Unknown"),
    ],
)
def test_every_destination_must_be_ours(destinations: Any, verdict: str) -> None:
    azure, association = _collected({"destinations": destinations})
    assert verdicts(azure, "diag-foreign-sink")[association.lower()] == verdict


def test_a_rule_that_cannot_be_read_is_unknown() -> None:
    azure, association = _collected(None)
    assert verdicts(azure, "diag-foreign-sink")[association.lower()] == "Unknown"


@pytest.mark.parametrize("properties", [{"description": "no rule"}, {"dataCollectionRuleId": 7}])
def test_an_association_that_names_nothing_is_unknown(properties: dict[str, Any]) -> None:
    azure, association = _collected({"destinations": TO_US}, **properties)
    assert verdicts(azure, "diag-foreign-sink")[association.lower()] == "Unknown"


def test_an_endpoint_for_configuration_is_no_sink() -> None:
    azure, association = _collected(None, dataCollectionEndpointId=f"{FOREIGN}/Microsoft.Insights/endpoints/e")
    assert association.lower() not in verdicts(azure, "diag-foreign-sink")


def test_rules_of_the_nodes_count() -> None:
    azure, association = _collected({"destinations": _to("eventHubs", "eventHubResourceId", HUB)}, SCALE_SET)
    assert verdicts(azure, "diag-foreign-sink")[association.lower()] == "Fail"


@pytest.mark.parametrize("target", [CLUSTER, SCALE_SET])
def test_associations_that_cannot_be_listed_are_unknown(target: str) -> None:
    azure = served_cluster().refuse(target, kind="Microsoft.Insights/dataCollectionRuleAssociations", verb="list")
    assert verdicts(azure, "diag-foreign-sink")[CLUSTER.lower()] == "Unknown"

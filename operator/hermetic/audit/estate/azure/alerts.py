"""Alert rules and action groups: which addresses, machines and people Azure Monitor tells what a rule has found.

Shapes: Azure/azure-rest-api-specs, Microsoft.Insights (scheduledQueryRules 2021-08-01, metricAlerts 2018-03-01,
actionGroups 2023-01-01) and Microsoft.AlertsManagement (prometheusRuleGroups 2023-03-01, actionRules 2021-08-08).
"""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import (
    ACTION_GROUPS,
    ALERT_PROCESSING_RULES,
    METRIC_ALERTS,
    PROMETHEUS_RULES,
    QUERY_RULES,
)
from hermetic.audit.estate.resource import Part, Resource, arm
from hermetic.errors import FactDamaged


class AlertRule(Resource):
    """The common part of rules: the resources that a rule is about."""

    scopes: list[str] | None = None

    @property
    def action_group_ids(self) -> tuple[str, ...]:
        """The action groups that are told what the rule finds. Raises FactDamaged where a required list is absent."""
        return ()

    def _unanswered(self, name: str) -> FactDamaged:
        return FactDamaged(f"{self.id}: the answer has no list {name}", resource=self.id, evidence=self.evidence)


class QueryActions(Part):
    """Actions of a log search alert rule."""

    action_groups: list[str] | None = None


@arm("Microsoft.Insights/scheduledQueryRules", QUERY_RULES)
class QueryRule(AlertRule):
    """A log search alert rule: rows of a workspace, with what pods wrote, are in its alerts."""

    actions: QueryActions | None = None

    @property
    def action_group_ids(self) -> tuple[str, ...]:
        return tuple((self.actions.action_groups if self.actions is not None else None) or ())


class MetricAction(Part):
    """An action of a metric alert rule or of a Prometheus rule."""

    action_group_id: str | None = None


@arm("Microsoft.Insights/metricAlerts", METRIC_ALERTS)
class MetricAlert(AlertRule):
    """A metric alert rule: names of pods and containers are dimensions of its alerts."""

    actions: list[MetricAction] | None = None

    @property
    def action_group_ids(self) -> tuple[str, ...]:
        return tuple(action.action_group_id for action in self.actions or () if action.action_group_id)


class PrometheusRule(Part):
    """One rule of a group; a recording rule has no action."""

    actions: list[MetricAction] | None = None


@arm("Microsoft.AlertsManagement/prometheusRuleGroups", PROMETHEUS_RULES)
class PrometheusRules(AlertRule):
    """Rules about an Azure Monitor workspace: labels that pods choose are in its alerts."""

    rules: list[PrometheusRule] | None = None

    @property
    def action_group_ids(self) -> tuple[str, ...]:
        if self.rules is None:
            raise self._unanswered("rules")
        actions = (action for rule in self.rules for action in rule.actions or ())
        return tuple(action.action_group_id for action in actions if action.action_group_id)


class ProcessingAction(Part):
    """AddActionGroups or RemoveAllActionGroups."""

    action_group_ids: list[str] | None = None


@arm("Microsoft.AlertsManagement/actionRules", ALERT_PROCESSING_RULES)
class ProcessingRule(AlertRule):
    """An alert processing rule: it adds action groups to every alert about its scopes."""

    actions: list[ProcessingAction] | None = None

    @property
    def action_group_ids(self) -> tuple[str, ...]:
        if self.actions is None:
            raise self._unanswered("actions")
        return tuple(group for action in self.actions for group in action.action_group_ids or ())


class Receiver(Part):
    """One receiver of any kind; each kind has one of these fields."""

    name: str | None = None
    service_uri: str | None = None
    callback_url: str | None = None
    resource_id: str | None = None
    function_app_resource_id: str | None = None
    automation_account_id: str | None = None
    event_hub_name_space: str | None = None
    subscription_id: str | None = None


@arm("Microsoft.Insights/actionGroups", ACTION_GROUPS)
class ActionGroup(Resource):
    """A disabled group counts: one change enables it."""

    webhook_receivers: list[Receiver] | None = None
    automation_runbook_receivers: list[Receiver] | None = None
    azure_function_receivers: list[Receiver] | None = None
    logic_app_receivers: list[Receiver] | None = None
    event_hub_receivers: list[Receiver] | None = None
    itsm_receivers: list[Receiver] | None = None
    email_receivers: list[Receiver] | None = None
    sms_receivers: list[Receiver] | None = None
    voice_receivers: list[Receiver] | None = None
    azure_app_push_receivers: list[Receiver] | None = None
    arm_role_receivers: list[Receiver] | None = None

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The lists that the answer leaves out. Azure answers each of them, also where it is empty.

        Source: exported templates of action groups with api-version 2023-01-01.
        """
        return tuple(name for name, attribute in RECEIVERS.items() if getattr(self, attribute) is None)

    def receivers(self, name: str) -> list[Receiver]:
        """The receivers of one list, in the order of the answer."""
        return getattr(self, RECEIVERS[name]) or []


RECEIVERS = {
    "webhookReceivers": "webhook_receivers",
    "automationRunbookReceivers": "automation_runbook_receivers",
    "azureFunctionReceivers": "azure_function_receivers",
    "logicAppReceivers": "logic_app_receivers",
    "eventHubReceivers": "event_hub_receivers",
    "itsmReceivers": "itsm_receivers",
    "emailReceivers": "email_receivers",
    "smsReceivers": "sms_receivers",
    "voiceReceivers": "voice_receivers",
    "azureAppPushReceivers": "azure_app_push_receivers",
    "armRoleReceivers": "arm_role_receivers",
}
"""The fields of the lists, by the name that each has in the answer."""

"""What only previews of the registry's API show: judged where they are answered, Unknown where they are not."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.audit.estate.questions import Answer, Problem, Question, UnreadReason
from hermetic.audit.model.findings import Verdict
from tests.audit_services import REGISTRY, FakeServices, only, served_cluster, verdicts

IDS = ("acr-writable-cache", "acr-endpoints", "acr-pipelines", "acr-tasks")
TASK, POOL, PIPELINE = f"{REGISTRY}/tasks/build", f"{REGISTRY}/agentPools/builders", f"{REGISTRY}/exportPipelines/out"


class WithoutPreviews(FakeServices):
    """A cloud that refuses every preview version."""

    def answer(self, question: Question) -> Answer:
        if question.api_version.endswith("-preview") and "containerregistry" in question.kind.lower():
            message = f"{question.kind}: 400 NoRegisteredProviderFound"
            return Answer(problem=Problem(UnreadReason.REFUSED, message))
        return super().answer(question)


def without_previews() -> FakeServices:
    azure = WithoutPreviews()
    plain = served_cluster()
    azure.bodies, azure.actions, azure.lists, azure.pages = plain.bodies, plain.actions, plain.lists, plain.pages
    return azure


@pytest.mark.parametrize("check", IDS)
def test_a_registry_with_all_of_it_off_passes(check: str) -> None:
    finding = only(served_cluster(), check)
    assert (finding.verdict, finding.resource) == (Verdict.PASS, REGISTRY)
    assert finding.evidence


@pytest.mark.parametrize("check", ["acr-writable-cache", "acr-endpoints", "acr-tasks"])
def test_a_cloud_that_refuses_the_preview_is_unknown_and_does_not_decide(check: str) -> None:
    finding = only(without_previews(), check)
    assert (finding.verdict, finding.reason, finding.severity) == (Verdict.UNKNOWN, "Refused", "medium")


def test_the_stable_look_at_the_same_registry_goes_on_without_the_preview() -> None:
    assert verdicts(without_previews(), "acr-public") == {REGISTRY.lower(): "Pass"}


@pytest.mark.parametrize(
    ("check", "properties", "verdict"),
    [
        ("acr-writable-cache", {"writableCacheRepos": "Enabled"}, "Fail"),
        ("acr-writable-cache", {"writableCacheRepos": "ENABLED"}, "Fail"),
        # never set: specification/containerregistry, Registry.models.tsp, declares opt-in features
        ("acr-writable-cache", {"writableCacheRepos": None}, "Pass"),
        ("acr-writable-cache", {"writableCacheRepos": ""}, "Unknown"),
        ("acr-writable-cache", {"writableCacheRepos": "Sometimes"}, "Unknown"),
        ("acr-writable-cache", {"writableCacheRepos": True}, "Unknown"),
        ("acr-endpoints", {"regionalEndpoints": "Enabled"}, "Fail"),
        ("acr-endpoints", {"endpointProtocol": "IPv4AndIPv6"}, "Fail"),
        ("acr-endpoints", {"endpointProtocol": "ipv4andipv6", "regionalEndpoints": None}, "Fail"),
        ("acr-endpoints", {"endpointProtocol": None}, "Pass"),
        ("acr-endpoints", {"regionalEndpoints": None}, "Pass"),
        ("acr-endpoints", {"endpointProtocol": None, "regionalEndpoints": None}, "Pass"),
        ("acr-endpoints", {"endpointProtocol": "", "regionalEndpoints": None}, "Unknown"),
        ("acr-endpoints", {"endpointProtocol": "IPv6"}, "Unknown"),
        ("acr-endpoints", {"regionalEndpoints": 1}, "Unknown"),
    ],
)
def test_each_switch_is_read_strictly(check: str, properties: dict[str, Any], verdict: str) -> None:
    finding = only(served_cluster().change(REGISTRY, **properties), check)
    assert (finding.verdict, finding.severity) == (verdict, "medium")


class TestTasks:
    @pytest.mark.parametrize(
        ("child", "properties"),
        [
            (TASK, {"status": "Enabled"}),
            (TASK, {}),
            (TASK, {"status": "Odd"}),
            (POOL, {}),
            (POOL, {"virtualNetworkSubnetResourceId": "/subscriptions/s/subnets/a"}),
        ],
    )
    def test_whatever_may_run_is_found_and_named(self, child: str, properties: dict[str, Any]) -> None:
        finding = only(served_cluster().put(child, properties), "acr-tasks")
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, "medium")
        assert child.rpartition("/")[2] in finding.message
        assert f"az resource delete --ids {child}" in finding.remedy

    def test_a_disabled_task_does_not_run(self) -> None:
        assert only(served_cluster().put(TASK, {"status": "Disabled"}), "acr-tasks").verdict is Verdict.PASS

    @pytest.mark.parametrize("kind", ["tasks", "agentPools"])
    def test_a_list_that_is_not_whole_is_never_a_pass(self, kind: str) -> None:
        azure = served_cluster()
        azure.refuse(REGISTRY, kind=f"Microsoft.ContainerRegistry/registries/{kind}", verb="list")
        assert only(azure, "acr-tasks").verdict is Verdict.UNKNOWN

    @pytest.mark.parametrize(("tier", "verdict"), [("Basic", "Pass"), ("Premium", "Unknown"), ("", "Unknown")])
    def test_only_the_tier_premium_has_agent_pools(self, tier: str, verdict: str) -> None:
        azure = served_cluster()
        azure.bodies[REGISTRY.lower()]["sku"] = {"name": tier}
        azure.refuse(REGISTRY, kind="Microsoft.ContainerRegistry/registries/agentPools", verb="list")
        assert only(azure, "acr-tasks").verdict == verdict


class TestPipelines:
    def test_an_export_pipeline_is_found_whatever_the_export_policy_says(self) -> None:
        pipeline = {"target": {"uri": "https://far.blob.core.windows.net/x"}}
        finding = only(served_cluster().put(PIPELINE, pipeline), "acr-pipelines")
        assert (finding.verdict, finding.severity) == (Verdict.FAIL, "medium")
        assert "https://far.blob.core.windows.net/x" in finding.message

    def test_a_pipeline_that_does_not_say_where_it_writes_is_one_all_the_same(self) -> None:
        assert only(served_cluster().put(PIPELINE, {}), "acr-pipelines").verdict is Verdict.FAIL

    @pytest.mark.parametrize(
        ("policies", "verdict"),
        [
            ({"exportPolicy": {"status": "disabled"}}, "Pass"),
            ({"exportPolicy": {"status": "enabled"}}, "Unknown"),
            ({"exportPolicy": {}}, "Unknown"),
            (None, "Unknown"),
        ],
    )
    def test_without_the_list_only_a_disabled_export_shows_that_there_is_none(
        self, policies: dict[str, Any] | None, verdict: str
    ) -> None:
        finding = only(without_previews().change(REGISTRY, policies=policies), "acr-pipelines")
        assert (finding.verdict, finding.resource) == (verdict, REGISTRY)

    def test_a_lesser_tier_has_none(self) -> None:
        azure = served_cluster()
        azure.bodies[REGISTRY.lower()]["sku"] = {"name": "Standard"}
        assert only(azure, "acr-pipelines").verdict is Verdict.NOT_APPLICABLE

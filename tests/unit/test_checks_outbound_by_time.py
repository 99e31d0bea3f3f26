"""nic-default-outbound where Azure shows nothing: decided by the dates of the machine and of its subnet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.audit.estate.questions import UnreadReason
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.remedies.placeholders import CHOSEN
from tests.audit_estates import (
    API_SERVER,
    CLUSTER,
    GROUP,
    NETWORK,
    NIC,
    NODE_GROUP,
    NODES,
    SCALE_SET,
    SENTINEL,
    FakeAzure,
    ip_configuration,
    route,
    small_cluster,
)

INSTANCE = f"{SCALE_SET}/virtualMachines/0"
INSTANCES = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
PRIVATE, LATER = "2026-07-01T08:00:00Z", "2026-07-02T08:00:00.1234567+00:00"
AUDITED = datetime(2026, 9, 1, 12, tzinfo=UTC)


def stated(since: str = PRIVATE, subnet: str = NODES) -> Policy:
    statement = {"subnet": subnet, "since": since, "statedBy": "platform-team@contoso.example"}
    return Policy.model_validate({"subnetsPrivateSince": [statement], "auditedAt": AUDITED})


def silent(created: str | None = LATER) -> FakeAzure:
    """A sealed cluster of which Azure shows no property, with a machine of this date."""
    azure = small_cluster().drop(NIC, "defaultOutboundConnectivityEnabled")
    return azure.put(INSTANCE, {"instanceId": "0", **({"timeCreated": created} if created is not None else {})})


def judged(azure: FakeAzure, policy: Policy | None = None, nic: str = NIC) -> Finding:
    return azure.findings("nic-default-outbound", policy)[nic.lower()]


def test_a_machine_created_after_the_stated_moment_passes_and_shows_both_dates() -> None:
    finding = judged(silent(), stated())
    assert (finding.verdict, finding.reason) == (Verdict.PASS, "CreatedInPrivateSubnet")
    assert "2026-07-02T08:00:00Z" in finding.message
    assert f"since {PRIVATE}, stated by platform-team@contoso.example" in finding.message
    assert "not a measurement" in finding.message
    requests = [evidence.request for evidence in finding.evidence]
    assert f"list {SCALE_SET}?api-version=2025-04-01" in requests
    assert f"get {NODES}?api-version=2025-05-01" in requests
    assert any(
        request.startswith("policy subnetsPrivateSince") and "platform-team@contoso.example" in request
        for request in requests
    )


@pytest.mark.parametrize(
    ("created", "reason"),
    [
        ("2026-06-30T23:59:59+00:00", "MachineOlder"),
        ("2026-07-01T08:00:00+00:00", "MachineOlder"),
        ("2026-07-01T08:00:00.0000009+00:00", "MachineOlder"),  # less than the microsecond that is compared
        ("2026-07-01T10:00:00+02:00", "MachineOlder"),
        ("2026-07-01T09:59:59+02:00", "MachineOlder"),
        (None, "CreationNotSeen"),
        ("2026-07-02T08:00:00", "Unreadable"),
        ("2026-07-02", "Unreadable"),
        ("yesterday", "Unreadable"),
        ("", "Unreadable"),
        ("9999-12-31T23:59:59.9999999-23:59", "Unreadable"),
        ("2026-07-02T08:00:00 +00:00", "Unreadable"),
        ("2026-07-02T08:00:00+0000", "Unreadable"),
        ("2026-02-30T08:00:00Z", "Unreadable"),
        ("2026-07-02T25:00:00Z", "Unreadable"),
        ("20260702T080000Z", "Unreadable"),
        ("1783065600", "Unreadable"),
        ("0001-01-01T00:00:00Z", "MachineOlder"),
        ("2026-09-01T12:00:00.000001Z", "CreationInFuture"),
        ("2026-09-01T14:00:01+02:00", "CreationInFuture"),
        ("2026-09-01T11:59:59-00:01", "CreationInFuture"),
        ("2126-07-02T08:00:00Z", "CreationInFuture"),
        ("9999-12-31T23:59:59Z", "CreationInFuture"),
    ],
)
def test_an_older_machine_or_one_without_a_date_is_unknown(created: str | None, reason: str) -> None:
    finding = judged(silent(created), stated())
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, reason)
    assert finding.severity.decides


@pytest.mark.parametrize(
    "created", ["2026-09-01T12:00:00Z", "2026-09-01T14:00:00+02:00", "2026-09-01T11:59:59.9999999Z"]
)
def test_a_machine_created_up_to_the_begin_of_the_audit_passes(created: str) -> None:
    assert judged(silent(created), stated()).verdict is Verdict.PASS


def test_an_audit_that_does_not_know_its_time_proves_nothing_by_dates() -> None:
    finding = judged(silent(), stated().model_copy(update={"audited_at": None}))
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "CreationInFuture")


@pytest.mark.parametrize("created", [1783065600, True, [LATER], {"at": LATER}])
def test_a_date_that_is_no_text_is_unreadable(created: Any) -> None:
    finding = judged(silent(created), stated())
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "Unreadable")


def test_a_date_in_the_future_says_so_and_does_not_advise_to_replace_the_machine() -> None:
    finding = judged(silent("2126-07-02T08:00:00Z"), stated())
    assert finding.severity is Severity.HIGH
    assert "2126-07-02T08:00:00Z" in finding.message
    assert "2026-09-01T12:00:00Z" in finding.message
    assert "nodepool" not in finding.remedy


OF_THE_CLUSTER = f"--subscription {CLUSTER.split('/')[2]} --resource-group ai --cluster-name ai"


def test_unknown_names_the_order_that_settles_it_with_its_names_filled_in() -> None:
    azure = silent("2026-06-01T00:00:00+00:00")
    azure.bodies[SCALE_SET.lower()]["tags"] = {"aks-managed-poolName": "gpu"}
    finding = judged(azure, stated())
    assert finding.severity is Severity.HIGH
    lines = finding.remedy.splitlines()
    assert f"az aks nodepool add {OF_THE_CLUSTER} --name NEW_POOL --vnet-subnet-id {NODES}" in lines
    assert f"az aks nodepool delete {OF_THE_CLUSTER} --name gpu" in lines
    assert f"hermetic audit --azure {CLUSTER} --policy policy.yaml" in lines


def test_where_the_pool_is_not_known_the_remedy_lists_the_pools_and_leaves_it_to_be_chosen() -> None:
    azure = silent("2026-06-01T00:00:00+00:00")
    assert "tags" not in azure.bodies[SCALE_SET.lower()]
    remedy = judged(azure, stated()).remedy
    assert "POOL_NAME" not in remedy
    assert f"az aks nodepool list {OF_THE_CLUSTER}" in remedy
    assert f"az aks nodepool delete {OF_THE_CLUSTER} --name OLD_POOL" in remedy.splitlines()
    assert "OLD_POOL" in CHOSEN


def test_without_a_moment_it_is_unknown_and_says_how_to_state_one() -> None:
    finding = judged(silent())
    assert (finding.verdict, finding.severity, finding.reason) == (
        Verdict.UNKNOWN,
        Severity.HIGH,
        "PrivateSinceUnknown",
    )
    assert "subnetsPrivateSince" in finding.remedy
    assert f"--resource-id {NODES}" in finding.remedy


def test_a_statement_about_another_subnet_changes_nothing() -> None:
    assert judged(silent(), stated(subnet=API_SERVER)).reason == "PrivateSinceUnknown"


def test_letters_of_another_case_are_the_same_subnet() -> None:
    assert judged(silent(), stated(subnet=NODES.upper())).verdict is Verdict.PASS


@pytest.mark.parametrize("access", [None, True])
def test_a_subnet_that_is_not_private_now_decides_nothing(access: bool | None) -> None:
    finding = judged(silent().change(NODES, defaultOutboundAccess=access), stated())
    assert (finding.verdict, finding.reason) == (Verdict.UNKNOWN, "NotTold")


def test_every_subnet_of_the_interface_must_be_private() -> None:
    azure = silent()
    side = NODES.replace("/nodes", "/side")
    azure.put(side, {"addressPrefix": "10.0.7.0/24", "defaultOutboundAccess": False})
    azure.properties(NIC)["ipConfigurations"].append(ip_configuration("10.0.7.4", side))
    assert judged(azure, stated()).reason == "PrivateSinceUnknown"
    both = [{"subnet": subnet, "since": PRIVATE, "statedBy": "p"} for subnet in (NODES, side)]
    assert (
        judged(azure, Policy.model_validate({"subnetsPrivateSince": both, "auditedAt": AUDITED})).verdict
        is Verdict.PASS
    )
    both[1]["since"] = "2026-07-03T00:00:00Z"
    assert (
        judged(azure, Policy.model_validate({"subnetsPrivateSince": both, "auditedAt": AUDITED})).reason
        == "MachineOlder"
    )


def test_an_interface_that_says_true_fails_whatever_the_dates() -> None:
    azure = silent().change(NIC, defaultOutboundConnectivityEnabled=True)
    assert judged(azure, stated()).verdict is Verdict.FAIL


@pytest.mark.parametrize("reason", [UnreadReason.FORBIDDEN, UnreadReason.TRUNCATED, UnreadReason.UNAVAILABLE])
def test_instances_that_were_not_listed_leave_it_unknown(reason: UnreadReason) -> None:
    azure = silent().drop(INSTANCE).refuse(SCALE_SET, reason, kind=INSTANCES)
    assert judged(azure, stated()).verdict is Verdict.UNKNOWN


def test_an_instance_that_the_list_lacks_leaves_it_unknown() -> None:
    assert judged(silent().drop(INSTANCE), stated()).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("group", "verdict"), [(NODE_GROUP, Verdict.PASS), (GROUP, Verdict.UNKNOWN)])
def test_only_machines_of_the_node_resource_group_are_decided_by_their_date(group: str, verdict: Verdict) -> None:
    machine = f"{group}/providers/Microsoft.Compute/virtualMachines/alone"
    nic = SENTINEL.replace(GROUP, group)
    azure = silent().put(machine, {"timeCreated": LATER})
    addresses = [ip_configuration("10.0.1.9", NODES)]
    azure.put(nic, {"ipConfigurations": addresses, "virtualMachine": {"id": machine}})
    assert judged(azure, stated(), nic).verdict is verdict


def test_a_name_that_looks_like_a_placeholder_stays_text() -> None:
    route_table = f"{NETWORK}/routeTables/{{0}}{{x}}%s"
    azure = silent().put(route_table, {"routes": [route("v4", "0.0.0.0/0", "None")]})
    finding = judged(azure.change(NODES, routeTable={"id": route_table}), stated())
    assert "{0}{x}%s" in finding.message


def test_what_only_reads_or_is_elsewhere_is_not_said_to_be_refused_in_the_node_group() -> None:
    for azure in (silent(), silent().change(NODES, defaultOutboundAccess=None)):
        assert "which AKS manages" not in judged(azure).remedy


BAD: list[tuple[dict[str, Any], str]] = [
    ({"since": "2026-07-01T08:00:00"}, "zone"),
    ({"since": "2026-07-01"}, "zone"),
    ({"since": datetime(2026, 7, 1)}, "zone"),  # noqa: DTZ001 - a time without a zone is what is refused
    ({"since": 1782900000}, "zone"),
    ({"since": "2026-02-30T08:00:00Z"}, "zone"),
    ({"since": None}, "zone"),
    ({"subnet": f"{NODES}*"}, "pattern"),
    ({"subnet": NODES.replace("nodes", "*")}, "pattern"),
    ({"subnet": NODES.replace("nodes", "[a-z]")}, "pattern"),
    ({"subnet": NODES.rpartition("/subnets")[0]}, "not the ARM id of a subnet"),
    ({"subnet": "nodes"}, "not the ARM id of a subnet"),
    ({"subnet": f"{NODES}/x/y"}, "not the ARM id of a subnet"),
    ({"subnet": NODES.replace("/nodes", "//nodes")}, "not the ARM id of a subnet"),
    ({"statedBy": "  "}, "printable"),
    ({"statedBy": "a\x1b[31mb"}, "printable"),
    ({"statedBy": "x" * 300}, "printable"),
    ({"until": "2026-07-01T08:00:00Z"}, "until"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[f"{number}" for number in range(len(BAD))])
def test_a_bad_statement_is_refused(change: dict[str, Any], message: str) -> None:
    good = {"subnet": NODES, "since": PRIVATE, "statedBy": "platform-team@contoso.example"}
    Policy.model_validate({"subnetsPrivateSince": [good]})
    with pytest.raises(ValidationError, match=message):
        Policy.model_validate({"subnetsPrivateSince": [{**good, **change}]})


def test_two_statements_about_one_subnet_are_refused() -> None:
    good = {"subnet": NODES, "since": PRIVATE, "statedBy": "a"}
    with pytest.raises(ValidationError, match="named 2 times"):
        Policy.model_validate({"subnetsPrivateSince": [good, {**good, "subnet": NODES.replace("nodes", "NODES")}]})


def test_a_moment_in_another_zone_is_the_same_moment() -> None:
    [statement] = stated("2026-07-01T10:00:00+02:00").subnets_private_since
    assert statement.since == datetime(2026, 7, 1, 8, tzinfo=UTC)

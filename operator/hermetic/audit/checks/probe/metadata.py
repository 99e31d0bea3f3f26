"""What Azure's instance metadata service reports about the machines, and their own routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hermetic.api.ip_ranges import is_address, is_public
from hermetic.audit.checks.family import check
from hermetic.audit.checks.probe.vantages import Doubt, OpenPath, on_each_machine, start_of
from hermetic.audit.cluster.members import node_group_of, scale_sets_of
from hermetic.audit.estate.arm_ids import name_of, subscription_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.probe.runs import ProbeRun, RunMetadata
from hermetic.audit.evaluation.results import CheckResult
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy

NOT_FOUND = 404
NO_BALANCER = "NoLoadBalancer"
SHOWN = 4
"""Addresses that the probe reports at most."""


@check("imds-lb")
def imds_lb(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """The load balancer document exists only behind a Standard load balancer; its absence proves nothing.

    Its `publicIpAddresses` holds public and private addresses of the instance, and a frontend may be empty.
    """

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        contents = _document(run, "loadbalancer").content
        if isinstance(contents, Mapping):
            for address in filter(is_public, _addresses(contents)):
                yield OpenPath(
                    f"{run.node} has the public address {address}",
                    path_of(*start_of(run), hops.load_balancer(f"load balancer {address}")),
                )
            if contents.get("outboundRules"):
                message = f"{run.node} is behind {contents['outboundRules']} outbound rules"
                yield OpenPath(
                    message, path_of(*start_of(run), hops.load_balancer("load balancer outbound rule"), INTERNET)
                )

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        document = _document(run, "loadbalancer")
        if document.status == NOT_FOUND:
            message = f"{run.node} is behind no Standard load balancer that Azure reports: nothing follows from that"
            yield Doubt(NO_BALANCER, message, "Nothing: load balancers are evaluated from what Azure lists.")
        else:
            yield from _doubts_of_addresses(run, document)

    for result in on_each_machine(
        estate, "PublicLoadBalancer", open_paths, doubts, "no public address and no outbound rule"
    ):
        # Medium: a missing document must not block a cluster that has no load balancer.
        yield replace(result, severity=Severity.MEDIUM) if result.reason == NO_BALANCER else result


def _doubts_of_addresses(run: ProbeRun, document: RunMetadata) -> Iterator[Doubt]:
    if not (isinstance(document.content, Mapping) and document.content.keys() >= {"public", "outboundRules"}):
        yield _unread(run, document)
    elif unclear := [address for address in _addresses(document.content) if address and not is_address(address)]:
        message = f"load balancer addresses of {run.node} that are malformed: {', '.join(map(repr, unclear))}"
        yield Doubt("AddressUnclear", message)
    elif len(_addresses(document.content)) >= SHOWN and "more" not in document.content:
        message = f"{run.node} has more load balancer addresses than an older probe reports"
        yield Doubt("AddressesCut", message, "Probe again with this release.")


def _addresses(contents: Mapping[str, Any]) -> list[str]:
    """The addresses of the document, as text; anything but a list counts as one unclear address."""
    listed = contents.get("public")
    return [str(address) for address in listed] if isinstance(listed, list) else [str(listed)]


@check("imds-nic-pip")
def imds_nic_pip(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """Public addresses on the interfaces themselves; those of a Standard SKU appear only with the load balancer."""

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        contents = _document(run, "network").content
        for address in contents if isinstance(contents, list) else ():
            yield OpenPath(
                f"{run.node} has the public address {address}",
                path_of(*start_of(run), Hop(PlaceKind.PUBLIC_IP, f"public ip {address}"), INTERNET),
            )

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        document = _document(run, "network")
        if not isinstance(document.content, list):
            yield _unread(run, document)

    return on_each_machine(estate, "PublicAddress", open_paths, doubts, "no interface has a public address")


@check("imds-identity")
def imds_identity(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """The machines belong to the cluster, which the evidence from outside is about."""
    expected = _expected(estate)

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        contents = _document(run, "compute").content
        for key, allowed in expected.items():
            reported = str(contents.get(key) or "") if isinstance(contents, Mapping) else ""
            if reported and reported.lower() not in {value.lower() for value in allowed}:
                yield OpenPath(f"{run.node} reports {key} {reported}, the cluster has {', '.join(sorted(allowed))}")

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        document = _document(run, "compute")
        if not isinstance(document.content, Mapping) or not document.content.get("subscriptionId"):
            yield _unread(run, document)
        if not expected:
            yield Doubt("ClusterUnknown", "the ARM id of the cluster is not known", "Name the cluster by its ARM id.")

    return on_each_machine(estate, "OtherMachine", open_paths, doubts, "the machines belong to the cluster")


def _expected(estate: Estate) -> dict[str, frozenset[str]]:
    """Metadata values that a machine of this cluster must have, as far as they are known here."""
    expected = {"subscriptionId": frozenset({subscription_of(estate.cluster)} - {""})}
    if "azure" in estate.sources:
        sets: Listing[Any] = scale_sets_of(estate)
        expected["resourceGroupName"] = frozenset({name_of(node_group_of(estate))} - {""})
        expected["vmScaleSetName"] = (
            frozenset(name_of(scale_set.id) for scale_set in sets) if not sets.problem else frozenset()
        )
    return {key: allowed for key, allowed in expected.items() if allowed}


def _document(run: ProbeRun, document_name: str) -> RunMetadata:
    return run.report.metadata.get(document_name, RunMetadata())


def _unread(run: ProbeRun, document: RunMetadata) -> Doubt:
    outcome = f"HTTP {document.status}" if document.status else "no answer"
    return Doubt("MetadataUnread", f"the metadata service gave {run.node} nothing that can be read ({outcome})")


@check("node-routes")
def node_routes(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """Azure gives every machine an IPv4 default route, sealed or not; an IPv6 default route was configured."""

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        for route in run.report.v6_defaults or ():
            yield OpenPath(
                f"{run.node} has an IPv6 default route by {route}",
                path_of(*start_of(run), route, Hop(PlaceKind.INTERNET, "::/0")),
            )

    return on_each_machine(estate, "V6DefaultRoute", open_paths, _routes_unknown, "no IPv6 default route")


@check("node-v6-default-route")
def node_v6_default_route(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """An IPv6 default route leads out once the machine has an IPv6 address."""

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        addresses = run.report.v6_addresses
        for route in run.report.v6_defaults or ():
            if addresses:
                message = f"{run.node} has the address {addresses[0]} and an IPv6 default route by {route}"
                yield OpenPath(message, path_of(*start_of(run), route, Hop(PlaceKind.INTERNET, "::/0")))

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        yield from _routes_unknown(run)
        if run.report.v6_addresses is None:
            yield Doubt("AddressesUnknown", f"the IPv6 addresses of {run.node} could not be read")
        elif run.report.v6_defaults:
            message = f"{run.node} has an IPv6 default route, and no address to use it with yet"
            yield Doubt("RouteWithoutAddress", message)

    return on_each_machine(
        estate, "V6DefaultRoute", open_paths, doubts, "no IPv6 default route with an address to use it"
    )


def _routes_unknown(run: ProbeRun) -> Iterator[Doubt]:
    if run.report.v6_defaults is None:
        yield Doubt("RoutesUnknown", f"the IPv6 routes of {run.node} could not be read")

"""Resolvers: which ones are used, and whether a query leaves the network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.api.ip_ranges import is_public
from hermetic.audit.checks.family import check
from hermetic.audit.checks.probe.vantages import (
    BOTH,
    Doubt,
    OpenPath,
    ProbePlace,
    each_place,
    on_each_machine,
    start_of,
    weigh,
)
from hermetic.audit.cluster.members import cluster_of, pools_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.observation import Observation
from hermetic.audit.estate.probe.dns import DnsReading, DnsReply
from hermetic.audit.estate.probe.runs import ProbeRun, resolved_within_the_cluster
from hermetic.audit.evaluation.results import CheckResult
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

AZURE_DNS = "168.63.129.16"
REWRITES = "Let the resolver refuse public names, or deny them (REFUSED or NXDOMAIN), instead of rewriting answers."
LOCAL_DNS = frozenset({"169.254.10.10", "169.254.10.11"})
"""Addresses of the LocalDNS proxy on the node itself (AKS, localdns-custom.md)."""


@check("dns-recursion")
def dns_recursion(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """No resolver may pass a query on to public name servers, since names can carry data."""

    def evaluate(probe_place: ProbePlace) -> Iterator[CheckResult]:
        yield weigh(
            probe_place,
            BOTH,
            reason="ResolverRecurses",
            find_open_paths=_recursions,
            doubts=_doubts,
            silence="no resolver brought an answer from outside",
        )

    return each_place(estate, evaluate)


def _sinkhole_addresses(run: ProbeRun) -> dict[str, frozenset[str]]:
    """By resolver the public addresses with which it answers both a name that exists and one that does not."""
    by_server: dict[str, list[DnsReply]] = {}
    for reply in run.report.dns:
        by_server.setdefault(reply.server, []).append(reply)
    return {
        server: frozenset(replies[0].contents)
        for server, replies in by_server.items()
        if len(replies) > 1
        and all(reply.reading is DnsReading.PUBLIC_ADDRESS for reply in replies)
        and len({frozenset(reply.contents) for reply in replies}) == 1
    }


def _recursions(run: ProbeRun) -> Iterator[OpenPath]:
    sinkholes = _sinkhole_addresses(run)
    sunk = frozenset(address for addresses in sinkholes.values() for address in addresses)
    for reply in run.report.dns:
        if reply.reading.went_out and reply.server not in sinkholes:
            message = f"{reply.server} {reply.reading} when asked for a public name"
            yield OpenPath(
                message, path_of(*start_of(run), hops.dns(f"resolver {reply.server}"), hops.dns("public name servers"))
            )
    for name in run.report.names:
        if name.resolved.reading is DnsReading.PUBLIC_ADDRESS and not set(name.resolved.contents) <= sunk:
            message = f"{name.target.address} resolves to {_shown(name.resolved)}"
            yield OpenPath(message, path_of(*start_of(run), hops.dns("resolver"), hops.dns("public name servers")))


def _shown(resolved: DnsReply) -> str:
    return ", ".join(address for address in resolved.contents if is_public(address))


def _doubts(run: ProbeRun) -> Iterator[Doubt]:
    report = run.report
    for server in _sinkhole_addresses(run):
        message = f"{server} answers every name with the same address, which does not show whether it asks outside"
        yield Doubt("ResolverRewrites", message, REWRITES)
    for reply in report.dns:
        if reply.reading is DnsReading.PRIVATE_ADDRESS:
            message = f"{reply.server} answers a public name with {', '.join(reply.contents)}: it rewrites answers"
            yield Doubt("ResolverRewrites", message, REWRITES)
    for resolution in (*report.dns, *(name.resolved for name in report.names)):
        if resolution.reading is DnsReading.UNCLEAR:
            yield Doubt("UnclearAnswer", f"{resolution.server}: {resolution.raw!r} does not show where it comes from")
    if not report.nameservers:
        yield Doubt("ResolversUnknown", f"the resolvers of the pod on {run.node} could not be read")
    if AZURE_DNS not in {reply.server for reply in report.dns}:
        yield Doubt("AzureDnsNotAsked", f"{AZURE_DNS} was not asked", "Keep it among the resolvers of the probe.")
    if not run.host_network and not resolved_within_the_cluster(report):
        message = f"on {run.node} no resolver answered the name of a Service either: DNS was down, and nothing follows"
        yield Doubt("ResolverSilent", message)


@check("node-resolv")
def node_resolv(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """The machines' resolvers are those that the policy allows, and the node's own LocalDNS."""
    allowed = {AZURE_DNS, *policy.allowed_dns_servers}

    def not_allowed(run: ProbeRun) -> Iterator[str]:
        local = LOCAL_DNS if local_dns(estate, run) is not None else frozenset()
        yield from (server for server in run.report.nameservers or () if server not in allowed | local)

    def open_paths(run: ProbeRun) -> Iterator[OpenPath]:
        for server in not_allowed(run):
            yield OpenPath(
                f"{run.node} asks {server}, which is not allowed",
                path_of(*start_of(run), hops.dns(f"resolver {server}")),
            )

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        if not run.report.nameservers:
            yield Doubt("ResolversUnknown", f"the resolvers of {run.node} could not be read")

    for result in on_each_machine(estate, "ResolverNotAllowed", open_paths, doubts, "all resolvers are allowed"):
        runs = [observation for observation in result.observations if isinstance(observation, ProbeRun)]
        servers = [server for run in runs for server in not_allowed(run)]
        worse = result.reason == "ResolverNotAllowed" and any(map(is_public, servers))
        using = (local_dns(estate, run) for run in runs if LOCAL_DNS & set(run.report.nameservers or ()))
        observations = (*result.observations, *(observation for observation in using if observation is not None))
        yield replace(result, observations=observations, severity=Severity.HIGH if worse else result.severity)


LABEL = "kubernetes.azure.com/localdns-state"


def local_dns(estate: Estate, run: ProbeRun) -> Observation | None:
    """The observation that shows it on: the node's label, or the pool's localDNSProfile. None without one."""
    if "kube" in estate.sources:
        nodes = estate.every(Node, EVERYWHERE)
        of_node = next((node for node in nodes if node.metadata.name == run.node), None)
        if of_node is not None and of_node.labels.get(LABEL) == "enabled":
            return of_node
    if "azure" in estate.sources:
        pool = next((pool for pool in pools_of(estate) if pool.name == run.pool), None)
        try:
            profile = pool.local_dns_profile if pool is not None else None
            if profile is not None and (profile.state or "").lower() == "enabled":
                return cluster_of(estate)
        except FactDamaged:
            return None
    return None

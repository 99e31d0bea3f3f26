"""Calls that must fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hermetic.api.ip_ranges import is_address, is_public
from hermetic.audit.checks.family import check
from hermetic.audit.checks.probe.vantages import BOTH, POD, Doubt, OpenPath, ProbePlace, each_place, start_of, weigh
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.probe.address_owners import owner_of
from hermetic.audit.estate.probe.readings import Reading, Reply
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.probe.situations import situation
from hermetic.audit.evaluation.results import CheckResult, fails
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy

NETWORKS = 3
"""With fewer public IPv4 addresses, all of them may be blocked or down by chance."""
REFUSED_REMEDY = (
    "Let the firewall drop these calls instead of refusing them. A port of `tcpPorts` or `udpPorts` can also be "
    "removed from `spec.probe.targets` of the EgressAudit; the ports that each round adds change by themselves."
)
WITHOUT_UDP = "take the port out of `spec.probe.targets.udpPorts` of the EgressAudit."
NTP_PORT = 123
PROXY_REMEDY = (
    "Close the port of the proxy to the cluster's subnets with a security rule, or let the proxy answer 403 to them."
)
OTHER_ADDRESSES = (
    "Name addresses of several owners and kinds in `spec.probe.targets.publicAddresses` of the EgressAudit, or remove "
    "the list: the default one has several."
)
NOT_SEEN = {
    "public": "A path that is slower, or open for other addresses, ports or protocols alone is not seen.",
    "proxy": "A proxy that is slower, at another address, or tunnels to other names alone is not seen.",
}
"""By role of the target the limit of a Pass."""
# learn.microsoft.com/azure/firewall/rule-processing: network rules come before application rules, and a match ends it.
TAKEN = (
    "Deny the called addresses with a network rule of the firewall, which it evaluates before application rules. "
    "Where it cannot, accept this finding with an exception."
)


@check("probe-internet")
def probe_internet(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """No address, port or protocol on the internet may answer."""

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        called = {reply.target.address for reply in run.report.called("public")}
        if sum(":" not in address and is_public(address) for address in called) < NETWORKS:
            message = f"fewer than {NETWORKS} public IPv4 addresses were called"
            yield Doubt("TooFewTargets", message, "Name at least three public IPv4 addresses in different networks.")
        for name in run.report.names:
            if name.target.role == "public" and name.call is None and name.resolved.found_something:
                message = f"{name.target.address} was found on {run.node} ({name.resolved.raw}), and was not called"
                yield Doubt(
                    "NameNotCalled", message, "Let the probe run again; see which servers the cluster's resolver asks."
                )

    yield from each_place(estate, partial(_results, policy, "public", doubts))
    yield from _alike_addresses(estate)


def _alike_addresses(estate: Estate) -> Iterator[CheckResult]:
    """A warning where all called addresses have one owner or one kind, so that one rule may block them together."""
    runs = estate.every(ProbeRun, estate.cluster)
    addresses = {reply.target.address for run in runs for reply in run.report.replies if reply.target.role == "public"}
    owners = [owner_of(address) for address in addresses if is_address(address)]
    identified = [owner for owner in owners if owner is not None]
    if not identified or len(identified) < len(addresses):
        return
    for names, shared in (
        ({owner.owner for owner in identified}, "owner"),
        ({owner.kind for owner in identified}, "kind"),
    ):
        if len(names) == 1:
            message = (
                f"all {len(addresses)} public addresses that were called have the same {shared} ({names.pop()}): a "
                "firewall that blocks these alone looks like an isolated network"
            )
            yield fails(
                estate.cluster, "AddressesAlike", message, *runs, severity=Severity.MEDIUM, remedy=OTHER_ADDRESSES
            )
            return


@check("probe-storage")
def probe_storage(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Storage of the same region answers even in a private subnet, whichever tenant owns the account."""
    remedy = (
        "Name the endpoint of a storage account in the same region that is not yours: `storageNames` or "
        "`storageAddresses` in `spec.probe.targets` of the EgressAudit."
    )

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        names = [name.target.address for name in run.report.names if name.target.role == "storage"]
        called = [reply.target.address for reply in run.report.called("storage")]
        if not names and not called:
            yield Doubt("NoStorageNamed", "no storage account was named to call", remedy)
        elif not any(map(is_public, called)):
            message = f"{(*names, *called)[0]} leads to no public address here, so that nothing outside was called"
            yield Doubt("StorageNotCalled", message, "Name it by its public address as well.")

    return each_place(estate, partial(_results, policy, "storage", doubts))


@check("probe-proxy")
def probe_proxy(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A proxy that passes a request on is an egress path, inside or outside the network."""
    return _named(estate, policy, "proxy")


@check("probe-networks")
def probe_networks(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Addresses that the platform team declares out of reach: other networks, machines on premises."""
    return _named(estate, policy, "forbidden")


@check("wireserver")
def wireserver(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """The host's wire server is for the node's agent: on a pod's request the host fetches and stores data elsewhere."""

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        if not run.report.called("wireserver"):
            yield Doubt("NotCalled", "168.63.129.16 was not called", "Keep it among the targets of the probe.")

    return each_place(estate, partial(_results, policy, "wireserver", doubts, vantages=(POD,)))


def on_the_hosts_channel(run: ProbeRun, policy: Policy) -> Iterator[tuple[str, str]]:
    """Targets of the wire server that answered, and how."""
    called = run.report.called("wireserver")
    for reply in called:
        if why := _open(reply, called, policy):
            yield str(reply.target), why


def unclear_on_the_hosts_channel(run: ProbeRun, policy: Policy) -> Iterator[Doubt]:
    """Doubts about targets of the wire server."""
    yield from _unclear(run, "wireserver", policy)


def _named(estate: Estate, policy: Policy, role: str) -> Iterator[CheckResult]:
    """Evaluates targets that are optional: without any, no finding is made."""
    runs = estate.every(ProbeRun, estate.cluster)
    if any(run.report.called(role) or run.problem for run in runs) or runs.problem or not runs.items:
        yield from each_place(estate, partial(_results, policy, role, lambda _run: ()))


def _results(
    policy: Policy,
    role: str,
    doubts: Callable[[ProbeRun], Iterable[Doubt]],
    probe_place: ProbePlace,
    vantages: tuple[bool, ...] = BOTH,
) -> Iterator[CheckResult]:
    yield weigh(
        probe_place,
        vantages,
        reason="WayOut" if role != "wireserver" else "WireServerReachable",
        find_open_paths=lambda run: _open_paths(run, role, policy),
        doubts=lambda run: (*_unclear(run, role, policy), *doubts(run)),
        silence=_silence(probe_place, vantages, role),
    )


def _open_paths(run: ProbeRun, role: str, policy: Policy) -> Iterator[OpenPath]:
    called = run.report.called(role)
    for reply in called:
        if why := _open(reply, called, policy):
            yield OpenPath(f"{reply.target} {why}", path_of(*start_of(run), str(reply.target)))


def _open(reply: Reply, called: tuple[Reply, ...], policy: Policy) -> str:
    """Why an answer proves an egress path; "" when it does not."""
    if reply.target.role == "proxy":
        return "passes requests on" if reply.reading is Reading.PASSED_ON else ""
    if _may_be_the_firewall(reply, policy) or _is_redirected_time(reply, called):
        return ""
    if reply.reading.came_through:
        return f"is {reply.reading}" if reply.reading is Reading.OPEN else str(reply.reading)
    if reply.reading.was_refused and _was_refused_at_the_far_end(reply, called):
        return f"is {reply.reading}: the call left, and was refused out there"
    return ""


def _may_be_the_firewall(reply: Reply, policy: Policy) -> bool:
    """A firewall that inspects requests completes handshakes itself, before it decides."""
    return policy.profile == "filtered" and reply.reading in {Reading.OPEN, Reading.TLS_ALERT}


def _is_redirected_time(answer: Reply, called: tuple[Reply, ...]) -> bool:
    """Whether an NTP answer may come from a server of this network, to which it redirects port 123.

    It redirects the calls at every address alike, so that an address answers whose owner serves no time there.
    """
    if not _is_time_answer(answer):
        return False
    answers = [reply.target.address for reply in called if _is_time_answer(reply) and is_address(reply.target.address)]
    owners = [owner_of(address) for address in answers]
    return any(owner is not None and not owner.serves_time for owner in owners)


def _is_time_answer(reply: Reply) -> bool:
    return (reply.target.kind, reply.target.port, reply.reading) == ("udp", NTP_PORT, Reading.ANSWERED)


def _was_refused_at_the_far_end(reply: Reply, called: tuple[Reply, ...]) -> bool:
    """Whether only the far end can have refused: the ICMP message is its own, or its TLS port was reached.

    A firewall may reset some ports and drop the others, so that silence of the TLS port shows nothing.
    """
    return reply.reading is Reading.FAR_END_REFUSED or any(
        other.reading is Reading.TLS_ANSWERED
        for other in called
        if other.target.address == reply.target.address and other.target.kind == "tls"
    )


def _unclear(run: ProbeRun, role: str, policy: Policy) -> Iterator[Doubt]:
    called = run.report.called(role)
    yield from _proxy_doubts(called)
    for reply in called:
        if reply.reading is Reading.UNREADABLE:
            yield Doubt("Unreadable", f"{reply.target}: {reply.raw!r} is not an answer of the probe")
        elif reply.reading is Reading.DNS_ERROR:
            message = f"{reply.target} is {reply.reading}: the network may redirect port 53 to a resolver of its own"
            yield Doubt("RedirectedDns", message, f"Let the network drop port 53 to public addresses, or {WITHOUT_UDP}")
        elif _is_redirected_time(reply, called):
            message = (
                f"{reply.target} is {reply.reading}, and so is an address that serves no time: the "
                "network may redirect "
                "port 123 to a time server of its own"
            )
            yield Doubt(
                "RedirectedTime", message, f"Let the network drop port 123 to public addresses, or {WITHOUT_UDP}"
            )
        elif reply.reading.was_refused and reply.target.role != "proxy":
            message = (
                f"{reply.target} is {reply.reading}: by a firewall on the way or by the far end: the probe "
                "cannot see which"
            )
            yield Doubt("RefusedBySomebody", message, REFUSED_REMEDY)
        elif is_public(reply.offender):
            message = (
                f"{reply.target} was {reply.reading} by {reply.offender}, which may be outside: it is not "
                "a private address"
            )
            yield Doubt("RejectedOutside", message, "Find out whose router that is; the call reached it.")
        elif _may_be_the_firewall(reply, policy):
            message = (
                f"{reply.target} accepted a connection, and no handshake of a far end followed: the firewall may have "
                "accepted it, as Azure Firewall does before it evaluates application rules"
            )
            yield Doubt("TakenBySomebody", message, TAKEN)


def _proxy_doubts(called: tuple[Reply, ...]) -> Iterator[Doubt]:
    """Doubts about each proxy. A refusal with 403 decides; silence of the other protocols beside it adds nothing."""
    by_proxy: dict[tuple[str, int], list[Reply]] = {}
    for reply in called:
        if reply.target.role == "proxy":
            by_proxy.setdefault((reply.target.address, reply.target.port), []).append(reply)
    for replies in by_proxy.values():
        target, readings = replies[0].target, {reply.reading for reply in replies}
        if Reading.WANTS_CREDENTIALS in readings:
            message = f"{target} wants credentials, and passes requests on for everyone who has some"
            yield Doubt("ProxyWantsCredentials", message, PROXY_REMEDY)
        elif Reading.OPEN in readings and Reading.PROXY_REFUSED not in readings:
            message = f"{target} accepted a connection and answered no protocol of a proxy within the time limit"
            yield Doubt("ProxySaidNothing", message, PROXY_REMEDY)
        elif Reading.PROXY_UNCLEAR in readings and Reading.PROXY_REFUSED not in readings:
            message = f"{target} answered neither with a refusal (403) nor with what was asked for"
            yield Doubt("ProxyUnclear", message, PROXY_REMEDY)


def _silence(probe_place: ProbePlace, vantages: tuple[bool, ...], role: str) -> str:
    """A summary of how the calls ended, which shows what stops them."""
    by_address: dict[tuple[str, str], list[Reply]] = {}
    runs = probe_place.seen_from(vantages)
    for run in runs:
        for reply in run.report.called(role):
            by_address.setdefault((run.id, reply.target.address), []).append(reply)
    counted = Counter(situation(replies) for replies in by_address.values())
    calls = sum(len(replies) for replies in by_address.values())
    ends = ", ".join(f"{ending} ({count})" for ending, count in counted.most_common())
    limit = min((run.report.limit_seconds for run in runs), default=0.0)
    summary = f"none of {calls} calls at {len(by_address)} addresses was answered within {limit:g} s: {ends}"
    return f"{summary}. {NOT_SEEN[role]}" if role in NOT_SEEN else summary

"""Calls that must fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from hermetic.api.ip_ranges import is_public
from hermetic.audit.checks.family import check
from hermetic.audit.checks.probe.vantages import BOTH, POD, Doubt, OpenPath, ProbePlace, each_place, start_of, weigh
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.probe.readings import Reading, Reply
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.probe.situations import situation
from hermetic.audit.evaluation import CheckResult
from hermetic.audit.hops import path_of
from hermetic.audit.policy import Policy

NETWORKS = 3
"""With fewer public IPv4 addresses, all of them may be blocked or down by chance."""


@check("probe-internet")
def probe_internet(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """No address, port or protocol on the internet may answer."""

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        called = {one.target.address for one in run.report.called("public")}
        if sum(":" not in address and is_public(address) for address in called) < NETWORKS:
            message = f"fewer than {NETWORKS} public IPv4 addresses were called"
            yield Doubt("TooFewTargets", message, "Name at least three public IPv4 addresses in different networks.")
        for name in run.report.names:
            if name.target.what == "public" and name.call is None and name.resolved.found_something:
                message = f"{name.target.address} was found on {run.node} ({name.resolved.raw}), and was not called"
                yield Doubt(
                    "NameNotCalled", message, "Let the probe run again; see which servers the cluster's resolver asks."
                )

    return each_place(estate, partial(_results, policy, "public", doubts))


@check("probe-storage")
def probe_storage(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Storage of the same region answers even in a private subnet, whichever tenant owns the account."""
    remedy = (
        "Name the endpoint of a storage account in the same region that is not yours: `storageNames` or "
        "`storageAddresses` in `spec.probe.targets` of the EgressAudit."
    )

    def doubts(run: ProbeRun) -> Iterator[Doubt]:
        names = [one.target.address for one in run.report.names if one.target.what == "storage"]
        called = [one.target.address for one in run.report.called("storage")]
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
    for one in called:
        if why := _open(one, called, policy):
            yield str(one.target), why


def unclear_on_the_hosts_channel(run: ProbeRun, policy: Policy) -> Iterator[Doubt]:
    """Doubts about targets of the wire server."""
    yield from _unclear(run, "wireserver", policy)


def _named(estate: Estate, policy: Policy, what: str) -> Iterator[CheckResult]:
    """Evaluates targets that are optional: without any, no finding is made."""
    runs = estate.every(ProbeRun, estate.cluster)
    if any(run.report.called(what) or run.problem for run in runs) or runs.problem or not runs.items:
        yield from each_place(estate, partial(_results, policy, what, lambda _run: ()))


def _results(
    policy: Policy,
    what: str,
    doubts: Callable[[ProbeRun], Iterable[Doubt]],
    place: ProbePlace,
    vantages: tuple[bool, ...] = BOTH,
) -> Iterator[CheckResult]:
    yield weigh(
        place,
        vantages,
        reason="WayOut" if what != "wireserver" else "WireServerReachable",
        ways=lambda run: _ways(run, what, policy),
        doubts=lambda run: (*_unclear(run, what, policy), *doubts(run)),
        silence=_silence(place, vantages, what),
    )


def _ways(run: ProbeRun, what: str, policy: Policy) -> Iterator[OpenPath]:
    called = run.report.called(what)
    for one in called:
        if why := _open(one, called, policy):
            yield OpenPath(f"{one.target} {why}", path_of(*start_of(run), str(one.target)))


def _open(one: Reply, called: tuple[Reply, ...], policy: Policy) -> str:
    """Why an answer proves an egress path; "" when it does not."""
    if one.target.kind == "proxy":
        return "passes requests on" if one.reading is Reading.PASSED_ON else ""
    if _may_be_the_firewall(one, policy):
        return ""
    if one.reading.came_through:
        return f"is {one.reading}" if one.reading is Reading.OPEN else str(one.reading)
    if one.reading.was_refused and _was_refused_at_the_far_end(one, called):
        return f"is {one.reading}: the call left, and was refused out there"
    return ""


def _may_be_the_firewall(one: Reply, policy: Policy) -> bool:
    """A firewall that inspects requests completes handshakes itself, before it decides."""
    return policy.profile == "filtered" and one.reading is Reading.OPEN


def _was_refused_at_the_far_end(one: Reply, called: tuple[Reply, ...]) -> bool:
    """Whether the far end itself refused: a firewall would have refused the TLS port of that address as well."""
    listening = [
        other.reading for other in called if other.target.address == one.target.address and other.target.kind == "tls"
    ]
    return bool(listening) and not any(reading.was_refused for reading in listening)


def _unclear(run: ProbeRun, what: str, policy: Policy) -> Iterator[Doubt]:
    called = run.report.called(what)
    for one in called:
        if one.reading is Reading.UNREADABLE:
            yield Doubt("Unreadable", f"{one.target}: {one.raw!r} is no answer of the probe")
        elif one.reading.was_refused and one.target.kind != "proxy":
            message = (
                f"{one.target} is {one.reading}: by a firewall on the way or by the far end: it cannot be seen which"
            )
            yield Doubt("RefusedBySomebody", message, "Let the firewall drop, or reject with an ICMP message.")
        elif is_public(one.offender):
            message = (
                f"{one.target} was {one.reading} by {one.offender}, which may be outside: it is no private address"
            )
            yield Doubt("RejectedOutside", message, "Find out whose router that is; the call reached it.")
        elif _may_be_the_firewall(one, policy):
            message = f"{one.target} accepted a connection and sent nothing: it may be the firewall that did"
            yield Doubt("TakenBySomebody", message, "Call ports on which TLS is spoken: the far end must speak itself.")


def _silence(place: ProbePlace, vantages: tuple[bool, ...], what: str) -> str:
    """A summary of how the calls ended, which shows what stops them."""
    by_address: dict[tuple[str, str], list[Reply]] = {}
    for run in place.seen_from(vantages):
        for one in run.report.called(what):
            by_address.setdefault((run.id, one.target.address), []).append(one)
    counted = Counter(situation(replies) for replies in by_address.values())
    calls = sum(len(replies) for replies in by_address.values())
    ends = ", ".join(f"{found} ({count})" for found, count in counted.most_common())
    return f"none of {calls} calls at {len(by_address)} addresses was answered: {ends}"

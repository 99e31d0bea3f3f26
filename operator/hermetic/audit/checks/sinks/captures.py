"""Packet captures of nodes by Network Watcher, and where they are stored."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import cluster_of, network_ids_of, node_group_of
from hermetic.audit.egress.resource_lookup import in_home_subscriptions
from hermetic.audit.estate.arm_ids import is_below, name_of
from hermetic.audit.estate.azure.effective import NetworkWatcher
from hermetic.audit.estate.azure.flow_logs import CaptureLocation, PacketCapture
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import merged
from hermetic.audit.evaluation import Judgement, cannot_say, fails
from hermetic.audit.findings import Severity
from hermetic.audit.hops import path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_or_none


@check("packet-capture")
def packet_capture(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Captures, in the cluster's region, whose target is a machine or scale set of the node resource group."""
    cluster, watchers = cluster_of(estate), in_home_subscriptions(estate, policy, NetworkWatcher)
    region = _region(cluster.value.location) if cluster.value is not None else ""
    here = [one for one in watchers if not region or _region(one.location) in {region, ""}]
    captures = merged(estate.cluster, *(estate.every(PacketCapture, one.id) for one in here))
    group = node_group_of(estate)
    ours = captures.where(lambda one: not one.target or not group or is_below(one.target, group))
    none = "no packet capture of a node"
    yield from each_or_none(estate.cluster, ours, lambda one: _judge(estate, policy, one), none, watchers, cluster)


def _region(location: str) -> str:
    return location.replace(" ", "").lower()


def _judge(estate: Estate, policy: Policy, capture: PacketCapture) -> Iterator[Judgement]:
    kept = capture.storage_location or CaptureLocation()
    ours = (estate.cluster, *network_ids_of(estate))
    account = kept.storage_id or kept.storage_path or ""
    if not capture.target:
        yield cannot_say(capture.id, "TargetNotNamed", "the capture does not name its target", capture)
    elif account and not policy.owns(account, *ours):
        words = f"packets of {name_of(capture.target)} are kept at {account}, which is not ours"
        path = path_of(name_of(capture.target), "packet capture", hops.storage("storage of others"))
        yield fails(capture.id, "CaptureSentAway", words, capture, paths=(path,))
    else:
        words = f"packets of {name_of(capture.target)} are captured, and kept at {account or 'the machine itself'}"
        yield fails(capture.id, "Captured", words, capture, severity=Severity.MEDIUM)

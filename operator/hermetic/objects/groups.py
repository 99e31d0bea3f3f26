"""What a group has beside the object that runs its pods: a Service for the address of its head, and its NetworkPolicy.

A group is a replica of several nodes, with a pod on each. The pod of rank 0 is its head: it answers clients, and it
tells the others its address. Pods have no DNS, so the others ask at the cluster IP of the group's Service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from hermetic.engines.launch import ADDRESS_PORT, GROUP_PORTS, RANK_LABEL
from hermetic.objects.names import GROUP_LABEL, Owner, metadata, selector
from hermetic.objects.network_policy import PodPeer, peer_policy

HEAD = {RANK_LABEL: "0"}
"""The label of the one pod of a group that answers clients."""
_GROUP = re.compile(r"-group-(0|[1-9][0-9]{0,3})\Z")


def group_name(model: str, index: int) -> str:
    """The name of every object of a group."""
    return f"{model}-group-{index}"


def group_index(name: str, model: str) -> int | None:
    """The index of the group of this model that an object is named after; None for another name."""
    match = _GROUP.search(name)
    return int(match[1]) if match is not None and name[: match.start()] == model else None


def group_selector(owner: Owner, index: int) -> dict[str, str]:
    """The labels by which the pods of one group are found."""
    return {**selector(owner), GROUP_LABEL: str(index)}


def group_metadata(owner: Owner, engine: str, index: int) -> dict[str, Any]:
    """Metadata of an object of a group."""
    own = metadata(owner, engine, group_name(owner.name, index))
    return {**own, "labels": {**own["labels"], GROUP_LABEL: str(index)}}


def group_service(owner: Owner, engine: str, index: int) -> dict[str, Any]:
    """A cluster IP for the head of a group, which is reachable before it is ready: the others start with it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": group_metadata(owner, engine, index),
        "spec": {
            "type": "ClusterIP",
            "publishNotReadyAddresses": True,
            "selector": {**group_selector(owner, index), **HEAD},
            "ports": [{"name": "head-address", "protocol": "TCP", "port": ADDRESS_PORT, "targetPort": ADDRESS_PORT}],
        },
    }


def group_network_policy(owner: Owner, engine: str, index: int) -> dict[str, Any]:
    """What the members of a group may call: each other. It adds to the policy of the model, which closes the rest."""
    members = PodPeer(group_selector(owner, index), *GROUP_PORTS)
    return peer_policy(group_metadata(owner, engine, index), members)


def head_address(service: Mapping[str, Any] | None) -> str:
    """The cluster IP of a live Service of a group; "" until it has one."""
    address = str(((service or {}).get("spec") or {}).get("clusterIP") or "")
    try:
        return str(ip_address(address))
    except ValueError:
        return ""

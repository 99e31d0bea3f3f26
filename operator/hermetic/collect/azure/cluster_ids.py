"""The ids that belong to the cluster, as far as known; rows of Resource Graph that name one are read from ARM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hermetic.audit.estate.arm_ids import subscription_of
from hermetic.audit.estate.questions import Answer, Question

_NETWORK = re.compile(
    r"/subscriptions/[^/]+/resourcegroups/[^/]+/providers/microsoft\.network/virtualnetworks/[^/]+", re.IGNORECASE
)


class ClusterIds:
    """Ids of the cluster, of its node resource group, and of every virtual network that a question names."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._ids = {cluster.lower()}

    def learn_from(self, questions: Iterable[Question]) -> bool:
        """Add the virtual networks that questions name, as a check found them relevant; returns whether any is new."""
        network_ids = {match[0].lower() for question in questions if (match := _NETWORK.match(question.target))}
        return self._learn(network_ids)

    def learn_nodes(self, cluster: Answer) -> bool:
        """Add the node resource group from the cluster's answer; returns whether it is new."""
        groups = {_node_group(body.value) for body in cluster.bodies}
        subscription = subscription_of(self._cluster)
        return self._learn({f"/subscriptions/{subscription}/resourcegroups/{group}".lower() for group in groups - {""}})

    def mentioned_in(self, row: Mapping[str, Any]) -> bool:
        """Whether a row contains any of the ids; a longer id with the same prefix matches too, and costs a request."""
        text = json.dumps(row, ensure_ascii=False).lower()
        return any(resource_id in text for resource_id in self._ids)

    def _learn(self, ids: set[str]) -> bool:
        grown = bool(ids - self._ids)
        self._ids |= ids
        return grown


def _node_group(cluster: Mapping[str, Any]) -> str:
    properties = cluster.get("properties")
    name = properties.get("nodeResourceGroup") if isinstance(properties, Mapping) else None
    return name if isinstance(name, str) else ""

"""What is the cluster's own, as far as it is known yet: which rows of an index are worth asking ARM for."""

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
    """The ids of the cluster, of its node resource group, and of every virtual network that was looked at by its id."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._ids = {cluster.lower()}

    def learn_from(self, questions: Iterable[Question]) -> bool:
        """Whether something was learnt: a check that looks at a network thinks it matters."""
        found = {match[0].lower() for question in questions if (match := _NETWORK.match(question.target))}
        return self._learn(found)

    def learn_nodes(self, cluster: Answer) -> bool:
        """The same, from the cluster itself."""
        groups = {_node_group(body.value) for body in cluster.bodies}
        subscription = subscription_of(self._cluster)
        return self._learn({f"/subscriptions/{subscription}/resourcegroups/{one}".lower() for one in groups - {""}})

    def mentioned_in(self, row: Mapping[str, Any]) -> bool:
        """Whether a row names any of it, anywhere; a longer name that begins alike counts too, and costs a request."""
        text = json.dumps(row, ensure_ascii=False).lower()
        return any(one in text for one in self._ids)

    def _learn(self, ids: set[str]) -> bool:
        grown = bool(ids - self._ids)
        self._ids |= ids
        return grown


def _node_group(cluster: Mapping[str, Any]) -> str:
    properties = cluster.get("properties")
    name = properties.get("nodeResourceGroup") if isinstance(properties, Mapping) else None
    return name if isinstance(name, str) else ""

"""Many sealed clusters in one subscription, each with groups, a network, a registry and an account of its own."""

from __future__ import annotations

import json

from testbed.azure.baseline import estate_of
from testbed.azure.estate import Estate
from testbed.azure.references import refer_back

OWN_NAMES = ("rg-inference", "aks-inference", "acrinference", "stinferenceweights")
"""The names of one sealed estate that differ from cluster to cluster; groups begin with the first."""


def several_clusters(count: int, layout: str = "sealed") -> tuple[Estate, tuple[str, ...]]:
    """The estate, and the ARM ids of its clusters; the first is that of the layout itself.

    The networks are not connected, so that equal address ranges are no conflict. The policy is about all of them.
    """
    estate = estate_of(layout)
    estate.scale_set_outbound_shown_by = frozenset({"arm", "graph"})
    first = json.dumps([list(estate.resources.values()), estate.policy])
    clusters = [estate.cluster]
    for number in range(2, count + 1):
        text = first
        for name in OWN_NAMES:
            text = text.replace(name, f"{name}{number}")
        resources, policy = json.loads(text)
        for body in resources:
            estate.resources.setdefault(body["id"].lower(), body)
        for key, entries in policy.items():
            if isinstance(entries, list):
                estate.policy[key] = [
                    *estate.policy[key],
                    *(entry for entry in entries if entry not in estate.policy[key]),
                ]
        clusters.append(estate.cluster.replace("inference", f"inference{number}"))
    estate.restore(estate.resources)
    return refer_back(estate), tuple(clusters)

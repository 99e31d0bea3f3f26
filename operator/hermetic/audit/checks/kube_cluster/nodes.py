"""What nodes report in their status."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.evaluation import Judgement, fails
from hermetic.audit.hops import INTERNET, path_of
from hermetic.audit.kube_findings import counted, everywhere, never_empty, objections, settled
from hermetic.audit.policy import Policy


@check("k8s-node-externalip")
def k8s_node_externalip(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A node with an external address can be on the internet with any outbound type of the cluster."""
    nodes = never_empty(everywhere(estate, Node), Node)

    def judge(node: Node) -> Iterator[Judgement]:
        if addresses := node.external:
            yield fails(
                node.id,
                "ExternalAddress",
                f"has the external address {', '.join(addresses)}",
                node,
                paths=(path_of(hops.kubernetes(node.id), addresses[0], INTERNET),),
            )

    fine = f"{counted(len(nodes), 'node')}: none has an external address"
    yield from settled(estate, objections(nodes, judge), "NoExternalAddress", fine, nodes)

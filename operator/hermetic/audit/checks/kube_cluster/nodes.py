"""What nodes report in their status, and the machines that they run on."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import instance_nics_of, machines_named_by
from hermetic.audit.cluster.objects import everywhere, never_empty
from hermetic.audit.estate.arm_ids import parent_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.evaluation.each_object import counted, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy


@check("k8s-node-externalip")
def k8s_node_externalip(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """A node with an external address can be on the internet with any outbound type of the cluster."""
    nodes = never_empty(everywhere(estate, Node), Node)

    def evaluate(node: Node) -> Iterator[CheckResult]:
        if addresses := node.external:
            yield fails(
                node.id,
                "ExternalAddress",
                f"has the external address {', '.join(addresses)}",
                node,
                paths=(path_of(hops.kubernetes(node.id), addresses[0], INTERNET),),
            )

    fine = f"{counted(len(nodes), 'node')}: none has an external address"
    yield from settled(estate, objections(nodes, evaluate), "NoExternalAddress", fine, nodes)


@check("k8s-node-machine")
def k8s_node_machine(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """The network of a machine in no list of Azure's was not evaluated.

    A check of both sources: the operator, which reads no Azure, cannot evaluate it anew, so what was attested counts.
    """
    nodes, nics = never_empty(everywhere(estate, Node), Node), instance_nics_of(estate)
    machine_ids = frozenset({parent_of(nic.id).lower() for nic in nics} | machines_named_by(nics))

    def evaluate(node: Node) -> Iterator[CheckResult]:
        if not node.spec.provider_id:
            message = (
                "it has no spec.providerID, so which machine it is, is not known: where it joined just now, audit again"
            )
            yield unknown(node.id, "MachineNotNamed", message, node)
        elif node.machine and nics.problem is None and node.machine.lower() not in machine_ids:
            message = f"its machine {node.machine} is in no list of Azure's: where it was added just now, audit again"
            yield unknown(node.id, "MachineNotListed", message, node, nics)

    fine = f"{counted(len(nodes), 'node')}: the machine of each is listed by Azure"
    yield from settled(estate, objections(nodes, evaluate), "MachinesListed", fine, nodes, nics)

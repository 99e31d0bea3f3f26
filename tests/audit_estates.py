"""Estates made by hand: a dictionary of ARM bodies, and a function that answers whatever the checks want to know of it.

    azure = small_cluster()
    azure.change(NODES, natGateway={"id": "/subscriptions/.../natGateways/out"})
    found = azure.findings("subnet-nat-gateway")            # {resource id in lower case: Finding}
    assert found[NODES.lower()].verdict is Verdict.FAIL

Every resource is an entry of its own, children too: `.../virtualNetworks/v/subnets/s`. Lists are answered by type and
scope. There is no HTTP here and no paging: the stand-in of the test bed has those.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.arm_ids import is_below, parent_of, same_id, type_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, Source, UnreadReason
from hermetic.audit.evaluation.check_findings import Check, findings_of
from hermetic.audit.model.findings import Evidence, Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.derived_findings import derived

SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000001"
GROUP = f"{SUBSCRIPTION}/resourceGroups/ai"
NODE_GROUP = f"{SUBSCRIPTION}/resourceGroups/ai-nodes"
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/ai"
NETWORK = f"{GROUP}/providers/Microsoft.Network"
NODE_NETWORK = f"{NODE_GROUP}/providers/Microsoft.Network"
VNET = f"{NETWORK}/virtualNetworks/ai"
NODES = f"{VNET}/subnets/nodes"
PODS = f"{VNET}/subnets/pods"
API_SERVER = f"{VNET}/subnets/api"
ROUTES = f"{NETWORK}/routeTables/sealed"
RULES = f"{NETWORK}/networkSecurityGroups/sealed"
SCALE_SET = f"{NODE_GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/aks-gpu"
INSTANCE = f"{SCALE_SET}/virtualMachines/0"
NIC = f"{INSTANCE}/networkInterfaces/gpu"
DELEGATED_TO_AKS = [{"name": "aks", "properties": {"serviceName": "Microsoft.ContainerService/managedClusters"}}]
SENTINEL = f"{NETWORK}/networkInterfaces/sentinel"

# Lists that Azure keeps at a scale set although what they hold lies deeper.
_SHORTCUTS = {
    "microsoft.compute/virtualmachinescalesets/networkinterfaces": (
        "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces"
    ),
    "microsoft.compute/virtualmachinescalesets/publicipaddresses": (
        "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces/ipconfigurations/publicipaddresses"
    ),
}


class FakeAzure:
    """The bodies, what POST actions answer, and what goes wrong."""

    def __init__(self, cluster: str = CLUSTER, sources: Iterable[Source] = ("azure",)) -> None:
        self.cluster = cluster
        self.sources = tuple(sources)
        self.bodies: dict[str, dict[str, Any]] = {}
        self.actions: dict[tuple[str, str], Any] = {}
        self.refusals: list[tuple[str, str, str, Problem]] = []

    def put(self, arm_id: str, properties: dict[str, Any] | None = None, **fields: Any) -> FakeAzure:
        """A resource, in place of one with the same id."""
        name = arm_id.rsplit("/", 1)[-1]
        self.bodies[arm_id.lower()] = {"id": arm_id, "name": name, **fields, "properties": dict(properties or {})}
        return self

    def change(self, arm_id: str, **properties: Any) -> FakeAzure:
        """Set some of its properties."""
        self.bodies[arm_id.lower()]["properties"].update(properties)
        return self

    def drop(self, arm_id: str, *properties: str) -> FakeAzure:
        """Take some of its properties away; without any, the resource itself."""
        if not properties:
            del self.bodies[arm_id.lower()]
        for name in properties:
            self.bodies[arm_id.lower()]["properties"].pop(name, None)
        return self

    def properties(self, arm_id: str) -> dict[str, Any]:
        """Its properties, to read or to change in place."""
        return self.bodies[arm_id.lower()]["properties"]

    def act(self, arm_id: str, action: str, value: dict[str, Any]) -> FakeAzure:
        """What a POST action answers."""
        self.actions[arm_id.lower(), action.lower()] = value
        return self

    def refuse(
        self, target: str, reason: UnreadReason = UnreadReason.FORBIDDEN, *, kind: str = "", verb: str = ""
    ) -> FakeAzure:
        """Questions about exactly this id or scope get this reason; with TRUNCATED, lists keep what they have."""
        self.refusals.append((target.lower(), kind.lower(), verb, Problem(reason, f"{target}: {reason.value}")))
        return self

    def copy(self) -> FakeAzure:
        """One of its own."""
        return copy.deepcopy(self)

    def answer(self, question: Question) -> Answer:
        """As a collector would answer it."""
        problem = self._trouble(question)
        evidence = Evidence(f"{question.verb} {question.target}?api-version={question.api_version}", 200)
        if problem is not None and not (question.verb == "list" and problem.reason is UnreadReason.TRUNCATED):
            return Answer((), (evidence,), problem)
        if question.verb == "list":
            return Answer(
                tuple(_body(listed_body, evidence) for listed_body in self._listed(question)), (evidence,), problem
            )
        answer = self._one(question)
        if answer is None:
            return Answer((), (evidence,), Problem(UnreadReason.NOT_FOUND, f"{question.target}: not there"))
        body = _body(answer, evidence)
        return Answer((body,), body.evidence)

    def settled(self, judge: Callable[[Estate], object]) -> Estate:
        """The estate after judging and fetching until nothing is wanted; at most 20 rounds."""
        answers: dict[Question, Answer] = {}
        for _ in range(20):
            estate = Estate(self.cluster, self.sources, answers)
            judge(estate)
            if not estate.wanted:
                return estate
            answers |= {question: self.answer(question) for question in estate.wanted.values()}
        raise AssertionError(f"still wanted after 20 rounds: {list(estate.wanted)[:5]}")

    def findings(self, check: str, policy: Policy | None = None) -> dict[str, Finding]:
        """The findings of one check by resource id in lower case."""
        rule, chosen_policy = check_of(check), policy or Policy()
        produced: list[Finding] = []

        def judge(estate: Estate) -> None:
            produced[:] = findings_of(rule, estate, chosen_policy)
            parts = {
                part for finding in produced if finding.derived_from is not None for part in finding.derived_from.checks
            }
            for part in sorted(parts):
                produced.extend(findings_of(check_of(part), estate, chosen_policy))

        self.settled(judge)
        return {finding.resource.lower(): finding for finding in derived(produced) if finding.check == check}

    def _one(self, question: Question) -> dict[str, Any] | None:
        if question.verb == "post":
            return self.actions.get((question.target.lower(), question.action.lower()))
        body = self.bodies.get(question.target.lower().rstrip("/"))
        if body is None or type_of(body["id"]).lower() != "microsoft.network/virtualnetworks":
            return body
        inner = {"subnets": self._children(body["id"], "subnets"), **body["properties"]}
        return {**body, "properties": inner}

    def _children(self, parent: str, kind: str) -> list[dict[str, Any]]:
        return [
            body
            for body in self.bodies.values()
            if same_id(parent_of(body["id"]), parent) and f"/{kind}/" in body["id"]
        ]

    def _listed(self, question: Question) -> list[dict[str, Any]]:
        kind = _SHORTCUTS.get(question.kind.lower(), question.kind.lower())
        return [
            body
            for body in self.bodies.values()
            if type_of(body["id"]).lower() == kind and is_below(body["id"], question.target)
        ]

    def _trouble(self, question: Question) -> Problem | None:
        return next(
            (
                problem
                for target, kind, verb, problem in self.refusals
                if target == question.target.lower()
                and kind in {"", question.kind.lower()}
                and verb in {"", question.verb}
            ),
            None,
        )


def check_of(check: str) -> Check:
    """The check of this id."""
    return next(candidate for candidate in CHECKS if candidate.page.id == check)


def _body(value: dict[str, Any], evidence: Evidence) -> Body:
    digest = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
    return Body(copy.deepcopy(value), (Evidence(evidence.request, 200, digest),))


def small_cluster() -> FakeAzure:
    """One sealed cluster: a pool of one node in a private subnet with routes and rules, an API server subnet."""
    azure = FakeAzure()
    azure.put(
        CLUSTER,
        {
            "nodeResourceGroup": "ai-nodes",
            "networkProfile": {"outboundType": "none", "ipFamilies": ["IPv4"], "networkPolicy": "cilium"},
            "agentPoolProfiles": [
                {"name": "gpu", "count": 1, "mode": "System", "type": "VirtualMachineScaleSets", "vnetSubnetID": NODES}
            ],
            "apiServerAccessProfile": {"subnetId": API_SERVER, "enablePrivateCluster": True},
        },
        location="westeurope",
    )
    azure.put(VNET, {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}, location="westeurope")
    sealed = {"defaultOutboundAccess": False, "routeTable": {"id": ROUTES}, "networkSecurityGroup": {"id": RULES}}
    azure.put(NODES, {"addressPrefix": "10.0.1.0/24", **sealed})
    azure.put(API_SERVER, {"addressPrefix": "10.0.2.0/28", "delegations": DELEGATED_TO_AKS, **sealed})
    azure.put(
        ROUTES,
        {
            "disableBgpRoutePropagation": True,
            "routes": [route("v4", "0.0.0.0/0", "None"), route("v6", "::/0", "None")],
        },
    )
    azure.put(RULES, {"securityRules": [deny_internet(4000)], "defaultSecurityRules": default_rules()})
    azure.put(SCALE_SET, {"virtualMachineProfile": {"networkProfile": model_nics(NODES)}}, sku={"capacity": 1})
    azure.put(
        NIC,
        {
            "ipConfigurations": [ip_configuration("10.0.1.4", NODES)],
            "defaultOutboundConnectivityEnabled": False,
            "virtualMachine": {"id": INSTANCE},
        },
    )
    azure.put(INSTANCE, {"instanceId": "0", "instanceView": instance_view()})
    return azure


def instance_view(*more: str, code: str = "ProvisioningState/succeeded") -> dict[str, Any]:
    """What the agent of a node reports: the handlers of AKS, and more."""
    kinds = ("Microsoft.Azure.Extensions.CustomScript", "Microsoft.AKS.Compute.AKS.Linux.AKSNode", *more)
    agent = {"statuses": [{"code": code}], "extensionHandlers": [{"type": kind} for kind in kinds]}
    return {"vmAgent": agent, "extensions": [{"name": "vmssCSE", "type": kinds[0]}]}


def route(name: str, prefix: str, hop: str, address: str = "") -> dict[str, Any]:
    """A route of a route table."""
    next_hop = {"nextHopIpAddress": address} if address else {}
    return {"name": name, "properties": {"addressPrefix": prefix, "nextHopType": hop, **next_hop}}


def rule(name: str, priority: int, access: str, to: str = "*", **rest: Any) -> dict[str, Any]:
    """An outbound security rule; `rest` replaces fields."""
    fields = {
        "priority": priority,
        "access": access,
        "direction": "Outbound",
        "protocol": "*",
        "sourceAddressPrefix": "*",
        "sourcePortRange": "*",
        "destinationAddressPrefix": to,
        "destinationPortRange": "*",
    }
    return {"name": name, "properties": {**fields, **rest}}


def deny_internet(priority: int) -> dict[str, Any]:
    """What closes the internet and the same-region storage path."""
    return rule("deny-internet", priority, "Deny", "Internet")


def default_rules() -> list[dict[str, Any]]:
    """The three outbound rules that every security group has."""
    return [
        rule("AllowVnetOutBound", 65000, "Allow", "VirtualNetwork", sourceAddressPrefix="VirtualNetwork"),
        rule("AllowInternetOutBound", 65001, "Allow", "Internet"),
        rule("DenyAllOutBound", 65500, "Deny"),
    ]


def ip_configuration(address: str, subnet: str, **fields: Any) -> dict[str, Any]:
    """An address of a network interface."""
    return {"name": "ipconfig1", "properties": {"privateIPAddress": address, "subnet": {"id": subnet}, **fields}}


def model_nics(subnet: str, **fields: Any) -> dict[str, Any]:
    """networkProfile of a scale set's model with one interface of one address."""
    address = {"name": "ipconfig1", "properties": {"subnet": {"id": subnet}, "primary": True, **fields}}
    return {"networkInterfaceConfigurations": [{"name": "gpu", "properties": {"ipConfigurations": [address]}}]}

"""Where CoreDNS forwards names that it does not answer itself."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import DATA
from hermetic.api.ip_ranges import is_address, is_public
from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.checks.kube_cluster.plugins import judge_plugins
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import COREDNS, COREDNS_CUSTOM, NODE_LOCAL_DNS
from hermetic.audit.estate.kubernetes.calls import IMPORTED, ConfigMap
from hermetic.audit.estate.kubernetes.corefile import forwarders, imports, snippets
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, Trouble
from hermetic.audit.evaluation import Judgement, cannot_say, fails
from hermetic.audit.hops import POD, path_of
from hermetic.audit.kube_findings import everywhere, objections, settled
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged

NODE_RESOLVERS = "/etc/resolv.conf"
HOST_RESOLVER = "168.63.129.16"
# Placeholders that NodeLocal DNSCache replaces at start: the cluster's resolver, and those of its node.
OF_NODE_LOCAL_DNS = ("__PILLAR__CLUSTER__DNS__", "__PILLAR__UPSTREAM__SERVERS__")
CLUSTER_DNS = (("kube-system", "kube-dns"), ("kube-system", "kube-dns-upstream"), ("kube-system", "coredns"))
# The folder where AKS mounts kube-system/coredns-custom, as the Corefile and its own files spell it.
_CUSTOM = frozenset({"", "custom", "/etc/coredns/custom"})


@check("coredns-custom")
def coredns_custom(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Forwarders are the node's own resolvers, which `vnet-dns-servers` judges, or servers that the policy allows."""
    main, custom = estate.every(ConfigMap, COREDNS), estate.every(ConfigMap, COREDNS_CUSTOM)
    node_local = estate.every(ConfigMap, NODE_LOCAL_DNS)
    allowed = frozenset(policy.allowed_dns_servers) | _of_coredns_itself(estate)

    def judge(config_map: ConfigMap) -> Iterator[Judgement]:
        texts = config_map.data or {}
        known = frozenset[str]().union(*map(snippets, texts.values()))
        for key, text in sorted(texts.items()):
            for target in forwarders(text):
                yield from _judge_target(config_map, key, target, allowed)
            for target in imports(text):
                yield from _judge_import(config_map, key, target, known)
            yield from judge_plugins(config_map, key, text, allowed)
        for key in sorted(config_map.binary_data or {}):
            message = f"{key} is kept as binary data, which CoreDNS imports and the audit does not read"
            yield cannot_say(config_map.id, "BinaryNotSeen", message, config_map, remedy="Write it under `data`.")

    said = (*objections(main, judge), *objections(custom, judge), *objections(node_local, judge))
    fine = "CoreDNS asks only the node's own resolvers and servers that the policy allows"
    yield from settled(estate, said, "NoForeignForwarder", fine, _has_a_corefile(main), custom, node_local)


def _of_coredns_itself(estate: Estate) -> frozenset[str]:
    """Addresses of the cluster's own resolver, which a cache on each node forwards to."""
    found = set()
    for service in everywhere(estate, Service):
        try:
            if (service.namespace, service.metadata.name) in CLUSTER_DNS and service.spec.selector:
                found.add(service.spec.cluster_ip or "")
        except FactDamaged:
            continue
    return frozenset(found - {""})


def _judge_target(config_map: ConfigMap, key: str, target: str, allowed: frozenset[str]) -> Iterator[Judgement]:
    if target in {NODE_RESOLVERS, HOST_RESOLVER, *OF_NODE_LOCAL_DNS} or target in allowed:
        return
    outside = is_public(target) if is_address(target) else not is_inside(target)
    if not target or target.startswith("/"):
        message = f"{key} forwards to {target or 'what its environment says'}, which the audit does not read"
        yield cannot_say(config_map.id, "ForwarderNotSeen", message, config_map)
    elif outside:
        yield fails(
            config_map.id,
            "ForwardsOutside",
            f"{key} forwards to {target}",
            config_map,
            paths=(path_of(POD, hops.dns("CoreDNS"), target),),
            blames=(DATA,),
        )
    else:
        yield cannot_say(
            config_map.id,
            "ForwarderNotDeclared",
            f"{key} forwards to {target}, of which the policy says nothing: it may ask the internet in turn",
            config_map,
            remedy=(
                "Find out whom it asks, and list it under `allowedDnsServers`, in the file given to --policy and in "
                "the operator's configuration."
            ),
        )


def _judge_import(config_map: ConfigMap, key: str, target: str, known: frozenset[str]) -> Iterator[Judgement]:
    folder, _, name = target.rpartition("/")
    if target not in known and not (folder in _CUSTOM and name.endswith(IMPORTED)):
        yield cannot_say(
            config_map.id,
            "ImportNotSeen",
            f"{key} imports {target or 'what its environment says'}, which the audit does not read",
            config_map,
            remedy="Import nothing but the keys of kube-system/coredns-custom that end in .server or .override.",
        )


def _has_a_corefile(main: Listing[ConfigMap]) -> Listing[ConfigMap]:
    """The list; incomplete without a Corefile: CoreDNS does not start without one, so it is configured elsewhere."""
    if main.problem is not None or any((one.data or {}).get("Corefile") for one in main):
        return main
    problem = Problem(
        Trouble.UNREADABLE, f"no Corefile in ConfigMap {main.target}: where CoreDNS forwards to is unknown"
    )
    return Listing(main.target, main.items, main.evidence, problem)

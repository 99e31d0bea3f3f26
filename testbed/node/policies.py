"""NetworkPolicies, enforced as the engine of a CNI does it: by rules of nftables on every node.

    python -m testbed.node.policies --kubeconfig FILE [--also-in NETWORK_NAMESPACE_FILE]

A rule sees packets that are forwarded, with the address of the pod behind a Service already in them. Packets between
two pods of one node cross its bridge alone, which no rule sees. The kubelet's own packets are not forwarded either: as
with every engine, a node always reaches its pods. A new pod is open for up to half a second.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.errors import ApiError, BedError

Manifest = Mapping[str, Any]

TABLE = "hermetic-policies"
POLL_SECONDS = 0.5
PATHS = (
    "/api/v1/pods",
    "/api/v1/namespaces",
    "/apis/networking.k8s.io/v1/networkpolicies",
)


def ruleset(pods: Sequence[Manifest], namespaces: Sequence[Manifest], policies: Sequence[Manifest]) -> str:
    """The table for `nft -f`: it replaces the one before in one transaction."""
    cluster = _Cluster(pods, namespaces)
    jumps, chains = [], []
    for pod in cluster.pods:
        for direction, side in (("Ingress", "daddr"), ("Egress", "saddr")):
            selected = [policy for policy in policies if cluster.selects(policy, pod, direction)]
            if not selected:
                continue
            address = pod["status"]["podIP"]
            chain = f"{direction.lower()}-{address.replace('.', '-')}"
            allowed = sorted({rule for policy in selected for rule in _allowed(cluster, policy, direction)})
            rules = [*(f"    {rule}return" for rule in allowed), "    drop"]
            jumps.append(f"    ip {side} {address} jump {chain}")
            chains.append("\n".join([f"  chain {chain} {{", *rules, "  }"]))
    base = [
        "  chain forward {",
        "    type filter hook forward priority -10; policy accept;",
        "    ct state established,related accept",
        *jumps,
        "  }",
    ]
    table = "\n".join([f"table ip {TABLE} {{", *chains, *base, "}"])
    return f"table ip {TABLE}\ndelete table ip {TABLE}\n{table}\n"


class _Cluster:
    """The pods that have an address of their own, and the labels of namespaces."""

    def __init__(self, pods: Iterable[Manifest], namespaces: Iterable[Manifest]) -> None:
        self.pods = [pod for pod in pods if pod["status"].get("podIP") and not pod["spec"].get("hostNetwork")]
        self._labels = {
            namespace["metadata"]["name"]: namespace["metadata"].get("labels") or {} for namespace in namespaces
        }

    def selects(self, policy: Manifest, pod: Manifest, direction: str) -> bool:
        """Whether the policy isolates the pod in this direction."""
        spec = policy["spec"]
        types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]
        is_here = policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
        return is_here and direction in types and _matches(spec.get("podSelector") or {}, pod["metadata"].get("labels"))

    def addresses(self, peer: Manifest, namespace: str) -> list[str]:
        """Of the pods that a peer of a policy of this namespace means."""
        return [
            pod["status"]["podIP"]
            for pod in self.pods
            if self._is_meant(peer, pod["metadata"]["namespace"], namespace)
            and _matches(peer.get("podSelector") or {}, pod["metadata"].get("labels"))
        ]

    def _is_meant(self, peer: Manifest, of_pod: str, of_policy: str) -> bool:
        if "namespaceSelector" not in peer:
            return of_pod == of_policy
        return _matches(peer["namespaceSelector"] or {}, self._labels.get(of_pod))


def _allowed(cluster: _Cluster, policy: Manifest, direction: str) -> Iterator[str]:
    """The conditions under which a packet is let through, each with a space at its end; "" for every packet."""
    peers_key, side = ("from", "saddr") if direction == "Ingress" else ("to", "daddr")
    namespace = policy["metadata"]["namespace"]
    for rule in policy["spec"].get(direction.lower()) or ():
        for ports in _ports(rule.get("ports") or ()):
            peers = rule.get(peers_key)
            if not peers:
                yield ports
            for peer in peers or ():
                if "ipBlock" in peer:
                    yield f"{_block(peer['ipBlock'], side)}{ports}"
                elif addresses := cluster.addresses(peer, namespace):
                    yield f"ip {side} {{ {', '.join(sorted(addresses))} }} {ports}"


def _block(block: Manifest, side: str) -> str:
    excluded = f"ip {side} != {{ {', '.join(block['except'])} }} " if block.get("except") else ""
    return f"ip {side} {block['cidr']} {excluded}"


def _ports(ports: Sequence[Manifest]) -> Iterator[str]:
    """Raises BedError for a named port, which no policy of this repository has."""
    if not ports:
        yield ""
    for port in ports:
        protocol = port.get("protocol", "TCP").lower()
        if "port" not in port:
            yield f"meta l4proto {protocol} "
            continue
        if not isinstance(port["port"], int):
            raise BedError(f"a NetworkPolicy with the named port {port['port']!r} is not understood here")
        last = f"-{port['endPort']}" if "endPort" in port else ""
        yield f"{protocol} dport {port['port']}{last} "


def _matches(selector: Manifest, labels: Mapping[str, str] | None) -> bool:
    present = labels or {}
    return all(present.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        _holds(expression, present) for expression in selector.get("matchExpressions") or ()
    )


def _holds(expression: Manifest, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[expression["operator"]]


def main(arguments: list[str]) -> int:
    """Until it is ended; what changes in the cluster is in force within a second."""
    parser = argparse.ArgumentParser(prog="python -m testbed.node.policies", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--also-in", type=Path, action="append", default=[], help="a further network namespace")
    chosen = parser.parse_args(arguments)
    api, in_force = Api(chosen.kubeconfig), ""
    enter = [[], *(["nsenter", f"--net={path}"] for path in chosen.also_in)]
    while True:
        try:
            rules = ruleset(*(api.get(path)["items"] for path in PATHS))
        except (OSError, ApiError) as error:
            print(f"not read: {error}", file=sys.stderr, flush=True)
            rules = in_force
        if rules != in_force:
            for prefix in enter:
                subprocess.run([*prefix, "nft", "--file", "-"], input=rules, text=True, check=True)
            in_force = rules
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

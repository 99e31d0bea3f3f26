"""Commands of az extensions, which no package index carries: what they take, from the pages that describe them.

The extensions are not on the index that az itself comes from: `az extension add` fetches them from an index of
Microsoft's own. The real az refuses their commands without them. So each is checked against this table, and must say in
its remedy which extension it needs. A command that only deletes a resource is none of these: the core command
`az resource delete` does it. Options that an extension adds to a command of az itself are taken off, and the rest is
parsed.
"""

from __future__ import annotations

from dataclasses import dataclass

GLOBAL = frozenset({"--subscription", "--output", "--query"})
SCOPE = frozenset({"--resource-group", "--name"})


@dataclass(frozen=True)
class Added:
    """A command that an extension brings: the options that it needs and those that it knows beside them.

    `page` is the page of learn.microsoft.com/cli/azure that says so.
    """

    extension: str
    page: str
    needed: frozenset[str]
    known: frozenset[str] = frozenset()


_POLICY, _LIST = "dns-resolver/policy", "dns-resolver/domain-list"
COMMANDS = {
    "dns-resolver policy create": Added("dns-resolver", _POLICY, SCOPE, frozenset({"--location", "--tags"})),
    "dns-resolver policy vnet-link create": Added(
        "dns-resolver",
        f"{_POLICY}/vnet-link",
        SCOPE | {"--policy-name", "--virtual-network"},
        frozenset({"--location", "--tags"}),
    ),
    "dns-resolver policy dns-security-rule create": Added(
        "dns-resolver",
        f"{_POLICY}/dns-security-rule",
        SCOPE | {"--policy-name", "--priority", "--action"},
        frozenset({"--location", "--domain-lists", "--rule-state", "--tags"}),
    ),
    "dns-resolver domain-list create": Added(
        "dns-resolver", _LIST, SCOPE, frozenset({"--location", "--domains", "--tags"})
    ),
    "dns-resolver domain-list update": Added("dns-resolver", _LIST, SCOPE, frozenset({"--domains", "--tags"})),
    # an action, which no core command sends
    "network manager post-commit": Added(
        "virtual-network-manager",
        "network/manager",
        frozenset({"--resource-group", "--network-manager-name", "--commit-type", "--target-locations"}),
        frozenset({"--configuration-ids"}),
    ),
    # one rule out of a list of a list: `az resource update --remove` knows places only by number
    "network firewall policy rule-collection-group collection rule remove": Added(
        "azure-firewall",
        "network/firewall/policy/rule-collection-group/collection/rule",
        SCOPE | {"--policy-name", "--rule-collection-group-name", "--collection-name"},
    ),
    # takes the agents out of the cluster as well, which deleting the resource does not
    "connectedk8s delete": Added("connectedk8s", "connectedk8s", SCOPE, frozenset({"--yes"})),
}

# Options and values of `az aks` that only aks-preview knows, and what az itself takes in their place.
OPTIONS = {
    ("--outbound-type", "block"): ("--outbound-type", "none"),
    ("--enable-imds-restriction",): (),
}
OPTIONS_FROM = "aks-preview"

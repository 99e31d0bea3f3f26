"""Commands of az extensions, which no package index carries: what they take, from their sources.

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

    `page` is the page of learn.microsoft.com/cli/azure that describes it. `source` is the file of
    github.com/Azure/azure-cli-extensions that declares these options, at the commit at which it was compared; or
    the article of github.com/MicrosoftDocs/azure-aks-docs that shows the command whole.
    """

    extension: str
    page: str
    source: str
    needed: frozenset[str]
    known: frozenset[str] = frozenset()


_POLICY, _LIST = "dns-resolver/policy", "dns-resolver/domain-list"
_RESOLVER = "src/dns-resolver/azext_dnsresolver/aaz/latest/dns_resolver"
COMMANDS = {
    "dns-resolver policy create": Added(
        "dns-resolver",
        _POLICY,
        f"{_RESOLVER}/policy/_create.py@2f6365af133b",  # api-version 2023-07-01-preview, extension 1.0.0
        SCOPE,
        frozenset({"--location", "--tags"}),
    ),
    # api-version 2025-05-01; with 2023-07-01-preview the first is --dns-resolver-policy-name, which the remedy says
    "dns-resolver policy vnet-link create": Added(
        "dns-resolver",
        f"{_POLICY}/vnet-link",
        f"{_RESOLVER}/policy/vnet_link/_create.py@b7cd347da2cb",
        SCOPE | {"--policy-name", "--virtual-network"},
        frozenset({"--location", "--tags"}),
    ),
    "dns-resolver policy dns-security-rule create": Added(
        "dns-resolver",
        f"{_POLICY}/dns-security-rule",
        f"{_RESOLVER}/policy/dns_security_rule/_create.py@b4d645765dce",  # 2025-05-01, and @2f6365af133b the same
        SCOPE | {"--policy-name", "--priority", "--action", "--domain-lists"},
        frozenset({"--location", "--rule-state", "--tags"}),
    ),
    "dns-resolver domain-list create": Added(
        "dns-resolver",
        _LIST,
        f"{_RESOLVER}/domain_list/_create.py@2f6365af133b",  # 2023-07-01-preview
        SCOPE | {"--domains"},
        frozenset({"--location", "--tags"}),
    ),
    "dns-resolver domain-list update": Added(
        "dns-resolver",
        _LIST,
        f"{_RESOLVER}/domain_list/_update.py@1a51811bd721",  # 2025-05-01
        SCOPE,
        frozenset({"--domains", "--tags"}),
    ),
    # an action, which no core command sends; the manager is --name or --network-manager-name
    "network manager post-commit": Added(
        "virtual-network-manager",
        "network/manager",
        "src/network-manager/azext_network_manager/aaz/latest/network/manager/_post_commit.py@4b01e8b45baf",
        frozenset({"--resource-group", "--network-manager-name", "--commit-type", "--target-locations"}),
        frozenset({"--configuration-ids"}),
    ),
    # one rule out of a list of a list: `az resource update --remove` knows places only by number
    "network firewall policy rule-collection-group collection rule remove": Added(
        "azure-firewall",
        "network/firewall/policy/rule-collection-group/collection/rule",
        "src/azure-firewall/azext_firewall/_params.py@01052dbbb6d3",
        SCOPE | {"--policy-name", "--rule-collection-group-name", "--collection-name"},
    ),
    # the rules of a group, with their sources
    "network firewall policy rule-collection-group show": Added(
        "azure-firewall",
        "network/firewall/policy/rule-collection-group",
        "src/azure-firewall/azext_firewall/_params.py@01052dbbb6d3",
        SCOPE | {"--policy-name"},
    ),
    # the article asks for aks-preview 19.0.0b5 or later and the feature IstioCNIPreview
    "aks mesh enable-istio-cni": Added("aks-preview", "aks/mesh", "articles/aks/istio-cni.md", SCOPE),
    # takes the agents out of the cluster as well, which deleting the resource does not
    "connectedk8s delete": Added(
        "connectedk8s",
        "connectedk8s",
        "src/connectedk8s/azext_connectedk8s/_params.py@009f7cec947c",
        SCOPE,
        frozenset({"--yes", "--force", "--kube-config", "--kube-context", "--skip-ssl-verification"}),
    ),
}

# Options and values of `az aks` that only aks-preview knows, and what az itself takes in their place.
OPTIONS = {
    ("--outbound-type", "block"): ("--outbound-type", "none"),
    ("--enable-imds-restriction",): (),
    ("--ssh-access", "disabled"): (),
}
OPTIONS_FROM = "aks-preview"

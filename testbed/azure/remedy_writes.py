"""Carries out az commands on an estate, as far as `remedy_effects` says what they change.

    carry_out(estate, "az network vnet subnet update --ids ID --default-outbound-access false")

A command that is not in the tables raises NotCarriedOut: nothing is guessed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.azure.baseline.layout import NETWORK as NETWORK_PROVIDER
from testbed.azure.baseline.network import add_rules
from testbed.azure.estate import Body, Estate
from testbed.azure.ids import group_of, name_of, subscription_of, type_of
from testbed.azure.references import refer_back
from testbed.azure.remedy_effects import ADDONS, GROUPS, NETWORK, READS, RULE, UPDATES, Group, Written

# Options of every command, and those that only choose how Azure is asked.
NAMING = {"--ids", "--id", "--subscription", "--resource-group", "--api-version", "--yes", "--cleanup"}
# Azure refuses to delete these while something uses them: learn.microsoft.com/azure/nat-gateway/manage-nat-gateway and
# learn.microsoft.com/azure/virtual-network/ip-services/virtual-network-public-ip-address (delete a public IP address).
REFUSED_WHILE_USED = {
    "microsoft.network/natgateways": ("natGateway",),
    "microsoft.network/publicipaddresses": ("publicIPAddress",),
}


class NotCarriedOut(Exception):
    """The command has no row, or Azure would refuse it; the text says which."""


@dataclass(frozen=True)
class AzCommand:
    """group: the words between `az` and the verb. options: every option with its values."""

    group: str
    verb: str
    options: Mapping[str, tuple[str, ...]]

    @property
    def path(self) -> str:
        return f"az {self.group} {self.verb}"

    @property
    def is_read(self) -> bool:
        return self.verb.startswith(READS)

    def value(self, option: str) -> str:
        """The first value of an option, "" without one."""
        return next(iter(self.options.get(option, ())), "")


def parsed(command: str) -> AzCommand:
    """The words of a command, as a shell splits them."""
    arguments = shlex.split(command)
    if arguments[0] != "az":
        raise NotCarriedOut(f"no row: {arguments[0]}")
    first = next((position for position, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    options: dict[str, list[str]] = {}
    for word in arguments[first:]:
        if word.startswith("--"):
            option = options.setdefault(word, [])
        else:
            option.append(word)
    return AzCommand(
        " ".join(arguments[1 : first - 1]),
        arguments[first - 1],
        {name: tuple(values) for name, values in options.items()},
    )


def carry_out(estate: Estate, command: str) -> None:
    """Changes the estate as the command would. Raises NotCarriedOut, and leaves the estate as it was."""
    az = parsed(command)
    if az.is_read:
        return
    effect = SPECIAL.get(f"{az.group} {az.verb}") or VERBS.get(az.verb)
    if effect is None:
        raise NotCarriedOut(f"no row: {az.path}")
    effect(estate, az)
    refer_back(estate)


def _group(az: AzCommand) -> Group:
    if az.group not in GROUPS:
        raise NotCarriedOut(f"no row: {az.path}")
    return GROUPS[az.group]


def _targets(estate: Estate, az: AzCommand) -> list[str]:
    """The ids that the command names, as options or whole."""
    ids = (*az.options.get("--ids", ()), *az.options.get("--id", ()))
    targets = list(ids) if ids else [_named(estate, az, _group(az))]
    if missing := [target for target in targets if target not in estate]:
        raise NotCarriedOut(f"a resource that the estate does not hold: {missing[0]}")
    return targets


def _named(estate: Estate, az: AzCommand, group: Group) -> str:
    """The id of what names, group and subscription say; a child is named by its parents' names too."""
    names = [az.value(option) for option in group.names]
    namespace, *types = group.kind.split("/")
    top = f"{namespace}/{types[0]}".lower()
    tops = [body["id"] for body in estate.resources.values() if body["type"].lower() == top]
    tops = [top for top in tops if name_of(top).lower() == names[0].lower() and _is_in(top, az)]
    if len(tops) != 1:
        raise NotCarriedOut(f"a resource that the estate does not hold: {len(tops)} are called {names[0]}")
    below = "".join(f"/{kind}/{name}" for kind, name in zip(types[1:], [*names[1:], "default"], strict=False))
    return f"{tops[0]}{below}"


def _is_in(identifier: str, az: AzCommand) -> bool:
    of_group, of_subscription = az.value("--resource-group"), az.value("--subscription")
    return (not of_group or group_of(identifier).lower() == of_group.lower()) and (
        not of_subscription or subscription_of(identifier).lower() == of_subscription.lower()
    )


def _update(estate: Estate, az: AzCommand) -> None:
    rows = UPDATES.get(az.group)
    if rows is None:
        raise NotCarriedOut(f"no row: {az.path}")
    options = az.options.keys() - NAMING - set(_group(az).names) - {"--set", "--remove"}
    if unknown := sorted(options - rows.keys()):
        raise NotCarriedOut(f"no row: {az.path} {unknown[0]}")
    for target in _targets(estate, az):
        # `az resource update` changes the whole body; the other groups show the properties beside name and id.
        body = estate[target] if az.group == "resource" else estate.properties(target)
        for option in options:
            put(body, rows[option].path, _value(rows[option], az.options[option]))
        for assignment in az.options.get("--set", ()):
            path, _, text = assignment.partition("=")
            put(body, path, _typed(text))
        removed = az.options.get("--remove", ())
        if removed[1:] and removed[1].isdigit():
            _remove_entry(body, *removed)
        else:
            for path in removed:
                _remove(body, path)


def _value(row: Written, texts: tuple[str, ...]) -> Any:
    if not texts:
        return row.flag
    return row.values.get(texts[0], _typed(texts[0]))


def _typed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def put(body: Body, path: str, value: Any) -> None:
    """Writes a property, and the objects around it that are not there."""
    *outer, last = path.split(".")
    for name in outer:
        if body.get(name) is None:
            body[name] = {}
        body = body[name]
    body[last] = value


def _remove(body: Body, path: str) -> None:
    *outer, last = path.split(".")
    for name in outer:
        body = body.get(name) or {}
    for key in [key for key in body if key.lower() == last.lower()]:
        del body[key]


def _remove_entry(body: Body, path: str, place: str) -> None:
    """learn.microsoft.com/cli/azure/resource: --remove LIST INDEX takes one entry out of a list."""
    *outer, last = path.split(".")
    for name in outer:
        body = body[name]
    if int(place) >= len(body[last]):
        raise NotCarriedOut(f"Azure refuses it: {path} has no entry {place}")
    del body[last][int(place)]


def _delete(estate: Estate, az: AzCommand) -> None:
    _group(az)
    for target in _targets(estate, az):
        for field in REFUSED_WHILE_USED.get(type_of(target).lower(), ()):
            if any(_refers(body, field, target) for body in estate.resources.values()):
                raise NotCarriedOut(f"Azure refuses it while something uses the resource: {az.path}")
        _forget(estate, target)
        estate.remove(target)


def _refers(body: Any, field: str, target: str) -> bool:
    """Whether a property of this name, at any depth, names the resource."""
    match body:
        case dict():
            named = body.get(field)
            if isinstance(named, dict) and str(named.get("id", "")).lower() == target.lower():
                return True
            return any(_refers(value, field, target) for value in body.values())
        case list():
            return any(_refers(value, field, target) for value in body)
    return False


def _forget(estate: Estate, target: str) -> None:
    """Takes away what Azure itself wrote elsewhere: connections of a private endpoint, a network's flow logs.

    learn.microsoft.com/azure/private-link/manage-private-endpoint; flowLogs is a read-only property of a network:
    learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/get.
    """
    for body in estate.resources.values():
        properties = body.get("properties", {})
        if connections := properties.get("privateEndpointConnections"):
            properties["privateEndpointConnections"] = [
                connection for connection in connections if not _refers(connection, "privateEndpoint", target)
            ]
        if logs := properties.get("flowLogs"):
            properties["flowLogs"] = [log for log in logs if log["id"].lower() != target.lower()]


def _reject(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/azure/private-link/manage-private-endpoint: the connection stays, as Rejected."""
    for target in _targets(estate, az):
        put(estate.properties(target), "privateLinkServiceConnectionState.status", "Rejected")


def _disable_addons(estate: Estate, az: AzCommand) -> None:
    for name in az.value("--addons").split(","):
        if name not in ADDONS:
            raise NotCarriedOut(f"no row: {az.path} --addons {name}")
        put(estate.properties(_targets(estate, az)[0]), f"addonProfiles.{ADDONS[name]}.enabled", False)


def _create_rule(estate: Estate, az: AzCommand) -> None:
    if unknown := sorted(az.options.keys() - NAMING - RULE.keys() - {"--nsg-name", "--name"}):
        raise NotCarriedOut(f"no row: {az.path} {unknown[0]}")
    target = _named(estate, az, _group(az))
    properties = {name: _typed(az.value(option)) for option, name in RULE.items()}
    if target in estate:
        estate.remove(target)
    estate.add(target, {name: str(value) if name != "priority" else value for name, value in properties.items()})


def _create_security_group(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/cli/azure/network/nsg: a group without rules of its own, in the region of its resource group.

    What a group of this name held before is replaced: the command is a PUT.
    """
    group = f"/subscriptions/{az.value('--subscription')}/resourceGroups/{az.value('--resource-group')}"
    target = f"{group}/{NETWORK_PROVIDER}/networkSecurityGroups/{az.value('--name')}"
    if target in estate:
        estate.remove(target)
    add_rules(estate, target, [])


def _make_nodes_again(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/azure/aks/node-image-upgrade: every node is made again, from the pool's own settings.

    What somebody changed at the scale set is lost then: learn.microsoft.com/azure/aks/support-policies.
    """
    (pool,) = _targets(estate, az)
    is_public = bool(estate.properties(pool).get("enableNodePublicIP"))
    for scale_set in estate.of_type("Microsoft.Compute/virtualMachineScaleSets"):
        if is_public or scale_set.get("tags", {}).get("aks-managed-poolName") != name_of(pool):
            continue
        profile = scale_set["properties"]["virtualMachineProfile"]["networkProfile"]
        for interface in profile["networkInterfaceConfigurations"]:
            for configuration in interface["properties"]["ipConfigurations"]:
                configuration["properties"].pop("publicIPAddressConfiguration", None)
        for identifier in [
            resource for resource in estate.resources if resource.startswith(f"{scale_set['id']}/".lower())
        ]:
            _without_public_address(estate, identifier)


def _without_public_address(estate: Estate, instance_child: str) -> None:
    """The interface of an instance has the addresses of the model; a public one of its own is deleted with it."""
    if type_of(instance_child).lower().endswith("/publicipaddresses"):
        estate.remove(instance_child)
        return
    for configuration in estate.properties(instance_child).get("ipConfigurations", ()):
        configuration["properties"].pop("publicIPAddress", None)


def _revoke(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/rest/api/compute/disks/revoke-access: a disk that was read by a link has the state before."""
    for target in _targets(estate, az):
        properties = estate.properties(target)
        if str(properties.get("diskState", "")).startswith("ActiveSAS"):
            properties["diskState"] = "Attached" if estate[target].get("managedBy") else "Unattached"


def _detach(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/cli/azure/vm/disk: the machine's storageProfile.dataDisks, and what the disk shows of it.

    learn.microsoft.com/rest/api/compute/disks/get: managedBy, and of a shared disk managedByExtended and shareInfo.
    """

    def is_machine(identifier: str) -> bool:
        return name_of(identifier).lower() == az.value("--vm-name").lower() and _is_in(identifier, az)

    for disk in estate.of_type("Microsoft.Compute/disks"):
        if disk["name"].lower() != az.value("--name").lower():
            continue
        if is_machine(disk.get("managedBy") or ""):
            del disk["managedBy"]
        if holders := disk.get("managedByExtended"):
            disk["managedByExtended"] = [holder for holder in holders if not is_machine(holder)]
        if shares := disk["properties"].get("shareInfo"):
            disk["properties"]["shareInfo"] = [share for share in shares if not is_machine(share["vmUri"])]
    for machine in estate.of_type("Microsoft.Compute/virtualMachines"):
        disks = machine["properties"].get("storageProfile", {}).get("dataDisks")
        if disks and is_machine(machine["id"]):
            machine["properties"]["storageProfile"]["dataDisks"] = [
                disk for disk in disks if name_of(disk["managedDisk"]["id"]).lower() != az.value("--name").lower()
            ]


def _disable_routing(estate: Estate, az: AzCommand) -> None:
    put(estate.properties(_targets(estate, az)[0]), "ingressProfile.webAppRouting.enabled", False)


def _disable_gateways(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/azure/aks/istio-deploy-ingress: serviceMeshProfile.istio.components of the cluster."""
    cluster = _named(estate, az, GROUPS["aks"])
    components = estate.properties(cluster)["serviceMeshProfile"]["istio"]["components"]
    for gateway in components.get("ingressGateways", ()):
        if gateway["mode"].lower() == az.value("--ingress-gateway-type").lower():
            gateway["enabled"] = False
    for gateway in components.get("egressGateways", ()):
        if gateway["name"] == az.value("--istio-egressgateway-name"):
            gateway["enabled"] = False


def _delete_pool(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/azure/aks/delete-node-pool: the pool's machines go with it, so its scale set does too."""
    for scale_set in estate.of_type("Microsoft.Compute/virtualMachineScaleSets"):
        if scale_set.get("tags", {}).get("aks-managed-poolName", "").lower() == az.value("--name").lower():
            estate.remove(scale_set["id"])
    _delete(estate, az)


def _remove_firewall_rule(estate: Estate, az: AzCommand) -> None:
    """azure/templates/microsoft.network/firewallpolicies/rulecollectiongroups: ruleCollections, with their rules."""
    options = ("--policy-name", "--rule-collection-group-name")
    group = _named(estate, az, Group(f"{NETWORK}/firewallPolicies/ruleCollectionGroups", options))
    if group not in estate:
        raise NotCarriedOut(f"a resource that the estate does not hold: {group}")
    for collection in estate.properties(group)["ruleCollections"]:
        if collection["name"].lower() == az.value("--collection-name").lower():
            named = az.value("--name").lower()
            collection["rules"] = [rule for rule in collection["rules"] if rule["name"].lower() != named]


def _remove_registry_rule(estate: Estate, az: AzCommand) -> None:
    """learn.microsoft.com/cli/azure/acr/network-rule: an entry of networkRuleSet.ipRules, by its value."""
    registry = _named(estate, az, GROUPS["acr"])
    rules = estate.properties(registry)["networkRuleSet"]
    rules["ipRules"] = [rule for rule in rules["ipRules"] if rule["value"] != az.value("--ip-address")]


Effect = Callable[[Estate, AzCommand], None]
VERBS: dict[str, Effect] = {"update": _update, "delete": _delete}
SPECIAL: dict[str, Effect] = {
    "acr network-rule remove": _remove_registry_rule,
    "aks approuting disable": _disable_routing,
    "aks disable-addons": _disable_addons,
    "aks mesh disable-egress-gateway": _disable_gateways,
    "aks mesh disable-ingress-gateway": _disable_gateways,
    "aks nodepool delete": _delete_pool,
    "aks nodepool upgrade": _make_nodes_again,
    "disk revoke-access": _revoke,
    "network firewall policy rule-collection-group collection rule remove": _remove_firewall_rule,
    "network nsg create": _create_security_group,
    "network nsg rule create": _create_rule,
    "network private-endpoint-connection reject": _reject,
    "snapshot revoke-access": _revoke,
    "vm disk detach": _detach,
}

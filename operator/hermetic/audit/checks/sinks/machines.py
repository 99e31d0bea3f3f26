"""Azure's access to machines beside the network: extensions, the serial console, taps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.checks.sinks import machine_commands
from hermetic.audit.checks.sinks.machine_commands import NODE_SCRIPT, OF_AKS, OF_MICROSOFT, STARTS_NODES
from hermetic.audit.cluster_scope import instances_of, pools_of, scale_sets_of, whole_or_unknown
from hermetic.audit.egress.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.machines import VirtualMachine, VirtualMachineExtension, VirtualMachineRunCommand
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.azure.vnet import (
    ApplicationProfile,
    BootDiagnostics,
    MachineExtension,
    MachineProfile,
    NicFields,
    ScaleSet,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation import Judgement, cannot_say, fails, passes, whatever_is_damaged
from hermetic.audit.findings import Severity
from hermetic.audit.held_identities import standing_machines
from hermetic.audit.hops import NODE, Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_or_none, throughout
from hermetic.audit.topology import PlaceKind


@check("vmss-extensions")
def vmss_extensions(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Extensions of every scale set model and every machine, and run commands that the agents report.

    They are code that runs as root and is installed through ARM.
    """

    def judge(scale_set: ScaleSet) -> Iterator[Judgement]:
        profile = scale_set.virtual_machine_profile or MachineProfile()
        found = profile.extension_profile.extensions if profile.extension_profile is not None else []
        instances = instances_of(estate, scale_set)
        at = Hop(PlaceKind.OTHER, f"scale set {scale_set.name}")
        yield from _extensions(scale_set.id, at, found, (scale_set, instances), {NODE_SCRIPT})
        yield from _applications(scale_set, at, profile.application_profile)
        yield from machine_commands.beyond_the_model(scale_set, instances, found)

    none = "the node resource group holds no scale set"
    yield from each_or_none(estate.cluster, scale_sets_of(estate), judge, none, pools_of(estate))
    yield from _of_machines(estate)


def _applications(
    holder: ScaleSet | VirtualMachine, at: Hop, profile: ApplicationProfile | None
) -> Iterator[Judgement]:
    packages = profile.gallery_applications if profile is not None else []
    if packages:
        words = f"VM applications: {', '.join(one.package_reference_id or 'without a name' for one in packages)}"
        path = path_of(at, "VM application", NODE, "what its scripts call")
        yield fails(holder.id, "ApplicationOfOthers", words, holder, paths=(path,))


def _of_machines(estate: Estate) -> Iterator[Judgement]:
    """Nodes of a pool of type VirtualMachines, and of a flexible scale set.

    Azure runs one custom script per machine, and AKS needs it to create a node: under any name, it counts as that of
    AKS.
    """
    looks: list[Observation] = []
    for machine in standing_machines(estate, looks):
        listed = estate.every(VirtualMachineExtension, machine.id)
        commands = estate.every(VirtualMachineRunCommand, machine.id)
        yield from whatever_is_damaged(machine.id, _of_machine(machine, listed, commands))
    yield from whole_or_unknown(estate.cluster, "machines that are no instances of a scale set", *looks)


def _of_machine(
    machine: VirtualMachine, listed: Listing[VirtualMachineExtension], commands: Listing[VirtualMachineRunCommand]
) -> Iterator[Judgement]:
    found = [one.code or MachineExtension(name=one.name) for one in listed]
    scripts = {one.name.lower() for one in found if _kind_of(one) in STARTS_NODES}
    known = scripts if len(scripts) == 1 else set[str]()
    at = hops.machine(f"machine {name_of(machine.id)}")
    looks: tuple[Observation, ...] = (listed, commands, machine, *listed.items)
    yield from _extensions(machine.id, at, found, looks, known)
    yield from _applications(machine, at, machine.application_profile)
    yield from machine_commands.kept_at(machine, commands)
    yield from machine_commands.beyond_the_list(machine, found)


def _extensions(
    holder: str, at: Hop, found: Sequence[MachineExtension], looks: tuple[Observation, ...], scripts: set[str]
) -> Iterator[Judgement]:
    """`scripts`: names, in lower case, of the custom scripts that count as the one of AKS."""
    agents = [_words(one) for one in found if _is_agent(one)]
    others = [_words(one) for one in found if not _is_of_aks(one, scripts) and not _is_agent(one)]
    path = path_of(at, "extension", NODE, "what its code calls")
    if others:
        words = f"extensions that are not those of AKS: {', '.join(others)}"
        yield fails(holder, "ExtensionOfOthers", words, *looks, paths=(path,))
    if agents:
        words = f"agents of Microsoft beside those of AKS: {', '.join(agents)}"
        yield fails(holder, "MonitoringAgent", words, *looks, paths=(path,), severity=Severity.MEDIUM)
    if not (others or agents):
        yield passes(holder, "AksOnly", f"{len(found)} extensions, all of AKS", *looks)


def _kind_of(one: MachineExtension) -> tuple[str, str]:
    return (one.publisher or "").lower(), (one.type or "").lower()


def _is_of_aks(one: MachineExtension, scripts: set[str]) -> bool:
    is_script = _kind_of(one) in STARTS_NODES and one.name.lower() in scripts
    return _kind_of(one) in OF_AKS or (is_script and not (one.settings is not None and one.settings.file_uris))


def _is_agent(one: MachineExtension) -> bool:
    return (one.publisher or "").lower() in OF_MICROSOFT


def _words(one: MachineExtension) -> str:
    told = f"{one.name or 'without a name'} ({one.publisher or '?'}/{one.type or '?'})"
    uris = one.settings.file_uris if one.settings is not None else []
    return f"{told} from {', '.join(uris)}" if uris else told


@check("vmss-boot-diagnostics")
def vmss_boot_diagnostics(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Where the serial console log is stored: root on a node can write to it, and reading it needs no network."""

    def judge(scale_set: ScaleSet) -> Iterator[Judgement]:
        profile = scale_set.virtual_machine_profile or MachineProfile()
        diagnostics = profile.diagnostics_profile.boot_diagnostics if profile.diagnostics_profile is not None else None
        said = diagnostics or BootDiagnostics(enabled=False)
        if said.storage_uri:
            yield _kept(estate, policy, scale_set, said.storage_uri)
        elif said.enabled:
            words = "the serial console is kept in storage that Azure manages, for those who may read the machines"
            yield passes(scale_set.id, "ManagedStorage", words, scale_set)
        else:
            yield passes(scale_set.id, "NotKept", "the serial console is not kept", scale_set)

    none = "the node resource group holds no scale set"
    yield from each_or_none(estate.cluster, scale_sets_of(estate), judge, none, pools_of(estate))


def _kept(estate: Estate, policy: Policy, scale_set: ScaleSet, uri: str) -> Judgement:
    """Accounts are matched by the first label of their address, which is unique within a cloud."""
    name = uri.partition("://")[2].partition("/")[0].partition(".")[0].lower()
    accounts = throughout(estate, policy, StorageAccount)
    if any(one.name.lower() == name for one in accounts):
        words = f"the serial console is kept in storage account {name}, in a subscription of ours"
        return passes(scale_set.id, "OurAccount", words, scale_set, accounts)
    words = f"the serial console is kept at {uri}, and no storage account of ours is called {name!r}"
    if accounts.problem is not None:
        return cannot_say(scale_set.id, "AccountNotSeen", words, accounts, scale_set)
    path = path_of(NODE, "serial console", hops.storage(f"storage account {name} of others"))
    return fails(scale_set.id, "ForeignAccount", words, scale_set, accounts, paths=(path,))


@check("nic-tap")
def nic_tap(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Virtual network taps send a copy of every packet of an interface to a collector."""
    nics, looks = interfaces_in_the_networks(estate, policy)
    broken: list[Observation] = []
    tapped = False
    for nic, found in readable(nics, _tapped, broken):
        if found:
            tapped = True
            words = f"its packets are copied to {', '.join(found)}"
            path = path_of(name_of(nic.id), "virtual network tap", "its collector")
            fill = {"ATTACHED_ID": [one.id for one in nic.tap_configurations if one.id]}
            yield fails(nic.id, "Tapped", words, nic, paths=(path,), fill=fill)
    every = (*looks, *broken)
    if tapped:
        yield from whole_or_unknown(estate.cluster, "interfaces in the networks", *every)
    else:
        words = f"{len(nics)} interfaces in the networks, and none is tapped"
        yield passes(estate.cluster, "NoTap", words, *every)


def _tapped(nic: NicFields) -> list[str]:
    return [
        one.virtual_network_tap.id if one.virtual_network_tap is not None else one.id or "a tap without a name"
        for one in nic.tap_configurations
    ]

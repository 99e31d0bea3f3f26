"""Azure's access to machines beside the network: extensions, the serial console, taps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermetic.api.text import first_of
from hermetic.audit import hops
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster_scope import found_or_none, instances_of, whole_or_unknown
from hermetic.audit.egress.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.machines import (
    InstanceView,
    Machine,
    MachineAgent,
    OwnExtension,
    ScaleSetInstance,
    VirtualMachine,
    VirtualMachineExtension,
    VirtualMachineRunCommand,
)
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.azure.vnet import (
    ApplicationProfile,
    BootDiagnostics,
    ExtensionSettings,
    MachineExtension,
    MachineProfile,
    NicFields,
    ScaleSet,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown, unreadable, whatever_is_damaged
from hermetic.audit.findings import Severity
from hermetic.audit.held_identities import standing_machines
from hermetic.audit.hops import NODE, Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.reachable_networks import each_scale_set, throughout
from hermetic.audit.topology import PlaceKind
from hermetic.errors import FactDamaged

OF_AKS = {
    ("microsoft.aks", "compute.aks.linux.aksnode"),
    ("microsoft.aks", "compute.aks.windows.aksnode"),
    ("microsoft.aks", "compute.aks.linux.billing"),
    ("microsoft.aks", "compute.aks.windows.billing"),
}
"""Extensions that AKS installs on its machines: publisher and type, as scale sets of AKS list them."""
STARTS_NODES = {("microsoft.azure.extensions", "customscript"), ("microsoft.compute", "customscriptextension")}
NODE_SCRIPT = "vmsscse"
"""AKS's one custom script, which joins a machine to the cluster; its command is in protected settings."""
OF_MICROSOFT = {
    "microsoft.azure.monitor", "microsoft.azure.security.monitoring", "microsoft.azure.azuredefenderforservers",
    "microsoft.guestconfiguration", "microsoft.managedservices", "microsoft.managedidentity",
}  # fmt: skip
"""Agents that a tenant's policies often install: they send to Azure, which a private link scope can restrict."""
READY = "provisioningstate/succeeded"
AKS_KINDS = {".".join(one) for one in OF_AKS}
SCRIPT_KINDS = {".".join(one) for one in STARTS_NODES}
FIRST = 3


@dataclass(frozen=True, slots=True)
class _Code:
    """Code on a machine: a description, and publisher and type of its handler in lower case as far as reported.

    The agent of a machine reports the handlers that it runs. An extension of a single instance has one, and so has a
    run command: Microsoft.CPlat.Core with RunCommandHandlerLinux where Azure keeps the command as a resource, and with
    RunCommandLinux where it is an action. A machine whose agent reports nothing is Unknown. Stored run commands are
    listed only for machines that are no scale set instances; for instances that would be one request per node.
    """

    words: str
    kind: str

    @property
    def is_agent(self) -> bool:
        return any(f"{self.kind}.".startswith(f"{publisher}.") for publisher in OF_MICROSOFT)


def beyond_the_model(
    scale_set: ScaleSet, instances: Listing[ScaleSetInstance], model: Sequence[MachineExtension]
) -> Iterator[CheckResult]:
    """Code of instances beside the model; the model itself is evaluated by vmss-extensions."""
    silent: list[str] = []
    damaged: list[Observation] = []
    for one in instances:
        try:
            yield from _findings(one, model)
            if not _reports(one):
                silent.append(_name(one))
        except FactDamaged as damage:
            damaged.append(unreadable(damage))
            silent.append(_name(one))
    if silent:
        some = ", ".join(sorted(silent)[:FIRST])
        words = f"{len(silent)} of {len(instances.items)} instances do not show what their agent runs, such as {some}"
        why = "they are stopped, or the agent is not ready"
        yield unknown(scale_set.id, "AgentSilent", f"{words}: {why}", instances, *damaged)


def beyond_the_list(machine: Machine, listed: Sequence[MachineExtension]) -> Iterator[CheckResult]:
    """Code of a machine that is no scale set instance, beside the extensions listed for it."""
    yield from _findings(machine, listed)
    if not _reports(machine):
        words = f"machine {_name(machine)} does not show what its agent runs: it is stopped, or the agent is not ready"
        yield unknown(machine.id, "AgentSilent", words, machine)


def kept_at(machine: VirtualMachine, commands: Listing[VirtualMachineRunCommand]) -> Iterator[CheckResult]:
    """Run commands stored at a machine, whether its agent has run them or not."""
    if commands.items:
        names = sorted(one.name or name_of(one.id) for one in commands)
        words = f"machine {_name(machine)} has run commands that Azure keeps: {first_of(names, FIRST)}"
        path = path_of(hops.machine(f"machine {_name(machine)}"), "run command", NODE, "what its script calls")
        yield fails(machine.id, "CodeOnOneMachine", words, commands, paths=(path,))


def _findings(machine: Machine, known: Sequence[MachineExtension]) -> Iterator[CheckResult]:
    found = list(_beside(machine, known))
    path = path_of(hops.machine(f"machine {_name(machine)}"), "extension or run command", NODE, "what its code calls")
    if others := [one.words for one in found if not one.is_agent]:
        words = f"machine {_name(machine)} has code that is not that of AKS: {', '.join(others)}"
        yield fails(machine.id, "CodeOnOneMachine", words, machine, paths=(path,))
    if agents := [one.words for one in found if one.is_agent]:
        words = f"machine {_name(machine)} has agents of Microsoft beside those of AKS: {', '.join(agents)}"
        yield fails(machine.id, "MonitoringAgent", words, machine, paths=(path,), severity=Severity.MEDIUM)


def _beside(machine: Machine, known: Sequence[MachineExtension]) -> Iterator[_Code]:
    """Code beside `known`: by extension where one is named, otherwise by handler."""
    names = {one.name.lower() for one in known}
    kinds = {f"{one.publisher or ''}.{one.type or ''}".lower() for one in known} | AKS_KINDS
    view = machine.instance_view or InstanceView()
    named: set[str] = set()
    for one in view.extensions or []:
        kind, name = (one.type or "").lower(), one.name or ""
        is_node_script = kind in SCRIPT_KINDS and name.lower() == NODE_SCRIPT
        if kind not in AKS_KINDS and name.lower() not in names and not is_node_script:
            yield _Code(f"{name or 'without a name'} ({one.type or '?'})", kind)
        named.add(kind)
    for handler in (view.vm_agent or MachineAgent()).extension_handlers or []:
        kind = (handler.type or "").lower()
        if kind not in kinds | named:
            yield _Code(f"handler {handler.type or 'without a type'}", kind)
    listed = {(one.name or "").lower() for one in view.extensions or []}
    yield from _own(machine.resources or [], known, listed - names)


def _own(kept: Sequence[OwnExtension], known: Sequence[MachineExtension], names: set[str]) -> Iterator[_Code]:
    """Extensions stored at the machine that the agent did not report, or that fetch files which the model does not."""
    uris = {one.name.lower(): _uris(one.settings) for one in known}
    for one in kept:
        name, publisher = one.name.rpartition("/")[2], (one.publisher or "").lower()
        is_known = name.lower() in {*uris, *names, NODE_SCRIPT} or publisher == "microsoft.aks"
        fetched = sorted(_uris(one.settings) - uris.get(name.lower(), set()))
        if fetched or not is_known:
            words = f"{name or 'without a name'} ({one.publisher or '?'})"
            yield _Code(f"{words} from {', '.join(fetched)}" if fetched else words, publisher)


def _uris(settings: ExtensionSettings | None) -> set[str]:
    return set(settings.file_uris) if settings is not None else set()


def _reports(machine: Machine) -> bool:
    """Whether a ready agent reports handlers. AKS has its own on every node, so an empty list is no report."""
    agent = (machine.instance_view or InstanceView()).vm_agent or MachineAgent()
    return bool(agent.extension_handlers) and any((one.code or "").lower() == READY for one in agent.statuses or [])


def _name(machine: Machine) -> str:
    return machine.name or name_of(machine.id)


@check("vmss-extensions")
def vmss_extensions(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Extensions of every scale set model and every machine, and run commands that the agents report.

    They are code that runs as root and is installed through ARM.
    """

    def evaluate(scale_set: ScaleSet) -> Iterator[CheckResult]:
        profile = scale_set.virtual_machine_profile or MachineProfile()
        found = profile.extension_profile.extensions if profile.extension_profile is not None else []
        instances = instances_of(estate, scale_set)
        at = Hop(PlaceKind.OTHER, f"scale set {scale_set.name}")
        yield from _extensions(scale_set.id, at, found, (scale_set, instances), {NODE_SCRIPT})
        yield from _applications(scale_set, at, profile.application_profile)
        yield from beyond_the_model(scale_set, instances, found)

    yield from each_scale_set(estate, policy, evaluate)
    yield from _of_machines(estate)


def _applications(
    holder: ScaleSet | VirtualMachine, at: Hop, profile: ApplicationProfile | None
) -> Iterator[CheckResult]:
    packages = profile.gallery_applications if profile is not None else []
    if packages:
        words = f"VM applications: {', '.join(one.package_reference_id or 'without a name' for one in packages)}"
        path = path_of(at, "VM application", NODE, "what its scripts call")
        yield fails(holder.id, "ApplicationOfOthers", words, holder, paths=(path,))


def _of_machines(estate: Estate) -> Iterator[CheckResult]:
    """Nodes of a pool of type VirtualMachines, and of a flexible scale set.

    Azure runs one custom script per machine, and AKS needs it to create a node: under any name, it counts as that of
    AKS.
    """
    observations: list[Observation] = []
    for machine in standing_machines(estate, observations):
        listed = estate.every(VirtualMachineExtension, machine.id)
        commands = estate.every(VirtualMachineRunCommand, machine.id)
        yield from whatever_is_damaged(machine.id, _of_machine(machine, listed, commands))
    yield from whole_or_unknown(estate.cluster, "machines that are no instances of a scale set", *observations)


def _of_machine(
    machine: VirtualMachine, listed: Listing[VirtualMachineExtension], commands: Listing[VirtualMachineRunCommand]
) -> Iterator[CheckResult]:
    found = [one.code or MachineExtension(name=one.name) for one in listed]
    scripts = {one.name.lower() for one in found if _kind_of(one) in STARTS_NODES}
    known = scripts if len(scripts) == 1 else set[str]()
    at = hops.machine(f"machine {name_of(machine.id)}")
    observations: tuple[Observation, ...] = (listed, commands, machine, *listed.items)
    yield from _extensions(machine.id, at, found, observations, known)
    yield from _applications(machine, at, machine.application_profile)
    yield from kept_at(machine, commands)
    yield from beyond_the_list(machine, found)


def _extensions(
    holder: str, at: Hop, found: Sequence[MachineExtension], observations: tuple[Observation, ...], scripts: set[str]
) -> Iterator[CheckResult]:
    """`scripts`: names, in lower case, of the custom scripts that count as the one of AKS."""
    agents = [_words(one) for one in found if _is_agent(one)]
    others = [_words(one) for one in found if not _is_of_aks(one, scripts) and not _is_agent(one)]
    path = path_of(at, "extension", NODE, "what its code calls")
    if others:
        words = f"extensions that are not those of AKS: {', '.join(others)}"
        yield fails(holder, "ExtensionOfOthers", words, *observations, paths=(path,))
    if agents:
        words = f"agents of Microsoft beside those of AKS: {', '.join(agents)}"
        yield fails(holder, "MonitoringAgent", words, *observations, paths=(path,), severity=Severity.MEDIUM)
    if not (others or agents):
        yield passes(holder, "AksOnly", f"{len(found)} extensions, all of AKS", *observations)


def _kind_of(one: MachineExtension) -> tuple[str, str]:
    return (one.publisher or "").lower(), (one.type or "").lower()


def _is_of_aks(one: MachineExtension, scripts: set[str]) -> bool:
    is_script = _kind_of(one) in STARTS_NODES and one.name.lower() in scripts
    return _kind_of(one) in OF_AKS or (is_script and not (one.settings is not None and one.settings.file_uris))


def _is_agent(one: MachineExtension) -> bool:
    return (one.publisher or "").lower() in OF_MICROSOFT


def _words(one: MachineExtension) -> str:
    words = f"{one.name or 'without a name'} ({one.publisher or '?'}/{one.type or '?'})"
    uris = one.settings.file_uris if one.settings is not None else []
    return f"{words} from {', '.join(uris)}" if uris else words


@check_each("vmss-boot-diagnostics", each_scale_set)
def vmss_boot_diagnostics(estate: Estate, policy: Policy, scale_set: ScaleSet) -> Iterator[CheckResult]:
    """Where the serial console log is stored: root on a node can write to it, and reading it needs no network."""
    profile = scale_set.virtual_machine_profile or MachineProfile()
    diagnostics = profile.diagnostics_profile.boot_diagnostics if profile.diagnostics_profile is not None else None
    settings = diagnostics or BootDiagnostics(enabled=False)
    if settings.storage_uri:
        yield _kept(estate, policy, scale_set, settings.storage_uri)
    elif settings.enabled:
        words = "the serial console is kept in storage that Azure manages, for those who may read the machines"
        yield passes(scale_set.id, "ManagedStorage", words, scale_set)
    else:
        yield passes(scale_set.id, "NotKept", "the serial console is not kept", scale_set)


def _kept(estate: Estate, policy: Policy, scale_set: ScaleSet, uri: str) -> CheckResult:
    """Accounts are matched by the first label of their address, which is unique within a cloud."""
    name = uri.partition("://")[2].partition("/")[0].partition(".")[0].lower()
    accounts = throughout(estate, policy, StorageAccount)
    if any(one.name.lower() == name for one in accounts):
        words = f"the serial console is kept in storage account {name}, in a subscription of ours"
        return passes(scale_set.id, "OurAccount", words, scale_set, accounts)
    words = f"the serial console is kept at {uri}, and no storage account of ours is called {name!r}"
    if accounts.problem is not None:
        return unknown(scale_set.id, "AccountNotSeen", words, accounts, scale_set)
    path = path_of(NODE, "serial console", hops.storage(f"storage account {name} of others"))
    return fails(scale_set.id, "ForeignAccount", words, scale_set, accounts, paths=(path,))


@check("nic-tap")
def nic_tap(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Virtual network taps send a copy of every packet of an interface to a collector."""
    nics, observations = interfaces_in_the_networks(estate, policy)
    broken: list[Observation] = []
    tapped = False
    for nic, found in readable(nics, _tapped, broken):
        if found:
            tapped = True
            words = f"its packets are copied to {', '.join(found)}"
            path = path_of(name_of(nic.id), "virtual network tap", "its collector")
            fill = {"ATTACHED_ID": [one.id for one in nic.tap_configurations if one.id]}
            yield fails(nic.id, "Tapped", words, nic, paths=(path,), fill=fill)
    every = (*observations, *broken)
    none = ("NoTap", f"{len(nics)} interfaces in the networks, and none is tapped")
    yield from found_or_none(estate.cluster, tapped, "interfaces in the networks", none, *every)


def _tapped(nic: NicFields) -> list[str]:
    return [
        one.virtual_network_tap.id if one.virtual_network_tap is not None else one.id or "a tap without a name"
        for one in nic.tap_configurations
    ]

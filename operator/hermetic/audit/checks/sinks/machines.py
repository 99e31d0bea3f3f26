"""Azure's access to machines beside the network: extensions, the serial console, taps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermetic.api.text import first_of
from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import instances_of
from hermetic.audit.cluster.resource_lookup import interfaces_in_the_networks, readable
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
from hermetic.audit.estate.observation import Listing, Observation, unreadable
from hermetic.audit.evaluation.each_resource import each_scale_set, found_or_none, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import NODE, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.held_identities import standing_machines
from hermetic.audit.scope.reachable_networks import throughout
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
ENTRA_LOGIN = ("microsoft.azure.activedirectory", "aadsshloginforlinux")
"""Installed on pools with `sshAccess: EntraId` (learn.microsoft.com/azure/aks/manage-ssh-node-access, limitations)."""
READY = "provisioningstate/succeeded"
AKS_KINDS = {".".join(kind) for kind in OF_AKS}
SCRIPT_KINDS = {".".join(kind) for kind in STARTS_NODES}
FIRST = 3
SILENT = """\
Audit again when these machines are ready. Start or deallocate a machine that is stopped: a deallocated one runs nothing
and is evaluated by the model. Where a running machine stays silent, replace its node.
"""


LOCAL_LOGIN = """\
The extension signs people in by Entra ID, which nodes must reach for it. AKS installs it on a pool with the SSH access
EntraId: choose another, then replace the nodes. The first command needs the az extension aks-preview.
Warning: each node is drained and made again.
az aks nodepool update --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --cluster-name CLUSTER_NAME \\
--name POOL_NAME --ssh-access disabled
az aks nodepool upgrade --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP \\
--cluster-name CLUSTER_NAME --name POOL_NAME --node-image-only
Where a policy of the tenant installs the extension instead, exempt the node resource group from it.
"""


@dataclass(frozen=True, slots=True)
class _Code:
    """Code on a machine: a description, and publisher and type of its handler in lower case as far as reported.

    The agent of a machine reports the handlers that it runs. An extension of a single instance has one, and so has a
    run command: Microsoft.CPlat.Core with RunCommandHandlerLinux where Azure keeps the command as a resource, and with
    RunCommandLinux where it is an action. A machine whose agent reports nothing is Unknown. Stored run commands are
    listed only for machines that are no scale set instances; for instances that would be one request per node.
    """

    description: str
    kind: str

    @property
    def is_agent(self) -> bool:
        return any(f"{self.kind}.".startswith(f"{publisher}.") for publisher in OF_MICROSOFT)


def beyond_the_model(
    scale_set: ScaleSet, instances: Listing[ScaleSetInstance], model: Sequence[MachineExtension]
) -> Iterator[CheckResult]:
    """Code of instances beside the model; the model itself is evaluated by vmss-extensions."""
    silent: list[str] = []
    deallocated = 0
    damaged: list[Observation] = []
    for instance in instances:
        try:
            yield from _findings(instance, model)
            if instance.is_deallocated:
                deallocated += 1
            elif not _reports(instance):
                silent.append(_name(instance))
        except FactDamaged as damage:
            damaged.append(unreadable(damage))
            silent.append(_name(instance))
    if deallocated:
        message = (
            f"{deallocated} of {len(instances.items)} instances are deallocated and run nothing: the model decides"
        )
        yield passes(scale_set.id, "Deallocated", message, scale_set, instances)
    if silent:
        some = ", ".join(sorted(silent)[:FIRST])
        message = f"{len(silent)} of {len(instances.items)} instances do not show what their agent runs, such as {some}"
        why = "they are starting or stopped, or the agent is not ready"
        yield unknown(scale_set.id, "AgentSilent", f"{message}: {why}", instances, *damaged, remedy=SILENT)


def beyond_the_list(machine: Machine, listed: Sequence[MachineExtension]) -> Iterator[CheckResult]:
    """Code of a machine that is no scale set instance, beside the extensions listed for it."""
    yield from _findings(machine, listed)
    if machine.is_deallocated:
        message = f"machine {_name(machine)} is deallocated and runs nothing: its list of extensions decides"
        yield passes(machine.id, "Deallocated", message, machine)
    elif not _reports(machine):
        message = (
            f"machine {_name(machine)} does not show what its agent runs: it is stopped, or the agent is not ready"
        )
        yield unknown(machine.id, "AgentSilent", message, machine, remedy=SILENT)


def kept_at(machine: VirtualMachine, commands: Listing[VirtualMachineRunCommand]) -> Iterator[CheckResult]:
    """Run commands stored at a machine, whether its agent has run them or not."""
    if commands.items:
        names = sorted(command.name or name_of(command.id) for command in commands)
        message = f"machine {_name(machine)} has run commands that Azure keeps: {first_of(names, FIRST)}"
        path = path_of(hops.machine(f"machine {_name(machine)}"), "run command", NODE, "what its script calls")
        yield fails(machine.id, "CodeOnOneMachine", message, commands, paths=(path,))


def _findings(machine: Machine, expected_extensions: Sequence[MachineExtension]) -> Iterator[CheckResult]:
    code_entries = list(_beside(machine, expected_extensions))
    path = path_of(hops.machine(f"machine {_name(machine)}"), "extension or run command", NODE, "what its code calls")
    if foreign_code := [entry.description for entry in code_entries if not entry.is_agent]:
        message = f"machine {_name(machine)} has code that is not that of AKS: {', '.join(foreign_code)}"
        yield fails(machine.id, "CodeOnOneMachine", message, machine, paths=(path,))
    if agents := [entry.description for entry in code_entries if entry.is_agent]:
        message = f"machine {_name(machine)} has agents of Microsoft beside those of AKS: {', '.join(agents)}"
        yield fails(machine.id, "MonitoringAgent", message, machine, paths=(path,), severity=Severity.MEDIUM)


def _beside(machine: Machine, expected_extensions: Sequence[MachineExtension]) -> Iterator[_Code]:
    """Code beside `expected_extensions`: by extension where one is named, otherwise by handler."""
    names = {extension.name.lower() for extension in expected_extensions}
    kinds = {
        f"{extension.publisher or ''}.{extension.type or ''}".lower() for extension in expected_extensions
    } | AKS_KINDS
    view = machine.instance_view or InstanceView()
    named: set[str] = set()
    for extension in view.extensions or []:
        kind, name = (extension.type or "").lower(), extension.name or ""
        is_node_script = kind in SCRIPT_KINDS and name.lower() == NODE_SCRIPT
        if kind not in AKS_KINDS and name.lower() not in names and not is_node_script:
            yield _Code(f"{name or 'without a name'} ({extension.type or '?'})", kind)
        named.add(kind)
    for handler in (view.vm_agent or MachineAgent()).extension_handlers or []:
        kind = (handler.type or "").lower()
        if kind not in kinds | named:
            yield _Code(f"handler {handler.type or 'without a type'}", kind)
    listed = {(extension.name or "").lower() for extension in view.extensions or []}
    yield from _own(machine.resources or [], expected_extensions, listed - names)


def _own(
    stored_extensions: Sequence[OwnExtension], expected_extensions: Sequence[MachineExtension], names: set[str]
) -> Iterator[_Code]:
    """Extensions stored at the machine that the agent did not report, or that fetch files which the model does not."""
    uris = {extension.name.lower(): _uris(extension.settings) for extension in expected_extensions}
    for extension in stored_extensions:
        name, publisher = extension.name.rpartition("/")[2], (extension.publisher or "").lower()
        is_known = name.lower() in {*uris, *names, NODE_SCRIPT} or publisher == "microsoft.aks"
        fetched = sorted(_uris(extension.settings) - uris.get(name.lower(), set()))
        if fetched or not is_known:
            description = f"{name or 'without a name'} ({extension.publisher or '?'})"
            yield _Code(f"{description} from {', '.join(fetched)}" if fetched else description, publisher)


def _uris(settings: ExtensionSettings | None) -> set[str]:
    return set(settings.file_uris) if settings is not None else set()


def _reports(machine: Machine) -> bool:
    """Whether a ready agent reports handlers. AKS has its own on every node, so an empty list is no report."""
    agent = (machine.instance_view or InstanceView()).vm_agent or MachineAgent()
    return bool(agent.extension_handlers) and any(
        (status.code or "").lower() == READY for status in agent.statuses or []
    )


def _name(machine: Machine) -> str:
    return machine.name or name_of(machine.id)


@check("vmss-extensions")
def vmss_extensions(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Extensions of every scale set model and every machine, and run commands that the agents report.

    They are code that runs as root and is installed through ARM.
    """

    def evaluate(scale_set: ScaleSet) -> Iterator[CheckResult]:
        profile = scale_set.virtual_machine_profile or MachineProfile()
        extensions = profile.extension_profile.extensions if profile.extension_profile is not None else []
        instances = instances_of(estate, scale_set)
        at = Hop(PlaceKind.OTHER, f"scale set {scale_set.name}")
        yield from _extensions(scale_set.id, at, extensions, (scale_set, instances), {NODE_SCRIPT})
        yield from _applications(scale_set, at, profile.application_profile)
        yield from beyond_the_model(scale_set, instances, extensions)

    yield from each_scale_set(estate, policy, evaluate)
    yield from _of_machines(estate)


def _applications(
    holder: ScaleSet | VirtualMachine, at: Hop, profile: ApplicationProfile | None
) -> Iterator[CheckResult]:
    packages = profile.gallery_applications if profile is not None else []
    if packages:
        message = (
            "VM applications: "
            f"{', '.join(application.package_reference_id or 'without a name' for application in packages)}"
        )
        path = path_of(at, "VM application", NODE, "what its scripts call")
        yield fails(holder.id, "ApplicationOfOthers", message, holder, paths=(path,))


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
    yield from whole_or_unknown(estate.cluster, "machines that are not instances of a scale set", *observations)


def _of_machine(
    machine: VirtualMachine, listed: Listing[VirtualMachineExtension], commands: Listing[VirtualMachineRunCommand]
) -> Iterator[CheckResult]:
    extensions = [extension.code or MachineExtension(name=extension.name) for extension in listed]
    scripts = {extension.name.lower() for extension in extensions if _kind_of(extension) in STARTS_NODES}
    node_scripts = scripts if len(scripts) == 1 else set[str]()
    at = hops.machine(f"machine {name_of(machine.id)}")
    observations: tuple[Observation, ...] = (listed, commands, machine, *listed.items)
    yield from _extensions(machine.id, at, extensions, observations, node_scripts)
    yield from _applications(machine, at, machine.application_profile)
    yield from kept_at(machine, commands)
    yield from beyond_the_list(machine, extensions)


def _extensions(
    holder: str,
    at: Hop,
    extensions: Sequence[MachineExtension],
    observations: tuple[Observation, ...],
    scripts: set[str],
) -> Iterator[CheckResult]:
    """`scripts`: names, in lower case, of the custom scripts that count as the one of AKS."""
    agents = [_words(extension) for extension in extensions if _is_agent(extension)]
    logins = [_words(extension) for extension in extensions if _kind_of(extension) == ENTRA_LOGIN]
    foreign_extensions = [
        _words(extension) for extension in extensions if not _is_of_aks(extension, scripts) and not _is_agent(extension)
    ]
    foreign_extensions = [description for description in foreign_extensions if description not in logins]
    path = path_of(at, "extension", NODE, "what its code calls")
    if foreign_extensions:
        message = f"extensions that are not those of AKS: {', '.join(foreign_extensions)}"
        yield fails(holder, "ExtensionOfOthers", message, *observations, paths=(path,))
    if logins:
        message = f"an extension signs people in by Entra ID: {', '.join(logins)}"
        yield fails(holder, "EntraLogin", message, *observations, paths=(path,), remedy=LOCAL_LOGIN)
    if agents:
        message = f"agents of Microsoft beside those of AKS: {', '.join(agents)}"
        yield fails(holder, "MonitoringAgent", message, *observations, paths=(path,), severity=Severity.MEDIUM)
    if not (foreign_extensions or logins or agents):
        yield passes(holder, "AksOnly", f"{len(extensions)} extensions, all of AKS", *observations)


def _kind_of(extension: MachineExtension) -> tuple[str, str]:
    return (extension.publisher or "").lower(), (extension.type or "").lower()


def _is_of_aks(extension: MachineExtension, scripts: set[str]) -> bool:
    is_script = _kind_of(extension) in STARTS_NODES and extension.name.lower() in scripts
    return _kind_of(extension) in OF_AKS or (
        is_script and not (extension.settings is not None and extension.settings.file_uris)
    )


def _is_agent(extension: MachineExtension) -> bool:
    return (extension.publisher or "").lower() in OF_MICROSOFT


def _words(extension: MachineExtension) -> str:
    description = f"{extension.name or 'without a name'} ({extension.publisher or '?'}/{extension.type or '?'})"
    uris = extension.settings.file_uris if extension.settings is not None else []
    return f"{description} from {', '.join(uris)}" if uris else description


@check_each("vmss-boot-diagnostics", each_scale_set)
def vmss_boot_diagnostics(estate: Estate, policy: Policy, scale_set: ScaleSet) -> Iterator[CheckResult]:
    """Where the serial console log is stored: root on a node can write to it, and reading it needs no network."""
    profile = scale_set.virtual_machine_profile or MachineProfile()
    diagnostics = profile.diagnostics_profile.boot_diagnostics if profile.diagnostics_profile is not None else None
    settings = diagnostics or BootDiagnostics(enabled=False)
    if settings.storage_uri:
        yield _kept(estate, policy, scale_set, settings.storage_uri)
    elif settings.enabled:
        message = "the serial console is kept in storage that Azure manages, for those who may read the machines"
        yield passes(scale_set.id, "ManagedStorage", message, scale_set)
    else:
        yield passes(scale_set.id, "NotKept", "the serial console is not kept", scale_set)


def _kept(estate: Estate, policy: Policy, scale_set: ScaleSet, uri: str) -> CheckResult:
    """Accounts are matched by the first label of their address, which is unique within a cloud."""
    name = uri.partition("://")[2].partition("/")[0].partition(".")[0].lower()
    accounts = throughout(estate, policy, StorageAccount)
    if any(account.name.lower() == name for account in accounts):
        message = f"the serial console is kept in storage account {name}, in a subscription of ours"
        return passes(scale_set.id, "OurAccount", message, scale_set, *accounts)
    message = f"the serial console is kept at {uri}, and no storage account of ours is called {name!r}"
    if accounts.problem is not None:
        return unknown(scale_set.id, "AccountNotSeen", message, accounts, scale_set)
    path = path_of(NODE, "serial console", hops.storage(f"storage account {name} of others"))
    return fails(scale_set.id, "ForeignAccount", message, scale_set, accounts, paths=(path,))


@check("nic-tap")
def nic_tap(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Virtual network taps send a copy of every packet of an interface to a collector."""
    nics, observations = interfaces_in_the_networks(estate, policy)
    broken: list[Observation] = []
    tapped = False
    for nic, taps in readable(nics, _tapped, broken):
        if taps:
            tapped = True
            message = f"its packets are copied to {', '.join(taps)}"
            path = path_of(name_of(nic.id), "virtual network tap", "its collector")
            fill = {"ATTACHED_ID": [configuration.id for configuration in nic.tap_configurations if configuration.id]}
            yield fails(nic.id, "Tapped", message, nic, paths=(path,), fill=fill)
    every = (*observations, *broken)
    none = ("NoTap", f"{len(nics)} interfaces in the networks, and none is tapped")
    yield from found_or_none(estate.cluster, tapped, "interfaces in the networks", none, *every)


def _tapped(nic: NicFields) -> list[str]:
    return [
        configuration.virtual_network_tap.id
        if configuration.virtual_network_tap is not None
        else configuration.id or "a tap without a name"
        for configuration in nic.tap_configurations
    ]

"""Code on single machines that is neither in the model of their scale set nor in their list of extensions.

The agent of a machine reports the handlers that it runs. An extension of a single instance has one, and so has a run
command: Microsoft.CPlat.Core with RunCommandHandlerLinux where Azure keeps the command as a resource, and with
RunCommandLinux where it is an action. A machine whose agent reports nothing is Unknown. Stored run commands are
listed only for machines that are no scale set instances; for instances that would be one request per node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermetic.audit import hops
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.machines import (
    InstanceView,
    Machine,
    MachineAgent,
    OwnExtension,
    ScaleSetInstance,
    VirtualMachine,
    VirtualMachineRunCommand,
)
from hermetic.audit.estate.azure.vnet import ExtensionSettings, MachineExtension, ScaleSet
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation import Judgement, cannot_say, fails, unreadable
from hermetic.audit.findings import Severity
from hermetic.audit.hops import NODE, path_of
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
    """Code on a machine: a description, and publisher and type of its handler in lower case as far as reported."""

    words: str
    kind: str

    @property
    def is_agent(self) -> bool:
        return any(f"{self.kind}.".startswith(f"{publisher}.") for publisher in OF_MICROSOFT)


def beyond_the_model(
    scale_set: ScaleSet, instances: Listing[ScaleSetInstance], model: Sequence[MachineExtension]
) -> Iterator[Judgement]:
    """Code of instances beside the model; the model itself is judged by vmss-extensions."""
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
        yield cannot_say(scale_set.id, "AgentSilent", f"{words}: {why}", instances, *damaged)


def beyond_the_list(machine: Machine, listed: Sequence[MachineExtension]) -> Iterator[Judgement]:
    """Code of a machine that is no scale set instance, beside the extensions listed for it."""
    yield from _findings(machine, listed)
    if not _reports(machine):
        words = f"machine {_name(machine)} does not show what its agent runs: it is stopped, or the agent is not ready"
        yield cannot_say(machine.id, "AgentSilent", words, machine)


def kept_at(machine: VirtualMachine, commands: Listing[VirtualMachineRunCommand]) -> Iterator[Judgement]:
    """Run commands stored at a machine, whether its agent has run them or not."""
    if commands.items:
        names = sorted(one.name or name_of(one.id) for one in commands)
        more = f" and {len(names) - FIRST} more" if len(names) > FIRST else ""
        words = f"machine {_name(machine)} has run commands that Azure keeps: {', '.join(names[:FIRST])}{more}"
        path = path_of(hops.machine(f"machine {_name(machine)}"), "run command", NODE, "what its script calls")
        yield fails(machine.id, "CodeOnOneMachine", words, commands, paths=(path,))


def _findings(machine: Machine, known: Sequence[MachineExtension]) -> Iterator[Judgement]:
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
    told = {(one.name or "").lower() for one in view.extensions or []}
    yield from _kept(machine.resources or [], known, told - names)


def _kept(kept: Sequence[OwnExtension], known: Sequence[MachineExtension], told: set[str]) -> Iterator[_Code]:
    """Extensions stored at the machine that the agent did not report, or that fetch files which the model does not."""
    uris = {one.name.lower(): _uris(one.settings) for one in known}
    for one in kept:
        name, publisher = one.name.rpartition("/")[2], (one.publisher or "").lower()
        is_known = name.lower() in {*uris, *told, NODE_SCRIPT} or publisher == "microsoft.aks"
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

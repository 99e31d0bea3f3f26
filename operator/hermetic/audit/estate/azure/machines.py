"""Virtual machines: when Azure created them, their identities, and what their agents run.

`timeCreated` is the time at which the VM's resource was created (api-version 2021-11-01 and later). A re-image and a
node image upgrade keep the resource, and so the date; only a new VM has a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from hermetic.api.times import zoned
from hermetic.audit.estate.arm_fields import child
from hermetic.audit.estate.azure.versions import COMPUTE
from hermetic.audit.estate.azure.vnet import ApplicationProfile, ExtensionSettings, MachineExtension, MachineIdentity
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Part, Reference, Resource, arm
from hermetic.errors import FactDamaged


class ExtensionHandler(Part):
    """A handler that the agent runs: `type` is publisher and type of the extension, separated by a dot."""

    type: str | None = None


class AgentStatus(Part):
    """A status that the agent reports, such as ProvisioningState/succeeded."""

    code: str | None = None


class MachineAgent(Part):
    """vmAgent: without a reporting agent, Azure returns no handlers, or none yet."""

    extension_handlers: list[ExtensionHandler] | None = None
    statuses: list[AgentStatus] | None = None


class ExtensionView(Part):
    """One extension as the agent reports it; `type` as that of a handler."""

    name: str | None = None
    type: str | None = None


class InstanceView(Part):
    """instanceView: present only where the request expands it."""

    vm_agent: MachineAgent | None = None
    extensions: list[ExtensionView] | None = None
    statuses: list[AgentStatus] | None = None
    """Of the machine itself: PowerState/running, ProvisioningState/succeeded, ..."""


class OwnExtension(Part):
    """A child resource of an instance. Its `type` is that of the resource and hides the extension's own."""

    name: str = ""
    publisher: str | None = None
    settings: ExtensionSettings | None = None


class DataDisk(Part):
    """An attached disk."""

    managed_disk: Reference | None = None


class StorageProfile(Part):
    data_disks: list[DataDisk] | None = None


class Machine(Resource):
    """The common fields of both kinds. `resources` are the extensions of the VM."""

    time_created: str | None = None
    instance_view: InstanceView | None = None
    resources: list[OwnExtension] | None = None
    storage_profile: StorageProfile | None = None

    @property
    def data_disk_ids(self) -> tuple[str, ...]:
        """The managed disks that are attached to it beside its system disk."""
        disks = (self.storage_profile.data_disks if self.storage_profile is not None else None) or ()
        return tuple(disk.managed_disk.id for disk in disks if disk.managed_disk is not None)

    @property
    def is_deallocated(self) -> bool:
        """Whether Azure reports no other power state than deallocated: no hardware is assigned, and nothing runs.

        A machine that is stopped, but not deallocated, keeps its host; one that is deallocating still runs
        (learn.microsoft.com/azure/virtual-machines/states-billing).
        """
        view = self.instance_view or InstanceView()
        codes = {(status.code or "").lower() for status in view.statuses or []}
        return {code for code in codes if code.startswith("powerstate/")} == {"powerstate/deallocated"}

    @property
    def created_at(self) -> datetime | None:
        """When it was created; None where absent. Raises FactDamaged for a time without a zone."""
        if self.time_created is None:
            return None
        moment = zoned(self.time_created)
        if moment is None:
            message = f"{self.id}: timeCreated: {self.time_created!r} is not a time with a zone"
            raise FactDamaged(message, resource=self.id, evidence=self.evidence)
        return moment


@arm("Microsoft.Compute/virtualMachineScaleSets/virtualMachines", COMPUTE)
class ScaleSetInstance(Machine):
    """One instance of a uniform scale set."""


@arm("Microsoft.Compute/virtualMachines", COMPUTE)
class VirtualMachine(Machine):
    """A standalone VM, or an instance of a flexible scale set."""

    identity: MachineIdentity | None = None
    application_profile: ApplicationProfile | None = None


@arm("Microsoft.Compute/virtualMachines/extensions", COMPUTE)
class VirtualMachineExtension(Resource):
    """Code that Azure installs on one VM and runs as root.

    Its own `type` is that of the extension; the answer also has the type of the resource.
    """

    code: MachineExtension | None = None

    @classmethod
    def read(cls, body: Body) -> Self:
        """Keep the properties apart, so that the outer `type` does not replace the inner one."""
        inner, name = child(body.value, "properties"), body.value.get("name")
        properties = {"code": {**inner, "name": name}} if isinstance(inner, Mapping) else inner
        return super().read(Body({"id": body.value.get("id"), "name": name, "properties": properties}, body.evidence))


@arm("Microsoft.Compute/virtualMachines/runCommands", COMPUTE)
class VirtualMachineRunCommand(Resource):
    """A script that Azure stores with one VM and runs as root.

    Neither the script nor its URL is kept: both can contain a secret.
    """

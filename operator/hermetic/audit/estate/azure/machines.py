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
from hermetic.audit.estate.resource import Part, Resource, arm
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


class OwnExtension(Part):
    """A child resource of an instance. Its `type` is that of the resource and hides the extension's own."""

    name: str = ""
    publisher: str | None = None
    settings: ExtensionSettings | None = None


class Machine(Resource):
    """The common fields of both kinds. `resources` are the extensions of the VM."""

    time_created: str | None = None
    instance_view: InstanceView | None = None
    resources: list[OwnExtension] | None = None

    @property
    def created_at(self) -> datetime | None:
        """When it was created; None where absent. Raises FactDamaged for a time without a zone."""
        if self.time_created is None:
            return None
        found = zoned(self.time_created)
        if found is None:
            words = f"{self.id}: timeCreated: {self.time_created!r} is not a time with a zone"
            raise FactDamaged(words, resource=self.id, evidence=self.evidence)
        return found


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
        kept = {"code": {**inner, "name": name}} if isinstance(inner, Mapping) else inner
        return super().read(Body({"id": body.value.get("id"), "name": name, "properties": kept}, body.evidence))


@arm("Microsoft.Compute/virtualMachines/runCommands", COMPUTE)
class VirtualMachineRunCommand(Resource):
    """A script that Azure stores with one VM and runs as root.

    Neither the script nor its URL is kept: both can contain a secret.
    """

"""Machines: when Azure created them, which identities they have, and what their agents run.

`timeCreated` is the time at which the machine's resource was created (api-version 2021-11-01 and later). A re-image and
a node image upgrade keep the resource, and so the date; only a new machine has a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Self

from hermetic.api.times import zoned
from hermetic.audit.estate.arm_fields import child
from hermetic.audit.estate.azure.versions import COMPUTE
from hermetic.audit.estate.azure.vnet import ExtensionSettings, MachineExtension, MachineIdentity
from hermetic.audit.estate.questions import Body
from hermetic.audit.estate.resource import Part, Resource
from hermetic.errors import FactDamaged


class ExtensionHandler(Part):
    """A handler that the agent runs: `type` is publisher and type of the extension in one, with a dot between."""

    type: str | None = None


class AgentStatus(Part):
    """What the agent says of itself, such as ProvisioningState/succeeded."""

    code: str | None = None


class MachineAgent(Part):
    """vmAgent: while no agent reports, Azure gives no handlers, or none yet."""

    extension_handlers: list[ExtensionHandler] | None = None
    statuses: list[AgentStatus] | None = None


class ExtensionView(Part):
    """One extension as the agent reports it; `type` as that of a handler."""

    name: str | None = None
    type: str | None = None


class InstanceView(Part):
    """instanceView: there only where the request expands it."""

    vm_agent: MachineAgent | None = None
    extensions: list[ExtensionView] | None = None


class OwnExtension(Part):
    """A child resource of an instance. Its `type` is that of the resource, which hides the one of the extension."""

    name: str = ""
    publisher: str | None = None
    settings: ExtensionSettings | None = None


class Machine(Resource):
    """What both kinds have. `resources` are the extensions that Azure keeps at the machine."""

    time_created: str | None = None
    instance_view: InstanceView | None = None
    resources: list[OwnExtension] | None = None

    @property
    def created_at(self) -> datetime | None:
        """When it was created; None where the answer does not say. Raises FactDamaged for a time without a zone."""
        if self.time_created is None:
            return None
        found = zoned(self.time_created)
        if found is None:
            words = f"{self.id}: timeCreated: {self.time_created!r} is not a time with a zone"
            raise FactDamaged(words, resource=self.id, evidence=self.evidence)
        return found


class ScaleSetInstance(Machine):
    """Microsoft.Compute/virtualMachineScaleSets/virtualMachines: one instance of a uniform scale set."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
    API_VERSION: ClassVar[str] = COMPUTE


class VirtualMachine(Machine):
    """Microsoft.Compute/virtualMachines: a machine of its own, or an instance of a flexible scale set."""

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachines"
    API_VERSION: ClassVar[str] = COMPUTE

    identity: MachineIdentity | None = None


class VirtualMachineExtension(Resource):
    """Microsoft.Compute/virtualMachines/extensions: code that Azure puts onto one machine, and runs as root.

    Its own `type` is that of the extension, and the answer has the type of the resource beside it.
    """

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachines/extensions"
    API_VERSION: ClassVar[str] = COMPUTE

    code: MachineExtension | None = None

    @classmethod
    def read(cls, body: Body) -> Self:
        """With the properties in a place of their own, so that the outer `type` does not stand for the inner one."""
        inner, name = child(body.value, "properties"), body.value.get("name")
        kept = {"code": {**inner, "name": name}} if isinstance(inner, Mapping) else inner
        return super().read(Body({"id": body.value.get("id"), "name": name, "properties": kept}, body.evidence))


class VirtualMachineRunCommand(Resource):
    """Microsoft.Compute/virtualMachines/runCommands: a script that Azure keeps beside one machine, and runs as root.

    Neither the script nor where it is fetched from is kept: both can hold a secret.
    """

    TYPE: ClassVar[str] = "Microsoft.Compute/virtualMachines/runCommands"
    API_VERSION: ClassVar[str] = COMPUTE

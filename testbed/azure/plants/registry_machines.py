"""What a registry runs and exports by itself: tasks, agent pools, export pipelines; only previews of its API show them.

Azure/azure-rest-api-specs, specification/containerregistry: Registry/ExportPipeline.tsp, RegistryTasks/Task.tsp and
AgentPool.tsp. A registry with an export pipeline has export enabled: Azure refuses to disable it before.
"""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION
from testbed.azure.estate import Estate
from testbed.azure.plants.plant import Named, plant
from testbed.azure.plants.stores import put


@plant("acr-pipelines", "medium", also=("acr-export-policy",), spot="registry:policies.exportPolicy.status pipeline")
def registry_with_an_export_pipeline(estate: Estate) -> Named:
    """A pipeline writes images of the registry to a storage account outside."""
    put(estate.properties(estate.site.registry), "policies.exportPolicy.status", "enabled")
    target = {"type": "AzureStorageBlobContainer", "uri": "https://elsewhere.blob.core.windows.net/transfer"}
    child = f"{estate.site.registry}/exportPipelines/outward"
    estate.add(child, {"target": target, "options": ["OverwriteBlobs"]}, location=LOCATION)
    return estate.site.registry


@plant("acr-tasks", "medium", spot="task")
def registry_with_a_task(estate: Estate) -> Named:
    """A task runs a container in a machine of the registry's own at every commit of a repository outside."""
    properties = {"status": "Enabled", "platform": {"os": "Linux", "architecture": "amd64"}, "isSystemTask": False}
    estate.add(f"{estate.site.registry}/tasks/build", properties, location=LOCATION)
    return estate.site.registry


@plant("acr-tasks", "medium", spot="task")
def registry_with_an_agent_pool(estate: Estate) -> Named:
    """The registry has machines for tasks, in a network of Microsoft's."""
    properties = {"count": 1, "tier": "S2", "os": "Linux", "provisioningState": "Succeeded"}
    estate.add(f"{estate.site.registry}/agentPools/builders", properties, location=LOCATION)
    return estate.site.registry

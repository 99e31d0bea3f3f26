"""What looks like an egress path through private endpoints, registries, storage or disks, and is none."""

from __future__ import annotations

from testbed.azure.baseline.disks import AS_SHIPPED
from testbed.azure.baseline.layout import LOCATION
from testbed.azure.estate import Estate
from testbed.azure.plants.decoys import ELSEWHERE, decoy
from testbed.azure.plants.pieces import FOREIGN
from testbed.azure.plants.private_link import connect
from testbed.azure.plants.stores import website_off


@decoy()
def stranger_that_was_rejected(estate: Estate) -> None:
    """Private endpoints of another tenant at the registry and the account: one rejected, one gone."""
    connect(estate, estate.site.registry, "Rejected")
    connect(estate, estate.site.storage, "Disconnected")


@decoy()
def token_that_is_disabled(estate: Estate) -> None:
    """A token of the registry that may push, and cannot sign in."""
    registry = estate.site.registry
    properties = {"scopeMapId": f"{registry}/scopeMaps/_repositories_push", "status": "disabled"}
    estate.add(f"{registry}/tokens/former", {**properties, "credentials": {"passwords": [{"name": "password1"}]}})


@decoy()
def storage_that_receives(estate: Estate) -> None:
    """A policy of another account copies into this one: the account receives, and sends nothing."""
    account = estate.site.storage
    estate[account].update(kind="StorageV2")
    website_off(estate, account)
    far = f"/subscriptions/{FOREIGN}/resourceGroups/rg-x/providers/Microsoft.Storage/storageAccounts/stsource"
    estate.add(f"{account}/objectReplicationPolicies/91c4", {"sourceAccount": far, "destinationAccount": account})


@decoy()
def disk_of_another_team(estate: Estate) -> None:
    """A disk and a snapshot that can be exported, in a group that is not the cluster's."""
    for kind in ("disks", "snapshots"):
        estate.add(f"{ELSEWHERE}/Microsoft.Compute/{kind}/staging", dict(AS_SHIPPED), location=LOCATION)

"""Garbage collection of PersistentVolumes: a namespaced object cannot own them, so Kubernetes does not remove them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from hermetic.api.adapters import Adapters
from hermetic.api.rules import ApiModel
from hermetic.api.weights import Weights
from hermetic.errors import ApiRefused, Throttled
from hermetic.kinds import PERSISTENT_VOLUME
from hermetic.kube.owners import Key
from hermetic.kube.store import Store
from hermetic.objects.names import Owner
from hermetic.objects.weights_volume import share_of, volume_name
from hermetic.plan.api_rejections import ApiRejection, refusal
from hermetic.plan.volume_sweep import volumes_to_remove
from hermetic.ports import KubeApi


class _Sources(ApiModel):
    """The fields of a spec that decide which volume it asks for; whatever else it has, the volume stays wanted."""

    weights: Weights
    adapters: Adapters = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Swept:
    """Names of the volumes that were removed, and the deletes that were refused, to be tried again."""

    removed: tuple[str, ...]
    refusals: tuple[ApiRejection, ...]


class VolumeCollector:
    """Removes volumes of Hermetic whose claim and owner are gone; the share and its data stay."""

    def __init__(self, api: KubeApi, store: Store) -> None:
        self._api = api
        self._store = store
        self._removed: set[str] = set()

    async def sweep(self) -> Swept:
        """Remove the volumes that are not needed any more, each once; a refusal of one does not stop the others.

        Raises errors that concern no single volume: Unreachable, Throttled, NotLeading.
        """
        removed: list[str] = []
        refused: list[ApiRejection] = []
        volumes = list(self._store.volumes())
        self._removed &= {volume["metadata"]["uid"] for volume in volumes}
        keys = self._store.keys_by_uid()

        def wanted_by(uid: str) -> str:
            return self._wanted_by(keys[uid], uid) if uid in keys else ""

        for volume in volumes_to_remove(volumes, self._claims(volumes), wanted_by):
            metadata = volume["metadata"]
            if metadata["uid"] in self._removed:
                continue  # deleted already: the watch has not shown it yet
            try:
                await self._api.delete(
                    PERSISTENT_VOLUME,
                    namespace=None,
                    name=metadata["name"],
                    uid=metadata["uid"],
                    resource_version=metadata["resourceVersion"],
                )
            except Throttled:
                raise
            except ApiRefused as error:
                refused.append(refusal(f"PersistentVolume '{metadata['name']}'", error))
                continue
            self._removed.add(metadata["uid"])
            removed.append(metadata["name"])
        return Swept(tuple(removed), tuple(refused))

    def _claims(self, volumes: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
        found = {}
        for volume in volumes:
            claim = volume["spec"].get("claimRef") or {}
            key = (claim.get("namespace", ""), claim.get("name", ""))
            uid = self._store.claim_uid(*key)
            if uid is not None:
                found[key] = uid
        return found

    def _wanted_by(self, key: Key, uid: str) -> str:
        """The name of the volume that the spec asks for; "" for none."""
        manifest = self._store.manifest(key) or {}
        try:
            sources = _Sources.model_validate(manifest.get("spec") or {}, extra="ignore")
        except ValidationError:
            return ""
        share = share_of(sources)
        return volume_name(Owner(*key, uid), share) if share is not None else ""

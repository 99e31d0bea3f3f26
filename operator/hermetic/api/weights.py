"""`spec.weights`: where the staged model is read from, always read-only."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.engine_caches import EngineCaches
from hermetic.api.field_types import AbsolutePath, HostName, ObjectName, PinnedImage, RelativePath, list_of, matches
from hermetic.api.integrity import Integrity
from hermetic.api.model_facts import ModelFacts
from hermetic.api.rules import ApiModel, Rule, exactly_one, member_is_immutable

MountOption = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64),
    matches(
        r"^(nconnect=([1-9]|1[0-6])|noresvport|actimeo=[0-9]{1,5}|nocto|[rw]size=[0-9]{4,7}|timeo=[0-9]{1,5}|hard)$",
        "must be one of nconnect=1..16, noresvport, actimeo=N, nocto, rsize=N, wsize=N, timeo=N, hard; "
        "'ro' is always set",
    ),
]

ReaderGroup = Annotated[int, Field(ge=1, le=2**31 - 1, description="A group id, 1 to 2147483647.")]

# What the driver file.csi.azure.com refuses in `folderName` since its pull request 3071: earlier releases let a
# backslash through to a shell script, where '.\\./secret' became '../secret', a folder outside of the one named.
ShareFolder = Annotated[
    RelativePath,
    Rule(
        cel=r"""!self.matches(r'[\\:*?"<>|]') && !self.matches(r'[. ](/|$)')""",
        message='must be a folder that the Azure Files driver takes: without \\ : * ? " < > |, and no part ending with '
        "'.' or a space",
        holds=lambda text: not re.search(r'[\\:*?"<>|]', text) and not re.search(r"[. ](/|$)", text),
    ),
]


class AzureFiles(ApiModel):
    """A folder of an Azure Files NFS share."""

    RULES = (
        Rule(
            cel="has(self.account) || has(self.server)",
            message="must set `account` (storage account) or `server` (host name of a Microsoft.FileShares share)",
            holds=lambda share: share.account is not None or share.server is not None,
        ),
        Rule(
            cel="has(self.account) || !has(self.server) || !self.server.matches(r'^[0-9.]+$')",
            message="must be the host name of a Microsoft.FileShares share when `account` is left out, not an address",
            holds=lambda share: share.account is not None or not re.fullmatch(r"[0-9.]+", share.server or ""),
            field=".server",
            show="'\\'' + self.server + '\\''",
        ),
    )

    account: (
        Annotated[
            str,
            StringConstraints(max_length=24),
            matches(r"^[a-z0-9]{3,24}$", "must be a storage account name: 3 to 24 lower-case letters and digits"),
        ]
        | None
    ) = None
    """Storage account that holds the share, for example 'contosomodels'. Default: none, for a share without a storage
    account (Microsoft.FileShares), whose host name `server` then gives."""
    server: HostName | None = None
    """Host name or address to mount from. Default: '<account>.file.core.windows.net', which the private DNS zone must
    resolve to the private endpoint."""
    share: Annotated[
        str,
        StringConstraints(min_length=3, max_length=63),
        matches(
            r"^[a-z0-9]+(-[a-z0-9]+)*$",
            "must be a share name: 3 to 63 lower-case letters, digits and single '-', starting and ending with a "
            "letter or digit",
        ),
    ]
    """Name of the NFS share, for example 'models'."""
    folder: ShareFolder | None = None
    """Folder of the share that holds the model, for example 'llama-3-1-8b/fp8'. Only this folder is mounted. Default:
    the whole share."""
    resource_group: (
        Annotated[
            str,
            StringConstraints(max_length=90),
            matches(r"^[-A-Za-z0-9_.()]*[-A-Za-z0-9_()]$", "must be the name of a resource group, not its id"),
        ]
        | None
    ) = None
    """Resource group of the storage account; a name for people, nothing is looked up. Default: none."""
    encrypt_in_transit: bool = True
    """Mount over TLS, which needs AKS 1.33 or later; all mounts of one server on a node must agree. Default: true."""
    mount_options: Annotated[list[MountOption], Field(max_length=8), list_of("atomic")] = [
        "nconnect=4",
        "noresvport",
        "actimeo=30",
    ]
    """NFS mount options beside 'ro', which is always set; at most 8. Default: nconnect=4, noresvport, actimeo=30."""


class Nfs(ApiModel):
    """A folder of any other NFS server, mounted through the driver nfs.csi.k8s.io."""

    server: HostName
    """Host name or address of the NFS server."""
    path: AbsolutePath
    """Exported path, for example '/export/models'."""
    folder: RelativePath | None = None
    """Folder below the exported path that holds the model. Default: the exported path itself."""
    mount_options: Annotated[list[MountOption], Field(max_length=8), list_of("atomic")] = ["nconnect=4"]
    """NFS mount options beside 'ro', which is always set; at most 8. Default: nconnect=4."""


class PersistentVolumeClaim(ApiModel):
    """A claim that exists already in the same namespace."""

    claim_name: ObjectName
    """Name of the claim. It is always mounted read-only."""
    folder: RelativePath | None = None
    """Folder of the volume that holds the model. Default: the whole volume."""


class BakedImage(ApiModel):
    """Weights inside the serving image itself."""

    path: AbsolutePath
    """Folder inside the serving image that holds the model, for example '/models/phi-4'."""


class ImageVolume(ApiModel):
    """Weights as an OCI image of their own, mounted as a volume (Kubernetes 1.35 or later, containerd 2.1 or later)."""

    reference: PinnedImage
    """OCI image by digest, from a registry on the operator's allow list."""
    path: RelativePath | None = None
    """Folder inside that image that holds the model. Default: its root."""


SOURCES = ("azure_files", "nfs", "persistent_volume_claim", "baked_image", "image_volume")


class Weights(ApiModel):
    """Exactly one source of staged weights."""

    RULES = (
        exactly_one(*SOURCES),
        member_is_immutable(*SOURCES),
        Rule(
            cel="!has(self.integrity) || (!has(self.bakedImage) && !has(self.imageVolume))",
            message="must be left out with `bakedImage` and `imageVolume`, which are pinned by the digest of the image",
            holds=lambda weights: weights.integrity is None or weights.is_mounted,
            field=".integrity",
        ),
    )

    azure_files: AzureFiles | None = None
    """Read from an Azure Files NFS share, through the driver file.csi.azure.com. The share must be on the operator's
    allow list.

    azureFiles: {account: contosomodels, share: models, folder: llama/fp8}"""
    nfs: Nfs | None = None
    """Read from any other NFS server, through the driver nfs.csi.k8s.io. The share must be on the operator's allow
    list.

    nfs: {server: nas.contoso.internal, path: /export, folder: llama/fp8}"""
    persistent_volume_claim: PersistentVolumeClaim | None = None
    """Read from a claim that exists already in the same namespace.

    persistentVolumeClaim: {claimName: llama-weights}"""
    baked_image: BakedImage | None = None
    """Read from the serving image itself, which holds the model.

    bakedImage: {path: /models/phi-4}"""
    image_volume: ImageVolume | None = None
    """Read from an OCI image of its own, mounted as a volume. Needs Kubernetes 1.35 or later and containerd 2.1 or
    later; `bakedImage` works on every version.

    imageVolume: {reference: contoso.azurecr.io/models/phi-4@sha256:…}"""
    facts: ModelFacts | None = None
    """Facts of the model that decide what memory it needs, as 'hermetic plan --model DIR --show-facts' prints them and
    `.hermetic/model-facts.json` of a staged model holds them. With them, a model that does not fit its GPUs is refused
    before a pod exists. Default: none, and the memory is not computed.

    facts: {modelType: llama, parameterBytes: 16060522496, maxModelLength: 131072}"""
    caches: Annotated[list[EngineCaches], Field(max_length=16), list_of("atomic")] = []
    """Compile caches that 'hermetic stage --caches' put beside the model, as it prints them; at most 16. The entry
    that equals engine, version, GPU model and parallelism of the deployment is given to the engine; the condition
    `CachesUsed` says which, or why none. Default: none.

    caches: [{engine: vllm, version: "0.32.0", gpu: H100-80GB, tensorParallelSize: 2}]"""
    integrity: Integrity | None = None
    """How the weights are verified on the mount that is served, before the engine starts; for azureFiles, nfs and
    persistentVolumeClaim. Default: the least that the operator's configuration accepts in the namespace, Require unless
    it is lowered.

    integrity: {digest: "sha256:…"}"""
    supplemental_groups: Annotated[list[ReaderGroup], Field(max_length=8), list_of("set")] = []
    """Group ids, beside the engine's own, that the pods have: for a share whose files only a group may read, or for
    /dev/kfd of AMD GPUs; each 1 to 2147483647, at most 8. Nothing on the share is changed. Default: none, for
    'hermetic stage' makes files readable by all."""

    @property
    def is_mounted(self) -> bool:
        """Whether they are read from storage that others can write, and not from an image."""
        return self.baked_image is None and self.image_volume is None

    @property
    def folder(self) -> str:
        """The folder of the model in its share, volume or image, from the root of it; "" for the whole."""
        for share in (self.azure_files, self.nfs, self.persistent_volume_claim):
            if share is not None:
                return share.folder or ""
        if self.image_volume is not None:
            return self.image_volume.path or ""
        return self.baked_image.path.lstrip("/") if self.baked_image is not None else ""

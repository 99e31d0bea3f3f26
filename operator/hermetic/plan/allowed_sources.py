"""The registries and shares that a namespace may use, by `registries` and `shares` of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hermetic.api.conditions import ConditionType
from hermetic.api.configuration import AllowedShare
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.api.strictness import covers
from hermetic.api.weights import AzureFiles, Nfs, Weights
from hermetic.objects.weights_volume import share_of, storage_account
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot


def registry_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Every image comes from a registry that this namespace may use."""
    references = [spec.engine.chosen.image]
    if spec.weights.image_volume is not None:
        references.append(spec.weights.image_volume.reference)
    for reference in references:
        host, _, repository = reference.partition("/")
        if not _registry_allowed(snapshot, host, repository):
            line = f"- {{host: {host}, namespaces: [{snapshot.owner.namespace}]}}"
            return Blocks(
                Reason.REGISTRY_NOT_ALLOWED,
                f"registry '{host}' of image '{reference}' may not be used in namespace '{snapshot.owner.namespace}'; "
                f"the operator's configuration would need, under `registries`: {line}",
                ConditionType.IMAGES_PINNED,
            )
    return HOLDS


def image_is_allowed(snapshot: ClusterSnapshot, reference: str) -> bool:
    """Whether an image comes from a registry that this namespace may use."""
    host, _, repository = reference.partition("/")
    return _registry_allowed(snapshot, host, repository)


def _registry_allowed(snapshot: ClusterSnapshot, host: str, repository: str) -> bool:
    return any(
        allowed.host == host
        and covers(allowed.namespaces, snapshot.owner.namespace)
        and (not allowed.repositories or any(_is_below(repository, one, "/:@") for one in allowed.repositories))
        for allowed in snapshot.policy.registries
    )


def _is_below(text: str, prefix: str, boundaries: str) -> bool:
    """Whether the text is the prefix, or continues it with one of the characters: 'team-b' is not below 'team'."""
    if not text.startswith(prefix):
        return False
    rest = text[len(prefix) :]
    return not rest or prefix.endswith("/") or rest[0] in boundaries


@dataclass(frozen=True, slots=True)
class AskedShare:
    """The share that a source of weights reads.

    `words`: how a message names it. `folder`: "" for the whole share. `line`: the fields by which an entry of `shares`
    names it, as YAML. `is_named_by`: whether an entry names it, folders and namespaces aside.
    """

    words: str
    folder: str
    line: str
    is_named_by: Callable[[AllowedShare], bool]


def _asked_share(weights: Weights) -> AskedShare:
    """Of a source for which the operator makes a volume; one that is missing here is allowed by no entry."""
    if weights.azure_files is not None:
        return _azure_files(weights.azure_files)
    if weights.nfs is not None:
        return _nfs(weights.nfs)
    return AskedShare(words="the share", folder="", line="", is_named_by=lambda _: False)


def share_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The share is one that this namespace may read, and the operator may create volumes at all."""
    if share_of(spec.weights) is None:
        return HOLDS
    if not snapshot.policy.volumes.create:
        return Blocks(
            Reason.VOLUME_CREATION_OFF,
            "`volumes.create` is off in the operator's configuration: use `weights.persistentVolumeClaim`; "
            "'hermetic render --volumes' prints what the platform team should create",
            ConditionType.WEIGHTS_VERIFIED,
        )
    share, namespace = _asked_share(spec.weights), snapshot.owner.namespace
    named = [one for one in snapshot.policy.shares if covers(one.namespaces, namespace) and share.is_named_by(one)]
    if any(not one.folders or any(_is_below(share.folder, folder, "/") for folder in one.folders) for one in named):
        return HOLDS
    if named:
        return _folder_not_allowed(share, namespace, named)
    return Blocks(
        Reason.SHARE_NOT_ALLOWED,
        f"{share.words} may not be read in namespace '{namespace}'; the operator's configuration would need, under "
        f"`shares`: - {{{share.line}, namespaces: [{namespace}]}}",
        ConditionType.WEIGHTS_VERIFIED,
    )


def _folder_not_allowed(share: AskedShare, namespace: str, named: list[AllowedShare]) -> Blocks:
    asked = f"folder '{share.folder}'" if share.folder else "the whole"
    folders = sorted({folder for one in named for folder in one.folders})
    return Blocks(
        Reason.SHARE_NOT_ALLOWED,
        f"{asked} of {share.words} may not be read in namespace '{namespace}', only below: "
        f"{', '.join(folders)}; set `folder` to one of these or below, or have the operator's configuration changed, "
        "under `shares`, `folders`",
        ConditionType.WEIGHTS_VERIFIED,
    )


def _azure_files(share: AzureFiles) -> AskedShare:
    account = storage_account(share)
    at, server = (f" at '{share.server}'", f", server: {share.server}") if share.server else ("", "")

    def is_named_by(allowed: AllowedShare) -> bool:
        # The account's name restricts nothing if the spec may name any host to mount from.
        named = allowed.account == account and allowed.share == share.share
        return named and (share.server is None or share.server == allowed.server)

    return AskedShare(
        words=f"share '{share.share}' of '{account}'{at}",
        folder=share.folder or "",
        line=f"account: {account}, share: {share.share}{server}",
        is_named_by=is_named_by,
    )


def _nfs(share: Nfs) -> AskedShare:
    return AskedShare(
        words=f"share '{share.server}:{share.path}'",
        folder=share.folder or "",
        line=f"server: {share.server}, path: {share.path}",
        is_named_by=lambda allowed: allowed.server == share.server and allowed.path == share.path,
    )

"""The registries and shares that a namespace may use, by `registries` and `shares` of the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hermetic.api.adapters import lies_in
from hermetic.api.allow_lists import AllowedShare
from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.strictness import covers
from hermetic.api.weights import AzureFiles, Nfs
from hermetic.engines.adapters import mounted_folder
from hermetic.objects.weights_volume import share_of, storage_account
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.source_suggestions import registry_suggestion, share_suggestion


def registry_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Every image comes from a registry that this namespace may use."""
    references = [spec.engine.chosen.image]
    if spec.weights.image_volume is not None:
        references.append(spec.weights.image_volume.reference)
    for reference in references:
        host, _, repository = reference.partition("/")
        if not _registry_allowed(snapshot, host, repository):
            namespace = snapshot.owner.namespace
            line = f"- {{host: {host}, namespaces: [{namespace}]}}"
            allowed = [entry for entry in snapshot.policy.registries if covers(entry.namespaces, namespace)]
            return Blocks(
                SpecReason.REGISTRY_NOT_ALLOWED,
                f"registry '{host}' of image '{reference}' may not be used in namespace '{namespace}'; "
                f"{registry_suggestion(reference, allowed, line)}",
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
        and (not allowed.repositories or any(_has_prefix(repository, prefix) for prefix in allowed.repositories))
        for allowed in snapshot.policy.registries
    )


def _has_prefix(repository: str, prefix: str) -> bool:
    """Whether a repository with its tag and digest is the prefix or below it: 'team-b/llm:1' is not below 'team'.

    Not the rule of folders, `lies_in`: a tag and a digest end a name as '/' does, and the prefix may end with '/'.
    """
    following = repository.removeprefix(prefix)
    return repository.startswith(prefix) and (not following or prefix.endswith("/") or following[0] in "/:@")


@dataclass(frozen=True, slots=True)
class AskedShare:
    """The share that a source of weights reads.

    `words`: how a message names it; `name`: as `share_name`. `folder`: "" for the whole share. `line`: the fields by
    which an entry of `shares` names it, as YAML. `is_named_by`: whether an entry names it, folders and namespaces
    aside.
    """

    words: str
    name: str
    folder: str
    line: str
    is_named_by: Callable[[AllowedShare], bool]


def _asked_share(spec: ModelDeploymentSpec) -> AskedShare:
    """Of a source for which the operator makes a volume; one that is missing here is allowed by no entry."""
    if spec.weights.azure_files is not None:
        return _azure_files(spec.weights.azure_files, mounted_folder(spec))
    if spec.weights.nfs is not None:
        return _nfs(spec.weights.nfs, mounted_folder(spec))
    return AskedShare(words="the share", name="", folder="", line="", is_named_by=lambda _: False)


def share_is_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """The share is one that this namespace may read, and the operator may create volumes at all."""
    if share_of(spec) is None:
        return HOLDS
    if not snapshot.policy.volumes.create:
        return Blocks(
            SpecReason.VOLUME_CREATION_OFF,
            "`volumes.create` is off in the operator's configuration: use `weights.persistentVolumeClaim`; "
            "'hermetic render --volumes' prints what the platform team should create",
            ConditionType.WEIGHTS_VERIFIED,
        )
    share, namespace = _asked_share(spec), snapshot.owner.namespace
    allowed = [entry for entry in snapshot.policy.shares if covers(entry.namespaces, namespace)]
    named = [entry for entry in allowed if share.is_named_by(entry)]
    if any(not entry.folders or any(lies_in(share.folder, folder) for folder in entry.folders) for entry in named):
        return HOLDS
    if named:
        return _folder_not_allowed(spec, share, namespace, named)
    return Blocks(
        SpecReason.SHARE_NOT_ALLOWED,
        f"{share.words} may not be read in namespace '{namespace}'; "
        + share_suggestion(share.name, allowed, f"- {{{share.line}, namespaces: [{namespace}]}}"),
        ConditionType.WEIGHTS_VERIFIED,
    )


def _folder_not_allowed(
    spec: ModelDeploymentSpec, share: AskedShare, namespace: str, named: list[AllowedShare]
) -> Blocks:
    folder_clause = f"folder '{share.folder}'" if share.folder else "the whole"
    if share.folder != spec.weights.folder:
        folder_clause += ", which holds the model and `adapters`,"
    folders = sorted({folder for allowed in named for folder in allowed.folders})
    return Blocks(
        SpecReason.SHARE_NOT_ALLOWED,
        f"{folder_clause} of {share.words} may not be read in namespace '{namespace}', only below: "
        f"{', '.join(folders)}; set `folder` to one of these or below, or have the operator's configuration changed, "
        "under `shares`, `folders`",
        ConditionType.WEIGHTS_VERIFIED,
    )


def _azure_files(share: AzureFiles, folder: str) -> AskedShare:
    account = storage_account(share)
    at, server = (f" at '{share.server}'", f", server: {share.server}") if share.server else ("", "")

    def is_named_by(allowed: AllowedShare) -> bool:
        # The account's name restricts nothing if the spec may name any host to mount from.
        named = allowed.account == account and allowed.share == share.share
        return named and (share.server is None or share.server == allowed.server)

    return AskedShare(
        words=f"share '{share.share}' of '{account}'{at}",
        name=f"{account}/{share.share}",
        folder=folder,
        line=f"account: {account}, share: {share.share}{server}",
        is_named_by=is_named_by,
    )


def _nfs(share: Nfs, folder: str) -> AskedShare:
    return AskedShare(
        words=f"share '{share.server}:{share.path}'",
        name=f"{share.server}:{share.path}",
        folder=folder,
        line=f"server: {share.server}, path: {share.path}",
        is_named_by=lambda allowed: allowed.server == share.server and allowed.path == share.path,
    )

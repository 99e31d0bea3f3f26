"""`hermetic render`: exactly the objects that the operator would apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import dump
from hermetic.cli.manifest_validation import NO_UID, AcceptedManifest, snapshot_of, validate
from hermetic.cli.manifests import ManifestFinding, TypedManifest, note_skipped, read_manifests
from hermetic.cli.options import common_options, configuration_in, manifest_files
from hermetic.cli.terminal import note, write, write_json
from hermetic.engines.adapters import folder_below, mounted_adapters, mounted_folder
from hermetic.errors import InputError
from hermetic.objects.weights_volume import platform_volumes, share_of
from hermetic.plan.desired_children import desired_children

Manifest = Mapping[str, Any]


@click.command(
    "render",
    epilog="Example: hermetic render -f llama.yaml\n\n"
    "Example: kubectl get mdep llama -n inference -o yaml | hermetic render -f -\n\n"
    "Example: hermetic render -f llama.yaml --volumes | kubectl apply -f -",
)
@manifest_files
@click.option("--namespace", "-n", default="default", help="Namespace of manifests that name none. Default: default.")
@click.option(
    "--volumes",
    is_flag=True,
    help="Print only the PersistentVolume and the claim that the platform team should create where the operator may "
    "not (`volumes.create: false`).",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The operator's configuration: a manifest with a value that it does not allow is refused, and it names the "
    "image that verifies weights.",
)
@common_options(cluster=False)
def command(files: tuple[str, ...], namespace: str, volumes: bool, config: Path | None, output: str) -> None:
    """Print the objects that the operator would apply, in the order in which it applies them.

    Nothing is printed unless every manifest is valid. No cluster is asked. The uid of an object decides the names of
    its volumes: a manifest that was read from the cluster gives exactly what is applied there.
    """
    if not files:
        raise InputError("no input file", fix="hermetic render -f FILE")
    policy = configuration_in(config)
    # The volumes of the platform team are asked for where the operator may not make them.
    deployments = _deployments(files, namespace, None if volumes else policy)
    allowed = policy or Configuration()
    printed = [
        manifest
        for deployment in deployments
        for manifest in (_volumes(deployment) if volumes else _objects(deployment, allowed))
    ]
    if not volumes:
        _note_missing_uids(deployments)
    if output == "json":
        write_json({"apiVersion": "v1", "kind": "List", "items": printed})
    else:
        write(_as_documents(printed))


def _deployments(files: Iterable[str], namespace: str, policy: Configuration | None) -> list[AcceptedManifest]:
    reading = read_manifests(tuple(files))
    accepted, findings = validate(
        [_without_status(manifest) for manifest in reading.typed], namespace=namespace, policy=policy
    )
    note_skipped(reading)
    reading.findings += [*findings, *(_nameless(manifest) for manifest in accepted if not manifest.owner.name)]
    reading.raise_findings()
    for manifest in accepted:
        if manifest.spec is None:
            note(f"{manifest.typed.where()}: {manifest.kind}: nothing is rendered of it")
    return [manifest for manifest in accepted if manifest.spec is not None]


def _without_status(typed: TypedManifest) -> TypedManifest:
    """Drops the status of a live object: it is no input, and may be of another release."""
    if not isinstance(typed.value, dict) or "status" not in typed.value:
        return typed
    value = {key: item for key, item in typed.value.items() if key != "status"}
    return TypedManifest(typed.source, typed.document, value, typed.within)


def _nameless(accepted: AcceptedManifest) -> ManifestFinding:
    return accepted.typed.finding(
        "is required: everything is named after it",
        path="metadata.name",
        fix="only the API server fills in `generateName`",
    )


def _objects(accepted: AcceptedManifest, policy: Configuration) -> tuple[Manifest, ...]:
    assert accepted.spec is not None  # noqa: S101 - called for ModelDeployments only
    snapshot = snapshot_of(accepted, policy)
    if accepted.spec.weights.integrity is not None and not policy.integrity.verifiers:
        note(f"{accepted.typed.where()}: without --config, or `integrity.verifiers` in it, no weights are verified")
    if accepted.spec.weights.image_volume is not None:
        note(
            f"{accepted.typed.where()}: `weights.imageVolume` needs Kubernetes 1.35 "
            "on the API server and on every node of the model: an older one starts the pod without its weights, "
            "and `kubectl apply` does not say so. The "
            "operator asks the cluster first"
        )
    return desired_children(accepted.spec, snapshot)


def _volumes(accepted: AcceptedManifest) -> Iterator[Manifest]:
    assert accepted.spec is not None  # noqa: S101 - called for ModelDeployments only
    share = share_of(accepted.spec)
    if share is None:
        note(f"{accepted.typed.where()}: {accepted.owner.name} reads from no share, and needs no volume")
        return
    volume, claim = platform_volumes(accepted.owner.namespace, accepted.owner.name, share)
    name = claim["metadata"]["name"]
    parent = mounted_folder(accepted.spec)
    folder = folder_below(accepted.spec.weights.folder, parent)
    below = f", folder: {folder}" if folder else ""
    note(f"{accepted.owner.name} reads it with 'weights: {{persistentVolumeClaim: {{claimName: {name}{below}}}}}'")
    for adapter in mounted_adapters(accepted.spec):
        note(f"its adapter '{adapter.name}' has 'folder: {folder_below(adapter.folder, parent)}' then")
    yield volume
    yield claim


def _note_missing_uids(deployments: list[AcceptedManifest]) -> None:
    without = [deployment.owner.name for deployment in deployments if deployment.owner.uid == NO_UID]
    if without:
        note(
            f"no metadata.uid in {', '.join(without)}: owner references contain {NO_UID}, and the names of volumes are "
            "others than those in a cluster"
        )


def _as_documents(manifests: Iterable[Manifest]) -> str:
    return "---\n".join(dump(manifest) for manifest in manifests)

"""`hermetic images`: every image that must be in the private registry, where it comes from, and what uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from hermetic.cli.exit_codes import SeveralErrors
from hermetic.cli.images.lists import LISTS, image_copies
from hermetic.cli.images.sources import SourceMap, source_map
from hermetic.cli.images.uses import CONFIGURATION, ImageUse, Manifest, is_of_the_bundle, is_of_weights, uses_of
from hermetic.cli.manifest_validation import validate
from hermetic.cli.manifests import note_skipped, read_manifests
from hermetic.cli.options import common_options, manifest_files
from hermetic.cli.terminal import echo_fitted, note, write, write_json
from hermetic.controller.settings import load_configuration
from hermetic.errors import InputError
from hermetic.kinds import DEPLOYMENT, EGRESS_AUDIT, MODEL_DEPLOYMENT
from hermetic.objects.names import CHILD_SELECTOR
from hermetic.objects.workloads.registry import WORKLOAD_KINDS

SCHEMA = "hermetic.dev/images/v1"
OPERATOR_LABELS = "app.kubernetes.io/name=hermetic,app.kubernetes.io/component=operator"


@click.command(
    "images",
    epilog="Example: hermetic images -f models/\n\n"
    "Example: hermetic images -f models/ --from contoso.azurecr.io=docker.io -o skopeo\n\n"
    "Example: hermetic images --context production -o json",
)
@manifest_files
@click.option("--namespace", "-n", default="default", help="Namespace of manifests that name none. Default: default.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The operator's configuration: it names the images that verify weights.",
)
@click.option(
    "--from",
    "typed_sources",
    multiple=True,
    metavar="TARGET=SOURCE",
    help="Registry, or path in it, that the images of TARGET come from; an empty SOURCE leaves them out of a list. May "
    "be repeated. Default: where vLLM, SGLang and NIM are published.",
)
@click.option(
    "--from-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The same as YAML: 'TARGET: SOURCE' in each line.",
)
@common_options(cluster=True, lists=tuple(LISTS))
def command(
    files: tuple[str, ...],
    namespace: str,
    config: Path | None,
    typed_sources: tuple[str, ...],
    from_file: Path | None,
    output: str,
    **cluster: str | None,
) -> None:
    """List every image by digest, its source, and what uses it: engines, weights in images, their verifiers, the egress
    probe, the operator.

    With -f of ModelDeployments and EgressAudits in files, and no cluster is asked; without, of the cluster, with the
    operator's own Deployment. Nothing is listed unless every manifest is valid. The forms skopeo, oras, acr-import,
    hauler and zarf are lists by which these programs copy each image under its digest.
    """
    if config is not None and not files:
        raise InputError(
            "--config: the cluster is asked for what verifies weights in it",
            fix="hermetic images -f FILE --config FILE",
        )
    sources = source_map(typed_sources, from_file)
    uses = _of_files(files, namespace) if files else asyncio.run(_of_cluster(**cluster))
    uses += _of_configuration(config) if config is not None else []
    by_image: dict[str, list[ImageUse]] = {}
    for use in sorted(set(uses)):
        by_image.setdefault(use.image, []).append(use)
    if output in LISTS:
        _write_list(output, by_image, sources)
    elif output == "json":
        documents = [_as_json(image, sources, used) for image, used in by_image.items()]
        write_json({"schema": SCHEMA, "images": documents})
    else:
        _print(by_image, sources)
        if files:
            note("the operator's own image is not in these manifests; 'hermetic bundle verify' prints that of a bundle")


def _print(by_image: Mapping[str, Sequence[ImageUse]], sources: SourceMap) -> None:
    for image, uses in by_image.items():
        echo_fitted(image)
        if source := sources.reference(image):
            echo_fitted(f"  source: {source}")
        for use in uses:
            echo_fitted(f"  {use.where}")
    if not by_image:
        note("no ModelDeployment, EgressAudit or operator in the cluster names an image")
    for image in by_image:
        if "@sha256:" not in image:
            note(f"{image} is not named by digest")


def _write_list(form: str, by_image: Mapping[str, Sequence[ImageUse]], sources: SourceMap) -> None:
    """Raises SeveralErrors with every image whose source is not known: a list with a gap would look complete."""
    repositories, unknown = dict[str, str](), list[InputError]()
    for image, uses in by_image.items():
        repository = sources.repository(image)
        if repository:
            repositories[image] = repository
        elif repository == "":
            note(f"{image} is left out")
        elif is_of_the_bundle(uses):
            note(f"{image} is not in the list: the air-gap bundle holds it, and 'hermetic bundle load' pushes it")
        elif is_of_weights(uses):
            note(f"{image} is not in the list: it holds weights, and 'hermetic stage --format oci' writes it")
        else:
            unknown.append(_source_unknown(image))
    if unknown:
        raise SeveralErrors(unknown)
    copies = image_copies(repositories)
    if not copies:
        note("no image is to be copied")
        return
    write(LISTS[form](copies))


def _source_unknown(image: str) -> InputError:
    repository = image.partition("@")[0]
    return InputError(
        f"{image}: no source is known for it",
        fix=f"--from {repository}=SOURCE, or --from {repository}= to leave it out",
    )


def _of_files(files: tuple[str, ...], namespace: str) -> list[ImageUse]:
    reading = read_manifests(files)
    accepted, findings = validate(reading.typed, namespace=namespace)
    note_skipped(reading)
    reading.findings += findings
    reading.raise_findings()
    manifests = (
        manifest.typed.value
        if manifest.spec is None
        else {
            **manifest.typed.value,
            "metadata": {**manifest.typed.value["metadata"], "namespace": manifest.owner.namespace},
        }
        for manifest in accepted
    )
    return [use for manifest in manifests for use in uses_of(manifest)]


def _of_configuration(file: Path) -> list[ImageUse]:
    images = load_configuration(file).integrity.verifiers
    return [
        ImageUse(image, CONFIGURATION, "", file.name, f"integrity.verifiers[{at}]") for at, image in enumerate(images)
    ]


async def _of_cluster(kubeconfig: str | None, context: str | None) -> list[ImageUse]:
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    manifests: list[Manifest] = []
    async with KubernetesApi(connection) as api:
        for kind, labels in (
            (MODEL_DEPLOYMENT, ""), (EGRESS_AUDIT, ""), (DEPLOYMENT, OPERATOR_LABELS),
            *((kind, CHILD_SELECTOR) for kind in WORKLOAD_KINDS),
        ):  # fmt: skip
            manifests += [item async for page, _ in api.pages(kind, label_selector=labels) for item in page]
    return [use for manifest in manifests for use in uses_of(manifest)]


def _as_json(image: str, sources: SourceMap, uses: Iterable[ImageUse]) -> dict[str, Any]:
    used_by = [{"kind": use.kind, "namespace": use.namespace, "name": use.name, "field": use.field} for use in uses]
    return {"image": image, "source": sources.reference(image), "usedBy": used_by}

"""`hermetic images`: every image that must be in the private registry, and what uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hermetic.cli.manifest_validation import validate
from hermetic.cli.manifests import note_skipped, read_manifests
from hermetic.cli.options import common_options, manifest_files
from hermetic.cli.output import echo_fitted, note, write_json
from hermetic.controller.settings import load_configuration
from hermetic.errors import InputError
from hermetic.kinds import DEPLOYMENT, EGRESS_AUDIT, MODEL_DEPLOYMENT
from hermetic.objects.names import CHILD_SELECTOR, MODEL_LABEL
from hermetic.objects.weights_verifier import VERIFIER

Manifest = Mapping[str, Any]
SCHEMA = "hermetic.dev/images/v1"
OPERATOR_LABELS = "app.kubernetes.io/name=hermetic,app.kubernetes.io/component=operator"


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """One place that names an image; `field` is its path in the object."""

    image: str
    kind: str
    namespace: str
    name: str
    field: str

    @property
    def where(self) -> str:
        """The object and the field, as text."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}: {self.field}"


@click.command(
    "images", epilog="Example: hermetic images -f models/\n\nExample: hermetic images --context production -o json"
)
@manifest_files
@click.option("--namespace", "-n", default="default", help="Namespace of manifests that name none. Default: default.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The operator's configuration: it names the images that verify weights.",
)
@common_options(cluster=True)
def command(files: tuple[str, ...], namespace: str, config: Path | None, output: str, **cluster: str | None) -> None:
    """List every image by digest, and what uses it: engines, weights in images, their verifiers, the egress probe, the
    operator.

    With -f of ModelDeployments and EgressAudits in files, and no cluster is asked; without, of the cluster, with the
    operator's own Deployment. Nothing is listed unless every manifest is valid.
    """
    if config is not None and not files:
        raise InputError(
            "--config: the cluster is asked for what verifies weights in it",
            fix="hermetic images -f FILE --config FILE",
        )
    uses = _of_files(files, namespace) if files else asyncio.run(_of_cluster(**cluster))
    uses += _of_configuration(config) if config is not None else []
    by_image: dict[str, list[Use]] = {}
    for use in sorted(set(uses)):
        by_image.setdefault(use.image, []).append(use)
    if output == "json":
        write_json({"schema": SCHEMA, "images": [_as_json(image, used) for image, used in by_image.items()]})
        return
    for image, used in by_image.items():
        echo_fitted(image)
        for use in used:
            echo_fitted(f"  {use.where}")
    if not by_image:
        note("no ModelDeployment, EgressAudit or operator in the cluster names an image")
    if files:
        note("the operator's own image is not in these manifests; 'hermetic bundle verify' prints that of a bundle")
    for image in by_image:
        if "@sha256:" not in image:
            note(f"{image} is not named by digest")


def uses_of(manifest: Manifest) -> Iterator[Use]:
    """The images that an object names: a ModelDeployment, an EgressAudit or a Deployment."""
    metadata, spec = manifest["metadata"], manifest.get("spec") or {}
    for field, image in _fields(str(manifest["kind"]), spec, metadata.get("labels") or {}):
        yield Use(image, str(manifest["kind"]), metadata.get("namespace", ""), metadata.get("name", ""), field)


def _fields(kind: str, spec: Manifest, labels: Manifest) -> Iterator[tuple[str, str]]:
    if kind == MODEL_DEPLOYMENT.kind:
        for engine, settings in spec["engine"].items():
            yield f"spec.engine.{engine}.image", settings["image"]
        volume = (spec.get("weights") or {}).get("imageVolume")
        if volume is not None:
            yield "spec.weights.imageVolume.reference", volume["reference"]
    elif kind == EGRESS_AUDIT.kind and (probe := spec.get("probe")):
        yield "spec.probe.image", probe["image"]
    elif kind == DEPLOYMENT.kind:
        pod = spec["template"]["spec"]
        # The engine's image, which the ModelDeployment names, is that of all its other init containers.
        verifying = [one for one in pod.get("initContainers") or () if one["name"] == VERIFIER]
        for container in verifying if MODEL_LABEL in labels else pod["containers"]:
            yield f"container {container['name']}", container["image"]


def _of_files(files: tuple[str, ...], namespace: str) -> list[Use]:
    reading = read_manifests(files)
    accepted, findings = validate(reading.typed, namespace=namespace)
    note_skipped(reading)
    reading.findings += findings
    reading.raise_findings()
    of_namespace = (
        one.typed.value
        if one.spec is None
        else {**one.typed.value, "metadata": {**one.typed.value["metadata"], "namespace": one.owner.namespace}}
        for one in accepted
    )
    return [use for manifest in of_namespace for use in uses_of(manifest)]


def _of_configuration(file: Path) -> list[Use]:
    images = load_configuration(file).integrity.verifiers
    return [Use(image, "Configuration", "", file.name, f"integrity.verifiers[{at}]") for at, image in enumerate(images)]


async def _of_cluster(kubeconfig: str | None, context: str | None) -> list[Use]:
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    found: list[Manifest] = []
    async with KubernetesApi(connection) as api:
        for kind, labels in (
            (MODEL_DEPLOYMENT, ""), (EGRESS_AUDIT, ""), (DEPLOYMENT, OPERATOR_LABELS), (DEPLOYMENT, CHILD_SELECTOR),
        ):  # fmt: skip
            found += [item async for page, _ in api.pages(kind, label_selector=labels) for item in page]
    return [use for manifest in found for use in uses_of(manifest)]


def _as_json(image: str, uses: Iterable[Use]) -> dict[str, Any]:
    used = [{"kind": one.kind, "namespace": one.namespace, "name": one.name, "field": one.field} for one in uses]
    return {"image": image, "usedBy": used}

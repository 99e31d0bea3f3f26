"""`artifacts/` of the bundle: what a registry keeps beside image and chart.

It is an OCI layout whose index names the image, the chart as Helm pushes it, and the referrers of both: the SBOMs, the
VEX document, the provenance and, with a key, signatures for cosign and for Notation. The image is an index, so what
refers to it refers to the index and to the image of each platform; an SBOM is of one platform. The blobs of the image
are not in it a second time: the layout at the root of the bundle has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.audit.attestation.statement import STATEMENT_TYPE
from hermetic.cli.bundle.layout import ARTIFACTS
from hermetic.cli.bundle.pushes import CHART as CHART_REPOSITORY
from hermetic.weights.oci import blob_name
from shipping.cosign import cosign_attestations, cosign_signature, signed_statement
from shipping.helm_chart import Chart
from shipping.inventory import VEX, cyclonedx_name, spdx_name
from shipping.notation import notation_signature
from shipping.oci_artifacts import REFERENCE, Artifact, Blob, referrer
from shipping.provenance import PREDICATE_TYPE as PROVENANCE
from shipping.revision import Revision
from shipping.signer import Signer
from testbed.images.oci import Image, ImageIndex, as_json, digest_of

SPDX_TYPE, CYCLONEDX_TYPE, VEX_TYPE = (
    "application/spdx+json",
    "application/vnd.cyclonedx+json",
    "application/vnd.openvex+json",
)
STATEMENT_MEDIA_TYPE = "application/vnd.in-toto+json"
SPDX_PREDICATE = "https://spdx.dev/Document"
TITLE = "org.opencontainers.image.title"


def artifact_files(
    image: Image | ImageIndex,
    chart: Chart,
    documents: Mapping[str, bytes],
    statement: Mapping[str, Any],
    revision: Revision,
    signer: Signer | None,
) -> dict[str, bytes]:
    """The files of artifacts/ by name. `documents`: the inventory; `statement`: the provenance of image and chart."""
    referrers = [*_referrers(image, documents, statement), *_provenance(chart.artifact.manifest, statement)]
    if signer is not None:
        referrers += _signatures(signer, image, chart, documents, statement, revision)
    entries = [{**image.descriptor(), "annotations": {REFERENCE: image.tag}}]
    entries += [{**chart.artifact.entry(), "annotations": {REFERENCE: f"chart-{image.tag}"}}]
    entries += [artifact.entry() for artifact in referrers]
    blobs = {blob.digest: blob.content for artifact in (chart.artifact, *referrers) for blob in artifact.blobs}
    blobs |= {artifact.digest: artifact.manifest for artifact in (chart.artifact, *referrers)}
    return {
        f"{ARTIFACTS}oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        f"{ARTIFACTS}index.json": as_json({"schemaVersion": 2, "manifests": entries}),
        **{ARTIFACTS + blob_name(digest): content for digest, content in sorted(blobs.items())},
    }


def _referrers(
    image: Image | ImageIndex, documents: Mapping[str, bytes], statement: Mapping[str, Any]
) -> Iterator[Artifact]:
    for platform in image.images:
        for name, kind in ((spdx_name(platform), SPDX_TYPE), (cyclonedx_name(platform), CYCLONEDX_TYPE)):
            yield _document(kind, platform.manifest, name, documents)
    for subject in _manifests(image):
        yield _document(VEX_TYPE, subject, VEX, documents)
        yield from _provenance(subject, statement)


def _manifests(image: Image | ImageIndex) -> tuple[bytes, ...]:
    """Of an index, and of the image of each platform."""
    return tuple(dict.fromkeys((image.manifest, *(platform.manifest for platform in image.images))))


def _document(kind: str, subject: bytes, name: str, documents: Mapping[str, bytes]) -> Artifact:
    return referrer(kind, subject, (Blob(kind, documents[name], {TITLE: name.rpartition("/")[2]}),))


def _provenance(subject: bytes, statement: Mapping[str, Any]) -> Iterator[Artifact]:
    blob = Blob(STATEMENT_MEDIA_TYPE, as_json(statement), {"predicateType": PROVENANCE, TITLE: "provenance.json"})
    yield referrer(STATEMENT_MEDIA_TYPE, subject, (blob,))


def _signatures(
    signer: Signer,
    image: Image | ImageIndex,
    chart: Chart,
    documents: Mapping[str, bytes],
    statement: Mapping[str, Any],
    revision: Revision,
) -> Iterator[Artifact]:
    """Of the image, of each platform's and of the chart, by every program whose kind of trust key and chain serve."""
    provenance = {PROVENANCE: signed_statement(signer, statement)}
    inventories = {platform.manifest: json.loads(documents[spdx_name(platform)]) for platform in image.images}
    repositories = dict.fromkeys(_manifests(image), image.repository)
    for manifest, repository in {**repositories, chart.artifact.manifest: CHART_REPOSITORY}.items():
        envelopes = dict(provenance)
        if manifest in inventories:
            inventory = _about(manifest, SPDX_PREDICATE, inventories[manifest])
            envelopes[SPDX_PREDICATE] = signed_statement(signer, inventory)
        yield cosign_signature(signer, repository, manifest)
        yield cosign_attestations(manifest, envelopes)
        if signer.chain:
            yield notation_signature(signer, manifest, revision.created)


def _about(manifest: bytes, predicate_type: str, predicate: Any) -> dict[str, Any]:
    digest = digest_of(manifest).removeprefix("sha256:")
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": "hermetic", "digest": {"sha256": digest}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    }

"""The files that `hermetic init` writes, as data: pure, and validated by the models that read them later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.engine import Member
from hermetic.api.kubernetes_yaml import Document
from hermetic.api.reserved_flags import MEDIA_FROM_NOWHERE
from hermetic.api.validation_errors import problems_of
from hermetic.cli.manifest_validation import validate
from hermetic.cli.manifests import TypedManifest
from hermetic.engines.registry import ENGINES
from hermetic.errors import InputError

UNKNOWN_DIGEST = "sha256:DIGEST"
"""In place of a digest that is not known: no command and no API server accepts it."""
_VALID_DIGEST = f"sha256:{'0' * 64}"
CONFIG, VALUES, AUDIT = "config.yaml", "values.yaml", "egress-audit.yaml"


@dataclass(frozen=True, slots=True)
class Setup:
    """The answers. `release`: of the engine, as its part of `spec.engine` takes it; images are by digest.

    `public_key` is PEM, "" without one; `storage_addresses` are of the probe.
    """

    cluster: str
    registry: str
    operator_image: str
    engine_image: str
    engine: Member
    release: str
    account: str
    share: str
    folder: str
    namespace: str
    name: str
    model: str
    weights_digest: str
    public_key: str
    storage_addresses: tuple[str, ...]

    @property
    def model_file(self) -> str:
        """The name of the file of the model."""
        return f"{self.name}.yaml"


def documents_of(setup: Setup) -> dict[str, dict[str, Any]]:
    """The content of each file, by name, in the order in which they are used."""
    return {
        CONFIG: configuration(setup),
        VALUES: values(setup),
        AUDIT: egress_audit(setup),
        setup.model_file: model_deployment(setup),
    }


def configuration(setup: Setup) -> dict[str, Any]:
    """The operator's configuration: nothing else may be used."""
    return {
        "registries": [{"host": setup.registry, "namespaces": [setup.namespace]}],
        "shares": [{"account": setup.account, "share": setup.share, "namespaces": [setup.namespace]}],
        "integrity": {"verifiers": [setup.operator_image]},
    }


def values(setup: Setup) -> dict[str, Any]:
    """The values of the chart."""
    repository, _, digest = setup.operator_image.removeprefix(f"{setup.registry}/").partition("@")
    return {
        "image": {"registry": setup.registry, "repository": repository, "digest": digest},
        "config": configuration(setup),
    }


def egress_audit(setup: Setup) -> dict[str, Any]:
    """The EgressAudit, with the operator's image as the probe."""
    keys = [{"name": "platform", "publicKey": setup.public_key}] if setup.public_key else []
    addresses = list(setup.storage_addresses)
    targets = {"targets": {"storageAddresses": addresses}} if addresses else {}
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "EgressAudit",
        "metadata": {"name": "cluster"},
        "spec": {
            "cluster": setup.cluster,
            "trustedKeys": keys,
            "probe": {"image": setup.operator_image, **targets},
        },
    }


def model_deployment(setup: Setup) -> dict[str, Any]:
    """The first model, on one GPU."""
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": setup.name, "namespace": setup.namespace},
        "spec": {
            "model": {"name": setup.model},
            "engine": {setup.engine: {"image": setup.engine_image, ENGINES[setup.engine].release_field: setup.release}},
            "weights": {
                "azureFiles": {"account": setup.account, "share": setup.share, "folder": setup.folder},
                "integrity": {"digest": setup.weights_digest},
            },
            "accelerator": {"count": 1},
            "endpoint": {"internalLoadBalancer": {}},
        },
    }


def refuse_invalid(documents: dict[str, dict[str, Any]]) -> None:
    """Raises InputError for an answer that makes a file invalid. A digest that is not known counts as a valid one."""
    filled = {file: _filled(document) for file, document in documents.items()}
    try:
        policy = Configuration.model_validate(filled[CONFIG])
    except ValidationError as error:
        problem = problems_of(error, Configuration)[0]
        raise InputError(f"{CONFIG}: `{problem.path}`: {problem.message}", fix="'hermetic init --help'") from error
    manifests = [
        TypedManifest(file, Document(1, document), document) for file, document in filled.items() if "kind" in document
    ]
    _, findings = validate(manifests, namespace="default", policy=policy)
    for finding in findings:
        raise finding.as_error()


def what_to_fill_in(setup: Setup) -> Iterator[str]:
    """A sentence, with the command, for each value that is not known."""
    for image, file in ((setup.operator_image, f"{CONFIG}, {VALUES}, {AUDIT}"), (setup.engine_image, setup.model_file)):
        if image.endswith(UNKNOWN_DIGEST):
            path = image.removeprefix(f"{setup.registry}/").partition("@")[0]
            tag = f"docker://{setup.registry}/{path}:TAG"
            yield f"{file}: fill in the digest of {path}: skopeo inspect --format '{{{{.Digest}}}}' {tag}"
    if setup.weights_digest == UNKNOWN_DIGEST:
        yield (
            f"{setup.model_file}: fill in `weights.integrity.digest`, which this command prints: "
            f"hermetic stage {'MODEL_STORE' if setup.engine == 'nim' else 'MODEL_FOLDER'} "
            f"/mnt/{setup.share}/{setup.folder}"
        )
    if setup.engine == "nim" and setup.release.startswith("2.") and setup.release != "2.0":
        yield (
            f"{setup.model_file}: if the image holds vLLM, add `extraArgs: [{MEDIA_FROM_NOWHERE}]` to `engine.nim`: "
            "without it vLLM fetches media that a request links to"
        )
    if not setup.public_key:
        yield (
            f"{AUDIT}: add the key that signs audits to `trustedKeys`: openssl genpkey -algorithm ed25519 -out "
            "platform.key; openssl pkey -in platform.key -pubout; then 'hermetic init --public-key platform.pub'"
        )
    if not setup.storage_addresses:
        yield (
            f"{AUDIT}: add the address of a storage account in your region that is not yours to "
            "`probe.targets.storageAddresses`; without one the probe cannot decide about storage"
        )


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner) for inner in value]
    return value.replace(UNKNOWN_DIGEST, _VALID_DIGEST) if isinstance(value, str) else value

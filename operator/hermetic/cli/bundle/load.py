"""`hermetic bundle load`: pushes image and chart of a bundle into a registry, with no other program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hermetic.cli.bundle.opened import opened
from hermetic.cli.bundle.pushes import CHART, IMAGE, Push, pushes
from hermetic.cli.bundle.target import Target, target_of, target_options
from hermetic.cli.bundle.trusted_keys import public_keys_option, read_bundle_keys
from hermetic.cli.bundle.verification import Bundle, verify
from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo_fitted, note, write_json
from hermetic.errors import BundleRefused, InputError
from hermetic.registry import transport
from hermetic.registry.pushing import Repository
from hermetic.registry.transport import RegistryClient

LOAD_SCHEMA = "hermetic.dev/bundle-load/v1"


@click.command(
    "load",
    short_help="Push image and chart into a registry.",
    epilog="Example: hermetic bundle load hermetic-0.1.0.tar --to contoso.azurecr.io --public-key platform.pub",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@target_options
@public_keys_option
@common_options(cluster=False)
def load_command(file: Path, public_keys: tuple[str, ...], output: str, **options: Any) -> None:
    """Verify a bundle, push its image and chart into a registry, and read them back by digest.

    Nothing is unpacked and no other program is needed. What the registry has already is not sent again. Credentials
    come from --username and --password-stdin, from HERMETIC_REGISTRY_USERNAME and HERMETIC_REGISTRY_PASSWORD, or from
    the file that 'docker login' or 'podman login' writes.
    """
    target = target_of(options)
    try:
        bundle, planned = _load(file, public_keys, target)
    except BundleRefused as refusal:
        raise BundleRefused(f"{file}: {refusal.message}") from refusal
    if output == "json":
        write_json(_report(target, bundle, planned))
    else:
        _print(target, bundle, planned)


def _load(file: Path, public_keys: Sequence[str], target: Target) -> tuple[Bundle, list[Push]]:
    try:
        status = file.stat()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", fix="name a file that exists") from None
    bundle = verify(file, read_bundle_keys(public_keys))
    connected = transport.opened(target.endpoint, target.credentials, target.authority)
    with opened(file, status) as files, connected as client:
        planned = pushes(files, _digest(bundle), bundle.version)
        for push in planned:
            _push(client, target, push)
    return bundle, planned


def _push(client: RegistryClient, target: Target, push: Push) -> None:
    """Push one manifest after its blobs, then read everything back."""
    repository = Repository(client, target.repository(push.repository))
    for blob in push.blobs:
        is_new = repository.push_blob(blob)
        size = f"{blob.size / 1e6:.1f} MB"
        note(f"{repository.name}: {blob.digest}, {size}: {'pushed' if is_new else 'there already'}")
    repository.push_manifest(push.manifest)
    repository.verify(push.manifest, push.blobs)


def _print(target: Target, bundle: Bundle, planned: Sequence[Push]) -> None:
    for push in planned:
        echo_fitted(f"{_kind(push)}: {_reference(target, push)}")
    if bundle.signed_by is None:
        note("no key was given to check the signature of the bundle with: --public-key KEY")
    note(f"every digest was read back from {target.endpoint.host}")
    note(f"next: {_next_command(target, bundle)}")


def _report(target: Target, bundle: Bundle, planned: Sequence[Push]) -> dict[str, Any]:
    return {
        "schema": LOAD_SCHEMA,
        "version": bundle.version,
        "signedBy": bundle.signed_by.keyid if bundle.signed_by is not None else "",
        "pushed": [
            {
                "kind": _kind(push),
                "reference": _reference(target, push),
                "digest": push.manifest.digest,
                "subject": push.manifest.subject,
            }
            for push in planned
        ],
        "next": _next_command(target, bundle),
    }


def _kind(push: Push) -> str:
    if push.manifest.subject:
        return "referrer"
    if push.is_platform:
        return "platform"
    return "chart" if push.repository == CHART else "image"


def _reference(target: Target, push: Push) -> str:
    tag = "".join(f":{tag}" for tag in push.manifest.tags[:1])
    return f"{target.endpoint.host}/{target.repository(push.repository)}{tag}@{push.manifest.digest}"


def _next_command(target: Target, bundle: Bundle) -> str:
    """The installation by Helm; docs/install.md describes values.yaml."""
    host = target.endpoint.host
    values = [f"--set image.registry={host}", f"--set image.digest={_digest(bundle)}"]
    if target.prefix:
        values.insert(1, f"--set image.repository={target.repository(IMAGE)}")
    return (
        f"helm install hermetic oci://{host}/{target.repository(CHART)} --version {bundle.version} "
        f"--namespace hermetic-system --values values.yaml {' '.join(values)} --wait"
    )


def _digest(bundle: Bundle) -> str:
    return bundle.image.rpartition("@")[2]

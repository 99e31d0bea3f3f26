"""`hermetic validate`: whether the API server and the operator would accept a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hermetic.cli.manifest_validation import AcceptedManifest, validate
from hermetic.cli.manifests import ManifestFinding, ManifestsRead, note_skipped, read_manifests
from hermetic.cli.options import common_options, configuration_in, manifest_files
from hermetic.cli.terminal import echo, note, write_json
from hermetic.engines.image_versions import contradicting_tag
from hermetic.errors import InputError
from hermetic.sizing.catalogue import nearest_size, sizes

SCHEMA = "hermetic.dev/validation/v1"


@click.command(
    "validate",
    epilog="Example: hermetic validate -f llama.yaml\n\n"
    "Example: hermetic validate -f models/*.yaml --config config.yaml -o json",
)
@manifest_files
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The operator's configuration: asks its lists of allowed registries and shares as well.",
)
@click.option("--namespace", "-n", default="default", help="Namespace of manifests that name none. Default: default.")
@common_options(cluster=False)
def command(files: tuple[str, ...], config: Path | None, namespace: str, output: str) -> None:
    """Check manifests without a cluster.

    Every field, every rule across fields, and the engine's arguments against the release that `version` names; with
    --config also registries and shares. Every problem is listed, with the place in the file.
    Of a folder every file below it is read: other kinds, templates and patches are skipped, and counted.
    """
    if not files:
        raise InputError("no input file", fix="hermetic validate -f FILE")
    policy = configuration_in(config)
    reading = read_manifests(files)
    accepted, findings = validate(reading.typed, namespace=namespace, policy=policy)
    reading.findings += findings
    if output == "json":
        write_json(_report(accepted, reading))
    else:
        for manifest in accepted:
            echo(f"{manifest.typed.where()}: {manifest.kind} {_name(manifest)} is valid")
            _note_unlisted_sizes(manifest)
            _note_contradicting_tag(manifest)
        note_skipped(reading)
    reading.raise_findings()


def _note_unlisted_sizes(manifest: AcceptedManifest) -> None:
    """A size that is not in the catalogue may be new, or a slip for one that is: then its pods would stay Pending."""
    for name in manifest.spec.accelerator.instance_types if manifest.spec is not None else ():
        nearest = nearest_size(name)
        if name not in sizes() and nearest is not None:
            note(f"{manifest.typed.where()}: VM size {name} is not in the catalogue; did you mean {nearest}?")


def _note_contradicting_tag(manifest: AcceptedManifest) -> None:
    """The digest decides what runs; flags are rendered for the release in the spec, and that engine may refuse them."""
    tag = contradicting_tag(manifest.spec) if manifest.spec is not None else ""
    if manifest.spec is not None and tag:
        engine, member = manifest.spec.engine.chosen, manifest.spec.engine.member
        field = "line" if member == "nim" else "version"
        release = getattr(engine, field)
        note(
            f"{manifest.typed.where()}: the tag of the image is {tag}, and `{field}` is {release}: flags are "
            f"rendered for {release}, and the engine of the image may refuse them; "
            f"set `engine.{member}.{field}` to its release"
        )


def _name(manifest: AcceptedManifest) -> str:
    return f"{manifest.owner.namespace}/{manifest.owner.name}" if manifest.spec is not None else manifest.owner.name


def _report(accepted: list[AcceptedManifest], reading: ManifestsRead) -> dict[str, Any]:
    findings = reading.in_reading_order()
    return {
        "schema": SCHEMA,
        "valid": not findings,
        "accepted": [
            {
                "file": manifest.typed.source,
                "document": manifest.typed.document.number,
                "kind": manifest.kind,
                "name": _name(manifest),
            }
            for manifest in accepted
        ],
        "problems": [_problem(finding) for finding in findings],
        "skipped": [{"file": file.source, "why": file.why} for file in reading.skipped],
        "foreign": reading.foreign,
    }


def _problem(finding: ManifestFinding) -> dict[str, Any]:
    error, position = finding.as_error(), finding.position
    return {
        "code": error.code,
        "file": finding.source,
        "document": finding.document,
        "line": position.line if position is not None else 0,
        "column": position.column if position is not None else 0,
        "reason": finding.reason,
        "field": finding.field,
        "value": finding.value,
        "message": finding.message,
        "fix": error.fix,
    }

"""`hermetic init`: writes config.yaml, values.yaml, egress-audit.yaml and the manifest of a first model."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hermetic import __version__
from hermetic.api.engine import Member
from hermetic.api.image_references import tag_of
from hermetic.api.kubernetes_yaml import dump
from hermetic.cli.audit.files import content_of, make_folder, write_file
from hermetic.cli.init.documents import UNKNOWN_DIGEST, Setup, documents_of, refuse_invalid, what_to_fill_in
from hermetic.cli.options import common_options
from hermetic.cli.terminal import echo, note, write_json
from hermetic.collect.azure.answering import cluster_id
from hermetic.engines.registry import ENGINES
from hermetic.errors import InputError, RegistryRefused, Unreachable
from hermetic.registry.credentials import find_credentials
from hermetic.registry.pushing import Repository
from hermetic.registry.transport import Endpoint, opened

SCHEMA = "hermetic.dev/init/v1"
ASKED = {
    "cluster": "ARM id of the cluster (az aks show --query id --output tsv)",
    "registry": "Private registry, such as contoso.azurecr.io",
    "engine_image": "Serving image in it, by tag or digest, such as {image}",
    "share": "NFS share with the model, ACCOUNT/SHARE/FOLDER",
    "model": "Name that clients use for the model, such as meta/llama-3.1-8b-instruct",
    "public_key": "File with the public key that signs audits (empty: later)",
}
"""The questions, in their order; {image} is an image of the engine."""
OPTIONAL = frozenset({"public_key"})


@dataclass(frozen=True, slots=True)
class EngineImage:
    """The image that an engine is published as, with a tag, and how its tags name the release of `spec.engine`."""

    example: str
    release: re.Pattern[str]


# Tags: hub.docker.com/r/vllm/vllm-openai/tags, hub.docker.com/r/lmsysorg/sglang/tags, catalog.ngc.nvidia.com.
ENGINE_IMAGES: Mapping[Member, EngineImage] = {
    "vllm": EngineImage("vllm/vllm-openai:v0.32.0", re.compile(r"v?(\d+\.\d+\.\d+)\b")),
    "sglang": EngineImage("lmsysorg/sglang:v0.5.23", re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+)?)\b")),
    "nim": EngineImage("nim/meta/llama-3.1-8b-instruct:2.1.6", re.compile(r"v?(\d+\.\d+)(?!\d)")),
}
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@click.command(
    "init",
    epilog="Example: hermetic init gpu-platform --cluster ID --registry contoso.azurecr.io --engine-image "
    "vllm/vllm-openai:v0.32.0 --share contosomodels/models/llama-8b --model meta/llama-3.1-8b-instruct",
)
@click.argument("folder", default=".", type=click.Path(path_type=Path), metavar="[FOLDER]")
@click.option("--cluster", default="", metavar="ID", help="ARM id of the cluster.")
@click.option("--registry", default="", metavar="HOST", help="The private registry that the nodes pull from.")
@click.option("--engine-image", default="", metavar="IMAGE", help="Serving image in it, by tag or digest.")
@click.option("--engine", type=click.Choice(list(ENGINE_IMAGES)), default="vllm", show_default=True, help="The engine.")
@click.option(
    "--share", default="", metavar="ACCOUNT/SHARE/FOLDER", help="NFS share of Azure Files, and the model's folder."
)
@click.option("--model", default="", metavar="NAME", help="Name that clients use for the model.")
@click.option("--public-key", default="", metavar="FILE", help="Public key that signs audits.")
@click.option("--operator-image", default="", metavar="IMAGE", help="The operator's image. Default: hermetic:VERSION.")
@click.option(
    "--version", default="", metavar="R", help="Release of the engine, or line of the NIM. Default: that of the tag."
)
@click.option("--namespace", "-n", default="inference", show_default=True, help="Namespace of the model.")
@click.option("--name", default="", help="Name of the ModelDeployment. Default: it follows from --model.")
@click.option("--weights-digest", default=UNKNOWN_DIGEST, metavar="DIGEST", help="As 'hermetic stage' prints it.")
@click.option(
    "--storage-address",
    "storage_addresses",
    multiple=True,
    metavar="IP",
    help="Address of a storage account in your region that is not yours, for the probe. May be repeated.",
)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@click.option("--offline", is_flag=True, help="Ask no registry for digests.")
@click.option("--plain-http", is_flag=True, help="The registry has no TLS.")
@common_options(cluster=False)
def command(folder: Path, *, overwrite: bool, output: str, **options: Any) -> None:
    """Write the files of a first installation: config.yaml, values.yaml, egress-audit.yaml and a model.

    Asks six questions on a terminal; elsewhere the options answer them. Images by tag get their digests from the
    registry if it can be reached. Files that exist are kept.
    """
    setup = _setup({**options, **_answers(options)})
    documents = documents_of(setup)
    refuse_invalid(documents)
    _refuse_existing(folder, documents, overwrite=overwrite)
    for name, document in documents.items():
        write_file(folder / name, dump(document))
    _report([str(folder / name) for name in documents], list(what_to_fill_in(setup)), as_json=output == "json")


def _report(files: Sequence[str], to_fill_in: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        write_json({"schema": SCHEMA, "files": list(files), "toFillIn": list(to_fill_in)})
        return
    for file in files:
        echo(file)
    for sentence in to_fill_in:
        note(sentence)


def _answers(options: Mapping[str, Any]) -> dict[str, str]:
    """The answers to the questions that no option answers. Raises InputError without a terminal."""
    missing = [name for name in ASKED if not options[name]]
    if not sys.stdin.isatty():
        if required := [f"--{name.replace('_', '-')}" for name in missing if name not in OPTIONAL]:
            raise InputError(
                f"without a terminal no question is asked, and these options are missing: {', '.join(required)}",
                fix="'hermetic init --help' shows an example",
            )
        return {}
    return {
        name: click.prompt(
            ASKED[name].format(image=ENGINE_IMAGES[options["engine"]].example),
            default="" if name in OPTIONAL else None,
            show_default=False,
            err=True,
        )
        for name in missing
    }


def _setup(options: Mapping[str, Any]) -> Setup:
    account, share, folder = _share(options["share"])
    registry = options["registry"].strip().lower()
    engine_image = options["engine_image"]
    operator_image = options["operator_image"] or f"hermetic:{__version__}"
    release = options["version"] or _release_of(engine_image, options["engine"])
    return Setup(
        cluster=cluster_id(options["cluster"]),
        registry=registry,
        operator_image=_pinned(operator_image, registry, options),
        engine_image=_pinned(engine_image, registry, options),
        engine=options["engine"],
        release=release,
        account=account,
        share=share,
        folder=folder,
        namespace=options["namespace"],
        name=options["name"] or _NOT_IN_NAMES.sub("-", options["model"].rpartition("/")[2].lower()).strip("-"),
        model=options["model"],
        weights_digest=options["weights_digest"],
        public_key=content_of(Path(options["public_key"])).decode("ascii", "replace") if options["public_key"] else "",
        storage_addresses=options["storage_addresses"],
    )


def _release_of(image: str, engine: Member) -> str:
    """The release that the tag names, as `spec.engine` takes it. Raises InputError where it names none."""
    published = ENGINE_IMAGES[engine]
    if (match := published.release.search(tag_of(image))) is not None:
        return match[1]
    (release,) = published.release.findall(tag_of(published.example))
    raise InputError(f"{image} names no release of {ENGINES[engine].name}", fix=f"--version {release}")


def _share(text: str) -> tuple[str, str, str]:
    account, _, path = text.strip().partition("/")
    share, _, folder = path.partition("/")
    if not (account and share and folder):
        raise InputError(
            f"--share {text}: is not ACCOUNT/SHARE/FOLDER", fix="--share contosomodels/models/llama-3-1-8b"
        )
    return account, share, folder


def _pinned(image: str, registry: str, options: Mapping[str, Any]) -> str:
    """The image in the registry, by digest: the given one, or that of its tag; UNKNOWN_DIGEST if none can be read."""
    path, at, digest = image.removeprefix(f"{registry}/").partition("@")
    repository, _, tag = path.partition(":")
    if not at:
        digest = _digest_of(registry, repository, tag or "latest", options) or UNKNOWN_DIGEST
    return f"{registry}/{repository}@{digest}"


def _digest_of(registry: str, repository: str, tag: str, options: Mapping[str, Any]) -> str:
    """The digest of a tag; "" with a note where the registry does not say it."""
    if options["offline"]:
        return ""
    try:
        credentials = find_credentials(registry, os.environ)
        with opened(Endpoint(registry, options["plain_http"]), credentials) as client:
            digest = Repository(client, repository, actions="pull").digest_of(tag)
    except (Unreachable, RegistryRefused) as error:
        note(f"{registry}/{repository}:{tag}: {error.message}")
        return ""
    if not digest:
        note(f"{registry}/{repository}:{tag}: the registry does not have it")
    return digest


def _refuse_existing(folder: Path, names: Mapping[str, Any], *, overwrite: bool) -> None:
    """Raises InputError for files that exist, Unreachable for a folder that cannot be made."""
    existing = [str(folder / name) for name in names if (folder / name).exists()]
    if existing and not overwrite:
        raise InputError(f"{', '.join(existing)}: exists", fix="name another folder, or replace them with --overwrite")
    make_folder(folder)

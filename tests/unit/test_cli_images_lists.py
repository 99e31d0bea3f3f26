"""`hermetic images -o skopeo|oras|acr-import|hauler|zarf`: where each image comes from, and the lists that copy it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.cli.images.lists import LISTS, image_copies
from hermetic.cli.images.sources import SourceMap
from hermetic.errors import InputError
from tests.commandline import Ran, hermetic
from tests.scenarios import a_baked_model, a_nim_model, a_share_model, an_egress_audit, an_image_volume_model, changed

DIGEST, OTHER = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
REGISTRY = "contoso.azurecr.io"
COMMANDS = ("skopeo", "oras", "acr-import")


def vllm(image: str, name: str = "a") -> dict[str, Any]:
    model = a_share_model(name)
    return changed(model, engine={"vllm": {**model["spec"]["engine"]["vllm"], "image": image}})


def listed(form: str, *manifests: dict[str, Any], options: tuple[str, ...] = ()) -> Ran:
    return hermetic("images", "-f", "-", "-o", form, *options, stdin=yaml.safe_dump_all(manifests))


def sources_in_json(*images: str, options: tuple[str, ...] = ()) -> list[str]:
    models = [vllm(image, f"m{at}") for at, image in enumerate(images)]
    ran = listed("json", *models, options=options)
    assert ran.code == 0, ran.err
    return [document["source"] for document in json.loads(ran.out)["images"]]


SOURCES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "vLLM as its name says": ("contoso.azurecr.io/vllm/vllm-openai", (), "docker.io/vllm/vllm-openai"),
    "below a path of the mirror": ("contoso.azurecr.io/mirror/vllm/vllm-openai", (), "docker.io/vllm/vllm-openai"),
    "below the name of its registry": ("c.azurecr.io/docker.io/vllm/vllm-openai", (), "docker.io/vllm/vllm-openai"),
    "SGLang": ("contoso.azurecr.io/lmsysorg/sglang", (), "docker.io/lmsysorg/sglang"),
    "NIM": ("contoso.azurecr.io/nim/meta/llama-3.1-8b-instruct", (), "nvcr.io/nim/meta/llama-3.1-8b-instruct"),
    "a NIM without its publisher": ("contoso.azurecr.io/nim/llama", (), ""),
    "a name that only ends like vLLM": ("contoso.azurecr.io/myvllm/vllm-openai", (), ""),
    "a name that begins like vLLM": ("contoso.azurecr.io/vllm/vllm-openai/debug", (), ""),
    "an own build": ("contoso.azurecr.io/models/phi-4", (), ""),
    "a registry replaced": (
        "contoso.azurecr.io/models/phi-4",
        ("--from", "contoso.azurecr.io=build.example:5000"),
        "build.example:5000/models/phi-4",
    ),
    "a path replaced": (
        "contoso.azurecr.io/mirror/a/b",
        ("--from", "contoso.azurecr.io/mirror=ghcr.io/org"),
        "ghcr.io/org/a/b",
    ),
    "the longest prefix counts": (
        "contoso.azurecr.io/mirror/a",
        ("--from", "contoso.azurecr.io=docker.io", "--from", "contoso.azurecr.io/mirror=ghcr.io"),
        "ghcr.io/a",
    ),
    "a prefix ends where a component ends": (
        "contoso.azurecr.io/mirrored/a",
        ("--from", "contoso.azurecr.io/mirror=ghcr.io"),
        "",
    ),
    "a whole repository": (
        "contoso.azurecr.io/models/phi-4",
        ("--from", "contoso.azurecr.io/models/phi-4=ghcr.io/org/phi"),
        "ghcr.io/org/phi",
    ),
    "it comes before what is well known": (
        "contoso.azurecr.io/vllm/vllm-openai",
        ("--from", "contoso.azurecr.io=staging.example"),
        "staging.example/vllm/vllm-openai",
    ),
    "an official image of Docker Hub": (
        "contoso.azurecr.io/busybox",
        ("--from", "contoso.azurecr.io=docker.io"),
        "docker.io/library/busybox",
    ),
}


@pytest.mark.parametrize("case", SOURCES)
def test_the_source_of_an_image_is_that_of_its_prefix_or_its_name(case: str) -> None:
    target, options, source = SOURCES[case]
    assert sources_in_json(f"{target}@{DIGEST}", options=options) == [f"{source}@{DIGEST}" if source else ""]


def test_the_source_has_the_same_tag_and_digest_in_text_and_json() -> None:
    image = f"{REGISTRY}/vllm/vllm-openai:v0.32.0@{DIGEST}"
    source = f"docker.io/vllm/vllm-openai:v0.32.0@{DIGEST}"
    assert sources_in_json(image) == [source]
    assert f"{image}\n  source: {source}\n  ModelDeployment " in listed("text", vllm(image)).out


def test_a_file_of_sources_is_read_and_an_option_comes_before_it(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text("contoso.azurecr.io/a: ghcr.io/a\ncontoso.azurecr.io/b: quay.io/b\ncontoso.azurecr.io/c:\n")
    images = [f"{REGISTRY}/{name}/x@{DIGEST}" for name in "abc"]
    options = ("--from-file", str(file), "--from", f"{REGISTRY}/b=ghcr.io/b")
    assert sources_in_json(*images, options=options) == [f"ghcr.io/a/x@{DIGEST}", f"ghcr.io/b/x@{DIGEST}", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n", "is not one mapping"),
        ("contoso.azurecr.io: docker.io\ncontoso.azurecr.io: ghcr.io\n", "each key once"),
        ("contoso.azurecr.io: [docker.io]\n", "must be a registry"),
        ("1: docker.io\n", "is not one mapping"),
        ("contoso.azurecr.io: https://docker.io\n", "is not a registry"),
        ("a: {b\n", "is not YAML"),
        ("", "is not one mapping"),
    ],
)
def test_a_file_of_sources_that_is_no_mapping_is_bad_input(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(content)
    ran = listed("skopeo", a_share_model(), options=("--from-file", str(tmp_path / "sources.yaml")))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.errors[0]


@pytest.mark.parametrize(
    "typed",
    ["contoso.azurecr.io", "=docker.io", "https://contoso.azurecr.io=docker.io", "contoso.azurecr.io=docker.io/",
     "contoso.azurecr.io=docker.io;id", "contoso.azurecr.io=$(id)", "contoso.azurecr.io=-v", "a b=docker.io",
     "contoso.azurecr.io=docker.io\nid", "Contoso.azurecr.io=docker.io"],
)  # fmt: skip
def test_a_source_that_is_no_registry_is_bad_input(typed: str) -> None:
    ran = listed("skopeo", a_share_model(), options=("--from", typed))
    assert (ran.code, ran.out, len(ran.errors)) == (2, "", 1)
    assert ran.errors[0].startswith("error: HRM-INP-001: --from")


IMAGE = f"{REGISTRY}/vllm/vllm-openai:v0.32.0@{DIGEST}"
LINES = {
    "skopeo": f"skopeo copy --all --preserve-digests docker://docker.io/vllm/vllm-openai@{DIGEST} "
    f"docker://{REGISTRY}/vllm/vllm-openai:v0.32.0\n",
    "oras": f"oras cp docker.io/vllm/vllm-openai@{DIGEST} {REGISTRY}/vllm/vllm-openai:v0.32.0\n",
    "acr-import": f"az acr import --name contoso --source docker.io/vllm/vllm-openai@{DIGEST} "
    "--image vllm/vllm-openai:v0.32.0\n",
}


@pytest.mark.parametrize("form", LINES)
def test_a_list_of_commands_copies_by_digest_to_the_tag_of_the_target(form: str) -> None:
    ran = listed(form, vllm(IMAGE))
    assert (ran.code, ran.out) == (0, LINES[form])


def test_an_image_without_a_tag_gets_one_of_its_digest_and_no_two_digests_share_a_tag() -> None:
    images = [f"{REGISTRY}/vllm/vllm-openai{suffix}" for suffix in (f"@{DIGEST}", f":v1@{DIGEST}", f":v1@{OTHER}")]
    copies = image_copies(dict.fromkeys(images, "docker.io/vllm/vllm-openai"))
    assert [copy.tag for copy in copies] == ["digest-111111111111", "digest-111111111111", "digest-222222222222"]
    # cosign and the referrers tag schema use names of the form sha256-DIGEST for signatures
    assert not any(copy.tag.startswith("sha256-") for copy in copies)


def test_the_list_of_hauler_has_the_fields_of_its_api_and_rewrites_to_the_target() -> None:
    """Fields: ImageSpec and Image of pkg/apis/hauler.cattle.io/v1/image.go of hauler-dev/hauler; the group is that of
    testdata/hauler-manifest.yaml there. `rewrite` must have a tag where the name has a digest (storeImage in
    cmd/hauler/cli/store/add.go)."""
    ran = listed("hauler", vllm(IMAGE), a_nim_model())
    document = yaml.safe_load(ran.out)
    assert (document["apiVersion"], document["kind"]) == ("content.hauler.cattle.io/v1", "Images")
    first = document["spec"]["images"][-1]
    assert first == {"name": f"docker.io/vllm/vllm-openai@{DIGEST}", "rewrite": "vllm/vllm-openai:v0.32.0"}
    assert len(document["spec"]["images"]) == 2
    assert all(":" in image["rewrite"] and "@" not in image["rewrite"] for image in document["spec"]["images"])


def test_the_list_of_zarf_names_images_by_digest_and_refuses_another_path() -> None:
    document = yaml.safe_load(listed("zarf", vllm(IMAGE)).out)
    assert document["kind"] == "ZarfPackageConfig"
    assert document["components"][0]["images"] == [f"docker.io/vllm/vllm-openai@{DIGEST}"]
    moved = listed("zarf", vllm(f"{REGISTRY}/mirror/vllm/vllm-openai@{DIGEST}"))
    assert (moved.code, moved.out) == (2, "")
    assert f"Zarf would push it as {REGISTRY}/vllm/vllm-openai" in moved.errors[0]


@pytest.mark.parametrize("form", ["hauler", "zarf"])
def test_a_list_for_one_registry_refuses_images_of_two(form: str) -> None:
    other = f"fabrikam.azurecr.io/vllm/vllm-openai@{DIGEST}"
    ran = listed(form, vllm(IMAGE), vllm(other, "b"))
    assert (ran.code, ran.out) == (2, "")
    assert f"{REGISTRY} and fabrikam.azurecr.io" in ran.errors[0]


@pytest.mark.parametrize(
    ("login_server", "name"),
    [("contoso.azurecr.io", "contoso"), ("contoso.azurecr.cn", "contoso"), ("contoso.azurecr.us", "contoso"),
     ("contoso-c4hpcbfpb8hkhkb2.azurecr.io", "contoso")],
)  # fmt: skip
def test_the_name_of_a_registry_of_azure_is_that_of_its_login_server_without_the_label(
    login_server: str, name: str
) -> None:
    """Domain name label: https://learn.microsoft.com/azure/container-registry/container-registry-get-started-portal."""
    ran = listed("acr-import", vllm(f"{login_server}/vllm/vllm-openai@{DIGEST}"))
    assert shlex.split(ran.out)[4] == name


def test_acr_import_is_refused_for_a_registry_that_is_not_of_azure() -> None:
    ran = listed("acr-import", vllm(f"harbor.contoso.com/vllm/vllm-openai@{DIGEST}"))
    assert (ran.code, ran.out) == (2, "")
    assert "harbor.contoso.com: is not a registry of Azure" in ran.errors[0]


@pytest.mark.parametrize("form", LISTS)
def test_nothing_is_listed_while_the_source_of_an_image_is_not_known(form: str) -> None:
    ran = listed(form, a_baked_model(), vllm(IMAGE))
    assert (ran.code, ran.out) == (2, "")
    image = a_baked_model()["spec"]["engine"]["vllm"]["image"]
    assert ran.errors == [f"error: HRM-INP-001: {image}: no source is known for it"]
    left_out = listed(form, a_baked_model(), vllm(IMAGE), options=("--from", f"{image.partition('@')[0]}="))
    assert left_out.code == 0, left_out.err
    assert f"{image} is left out" in left_out.err
    assert image.partition("@")[0] not in left_out.out


def test_the_image_of_the_bundle_and_images_of_weights_are_notes_and_not_in_a_list() -> None:
    probe = f"{REGISTRY}/hermetic@{OTHER}"
    ran = listed("skopeo", an_egress_audit(probe={"image": probe}), an_image_volume_model())
    assert ran.code == 0, ran.err
    assert probe not in ran.out
    assert f"{probe} is not in the list: the air-gap bundle holds it" in ran.err
    weights = an_image_volume_model()["spec"]["weights"]["imageVolume"]["reference"]
    assert f"{weights} is not in the list: it holds weights" in ran.err
    mapped = listed("skopeo", an_egress_audit(probe={"image": probe}), options=("--from", f"{REGISTRY}=a.example"))
    assert f"docker://a.example/hermetic@{OTHER}" in mapped.out


def test_a_list_without_images_is_empty_and_says_so() -> None:
    ran = listed("hauler", an_egress_audit(probe={"image": f"{REGISTRY}/hermetic@{OTHER}"}))
    assert (ran.code, ran.out) == (0, "")
    assert "no image is to be copied" in ran.err


HOSTILE = [
    f"{REGISTRY}/vllm/vllm-openai;id@{DIGEST}",
    f"{REGISTRY}/$(id)@{DIGEST}",
    f"{REGISTRY}/a`id`@{DIGEST}",
    f"{REGISTRY}/a\nid\n@{DIGEST}",
    f"{REGISTRY}/a b@{DIGEST}",
    f"--flag/a@{DIGEST}",
    f"{REGISTRY}/a'@{DIGEST}",
    f"{REGISTRY}/a:latest",
    f"{REGISTRY}/a@{DIGEST}\n",
    f"{REGISTRY}/a@sha256:1",
    f"{REGISTRY}/a\u202e@{DIGEST}",
]


@pytest.mark.parametrize("image", HOSTILE)
def test_an_image_that_is_no_pinned_reference_is_in_no_list(image: str) -> None:
    """A Deployment of the cluster can name anything; a ModelDeployment cannot (its schema has the same pattern)."""
    with pytest.raises(InputError, match="is not of the form"):
        image_copies({image: "docker.io/a"})


@pytest.mark.parametrize("form", COMMANDS)
@pytest.mark.parametrize("source", ["docker.io/a;id", "docker.io/$(id)", "docker.io/a b", "docker.io/a'b", "a\nid"])
def test_a_hostile_source_stays_one_word_of_the_command(form: str, source: str) -> None:
    """The second wall: whatever a reference holds, the shell reads as many words as were written."""
    (copy,) = image_copies({IMAGE: source})
    arguments = shlex.split(LISTS[form]([copy]))
    assert len(arguments) == len(shlex.split(LINES[form]))
    assert [word for word in arguments if f"{source}@{DIGEST}" in word] != []


def test_a_hostile_name_of_a_model_is_refused_before_anything_is_listed() -> None:
    model = vllm(IMAGE)
    model["metadata"]["name"] = "a;id"
    ran = listed("skopeo", model)
    assert (ran.code, ran.out) == (2, "")


def test_an_image_of_a_public_registry_has_no_target() -> None:
    assert SourceMap({}).repository(f"docker.io/vllm/vllm-openai@{DIGEST}") == "docker.io/vllm/vllm-openai"
    ran = listed("skopeo", vllm(f"docker.io/vllm/vllm-openai@{DIGEST}"))
    assert (ran.code, ran.out) == (2, "")
    assert "is in a public registry" in ran.errors[0]

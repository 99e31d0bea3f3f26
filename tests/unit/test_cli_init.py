"""`hermetic init`: every file that it writes is one that the product takes, and no file of others is touched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import yaml

from hermetic.api.engine import MEMBERS
from hermetic.cli.init import command
from hermetic.controller.settings import load_configuration
from testbed.installation import REPOSITORY
from testbed.registry_stand_in import RegistryStandIn
from tests.commandline import Ran, hermetic
from tests.install_page import documented
from tests.scenarios import CLUSTER

DIGEST = f"sha256:{'3f1c' * 16}"
KEY = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAraZzSQXaIfiO46PewKic1vzTG6oebNm9HpAlLIawls0=
-----END PUBLIC KEY-----
"""
FILES = {"config.yaml", "values.yaml", "egress-audit.yaml", "llama-3-1-8b-instruct.yaml"}
ANSWERS = {
    "--cluster": CLUSTER,
    "--registry": "contoso.azurecr.io",
    "--engine-image": f"vllm/vllm-openai:v0.32.0@{DIGEST}",
    "--operator-image": f"hermetic@{DIGEST}",
    "--share": "contosomodels/models/llama-3-1-8b/fp8",
    "--model": "meta/llama-3.1-8b-instruct",
    "--weights-digest": DIGEST,
    "--storage-address": "203.0.113.20",
}


def init(folder: Path, *more: str | Path, stdin: str = "", **changed: str) -> Ran:
    """The command with all answers but those that are changed ("" leaves one out)."""
    answers = ANSWERS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return hermetic("init", folder, *(part for pair in answers.items() if pair[1] for part in pair), *more, stdin=stdin)


def document(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def with_key(folder: Path) -> Path:
    file = folder / "platform.pub"
    file.write_text(KEY)
    return file


def test_files_are_valid_for_the_product_and_its_schemas(tmp_path: Path) -> None:
    folder = tmp_path / "platform"
    ran = init(folder, "--public-key", with_key(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert {file.name for file in folder.iterdir()} == FILES
    assert ran.out.split() == [str(folder / name) for name in ("config.yaml", "values.yaml", "egress-audit.yaml")] + [
        str(folder / "llama-3-1-8b-instruct.yaml")
    ]
    configuration = load_configuration(folder / "config.yaml")
    assert configuration.integrity.verifiers == [f"contoso.azurecr.io/hermetic@{DIGEST}"]
    manifests = [folder / "egress-audit.yaml", folder / "llama-3-1-8b-instruct.yaml"]
    validated = hermetic(
        "validate", "--config", folder / "config.yaml", *(part for file in manifests for part in ("-f", file))
    )
    assert validated.code == 0, validated.out + validated.err
    schema = json.loads((REPOSITORY / "charts" / "hermetic" / "values.schema.json").read_text())
    jsonschema.validate(document(folder / "values.yaml"), schema)
    for file, plural in zip(manifests, ("egressaudits", "modeldeployments"), strict=True):
        (crd,) = (REPOSITORY / "crds").glob(f"{plural}*.yaml")
        version = document(crd)["spec"]["versions"][0]
        jsonschema.validate(document(file), version["schema"]["openAPIV3Schema"])


def test_digests_of_tags_come_from_the_registry(tmp_path: Path) -> None:
    with RegistryStandIn() as registry:
        media_type = "application/vnd.oci.image.index.v1+json"
        for name, content in (("hermetic", b"{}"), ("vllm/vllm-openai", b"{ }")):
            registry.manifests[f"{name}:v0.32.0"] = media_type, content
        ran = init(
            tmp_path,
            "--plain-http",
            registry=registry.host,
            engine_image="vllm/vllm-openai:v0.32.0",
            operator_image="hermetic:missing",
        )
        requests = list(registry.requests)
    assert ran.code == 0, ran.err
    assert {method for method, _, _ in requests} <= {"HEAD", "GET"}
    assert "hermetic:missing: the registry does not have it" in ran.err
    assert document(tmp_path / "values.yaml")["image"]["digest"] == "sha256:DIGEST"
    image = document(tmp_path / "llama-3-1-8b-instruct.yaml")["spec"]["engine"]["vllm"]["image"]
    assert image == f"{registry.host}/vllm/vllm-openai@sha256:{hashlib.sha256(b'{ }').hexdigest()}"


ENGINES = {
    "vllm": ("vllm/vllm-openai:v0.32.0", {"version": "0.32.0"}),
    "sglang": ("lmsysorg/sglang:v0.5.23-cu130", {"version": "0.5.23"}),
    "nim": ("nim/meta/llama-3.1-8b-instruct:2.1.6", {"line": "2.1"}),
}


@pytest.mark.parametrize("engine", MEMBERS)
def test_model_of_each_engine_is_valid_and_rendered_with_its_digest_and_its_release(
    engine: str, tmp_path: Path
) -> None:
    image, release = ENGINES[engine]
    ran = init(tmp_path, "--offline", "--engine", engine, engine_image=f"{image}@{DIGEST}")
    assert ran.code == 0, ran.err
    manifest, config = tmp_path / "llama-3-1-8b-instruct.yaml", tmp_path / "config.yaml"
    pinned = f"contoso.azurecr.io/{image.partition(':')[0]}@{DIGEST}"
    assert document(manifest)["spec"]["engine"] == {engine: {"image": pinned, **release}}
    for subcommand in ("validate", "render"):
        ran = hermetic(subcommand, "-f", manifest, "--config", config)
        assert ran.code == 0, ran.out + ran.err
    rendered = next(child for child in yaml.safe_load_all(ran.out) if child["kind"] == "Deployment")
    (container,) = rendered["spec"]["template"]["spec"]["containers"]
    assert container["image"] == pinned


def test_engine_is_vllm_where_none_is_named_and_no_question_asks_for_it(tmp_path: Path) -> None:
    for folder, more in (("default", ()), ("named", ("--engine", "vllm"))):
        assert init(tmp_path / folder, *more).code == 0
    default, named = ((tmp_path / folder / "llama-3-1-8b-instruct.yaml").read_text() for folder in ("default", "named"))
    assert default == named
    assert list(command.ASKED) == ["cluster", "registry", "engine_image", "share", "model", "public_key"]


@pytest.mark.parametrize(
    ("engine", "tag", "release"),
    [
        ("vllm", "v0.32.0-aarch64", "0.32.0"), ("vllm", "latest", None),
        ("sglang", "v0.5.23", "0.5.23"), ("sglang", "0.5.23.post1-cu128", "0.5.23.post1"), ("sglang", "dev", None),
        ("nim", "2.1.6", "2.1"), ("nim", "1.15.4-rtx", "1.15"), ("nim", "2.0", "2.0"), ("nim", "latest", None),
    ],
)  # fmt: skip
def test_release_is_that_of_the_tag_as_the_engine_names_its_own(
    engine: str, tag: str, release: str | None, tmp_path: Path
) -> None:
    ran = init(tmp_path / "new", "--offline", "--engine", engine, engine_image=f"contoso/image:{tag}@{DIGEST}")
    if release is None:
        assert (ran.code, (tmp_path / "new").exists()) == (2, False)
        fix = ran.fixes[0].removeprefix("fix: ").split()
        assert fix[0] == "--version"
        again = init(
            tmp_path,
            "--offline",
            "--engine",
            engine,
            *fix,
            engine_image=f"contoso/image:{tag}@{DIGEST}",
        )
        assert again.code == 0, again.err
        return
    assert ran.code == 0, ran.err
    ((_, settings),) = document(tmp_path / "new" / "llama-3-1-8b-instruct.yaml")["spec"]["engine"].items()
    assert release in settings.values()


def test_digest_of_a_tag_of_another_engine_comes_from_the_registry(tmp_path: Path) -> None:
    with RegistryStandIn() as registry:
        media_type = "application/vnd.oci.image.index.v1+json"
        registry.manifests["lmsysorg/sglang:v0.5.23"] = media_type, b"{ }"
        ran = init(
            tmp_path, "--plain-http", "--engine", "sglang",
            registry=registry.host, engine_image="lmsysorg/sglang:v0.5.23",
        )  # fmt: skip
    assert ran.code == 0, ran.err
    image = document(tmp_path / "llama-3-1-8b-instruct.yaml")["spec"]["engine"]["sglang"]["image"]
    assert image == f"{registry.host}/lmsysorg/sglang@sha256:{hashlib.sha256(b'{ }').hexdigest()}"


@pytest.mark.parametrize(
    ("engine", "image", "says", "is_told"),
    [
        ("nim", "nim/m/m:2.1.6", "--allowed-media-domains=NOWHERE.invalid", True),
        ("nim", "nim/m/m:2.0.1", "--allowed-media-domains=NOWHERE.invalid", False),
        ("nim", "nim/m/m:1.15.4", "--allowed-media-domains=NOWHERE.invalid", False),
        ("nim", "nim/m/m:2.1.6", "hermetic stage MODEL_STORE /mnt/models/llama-3-1-8b/fp8", True),
        ("sglang", "lmsysorg/sglang:v0.5.23", "hermetic stage MODEL_FOLDER /mnt/models/llama-3-1-8b/fp8", True),
    ],
)  # fmt: skip
def test_what_an_engine_needs_is_named(engine: str, image: str, says: str, is_told: bool, tmp_path: Path) -> None:
    ran = init(
        tmp_path, "--offline", "--engine", engine, "-o", "json", engine_image=f"{image}@{DIGEST}", weights_digest=""
    )
    assert any(says in sentence for sentence in json.loads(ran.out)["toFillIn"]) is is_told


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"operator_image": "hermetic:1"},
            "skopeo inspect --format '{{.Digest}}' docker://contoso.azurecr.io/hermetic:TAG",
        ),
        ({"weights_digest": ""}, "hermetic stage MODEL_FOLDER /mnt/models/llama-3-1-8b/fp8"),
        ({"storage_address": ""}, "storageAddresses"),
        ({}, "openssl genpkey"),
    ],
)
def test_what_is_not_known_is_named_with_its_command_and_cannot_be_applied(
    changed: dict[str, str], says: str, tmp_path: Path
) -> None:
    ran = init(tmp_path, "--offline", **changed)
    assert ran.code == 0
    assert says in ran.err
    again = init(tmp_path, "--offline", "--overwrite", "-o", "json", **changed)
    assert any(says in sentence for sentence in json.loads(again.out)["toFillIn"])
    if "weights_digest" in changed:
        assert hermetic("validate", "-f", tmp_path / "llama-3-1-8b-instruct.yaml").code == 2


def test_a_file_that_exists_is_kept_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("mine: true\n")
    ran = init(tmp_path)
    assert (ran.code, [file.name for file in tmp_path.iterdir()]) == (2, ["values.yaml"])
    assert "--overwrite" in ran.fixes[0]
    assert (tmp_path / "values.yaml").read_text() == "mine: true\n"
    assert init(tmp_path, "--overwrite").code == 0
    assert document(tmp_path / "values.yaml")["image"]["registry"] == "contoso.azurecr.io"


def test_without_a_terminal_all_missing_options_are_named_at_once(tmp_path: Path) -> None:
    ran = hermetic("init", tmp_path / "new", "--registry", "contoso.azurecr.io")
    assert (ran.code, (tmp_path / "new").exists()) == (2, False)
    assert all(option in ran.errors[0] for option in ("--cluster", "--engine-image", "--share", "--model"))


@pytest.mark.parametrize(
    "changed",
    [
        {"cluster": "aks-gpu"},
        {"registry": "Not A Host"},
        {"share": "contosomodels/models"},
        {"share": "contosomodels/models/../x"},
        {"model": "-"},
        {"engine_image": f"vllm/vllm-openai@{DIGEST}"},
        {"engine_image": f"vllm/vllm-openai:v9.9.9@{DIGEST}"},
        {"weights_digest": "sha256:abc"},
        {"storage_address": "storage.example"},
        {"engine": "ollama"},
        {"engine": "sglang"},
        {"engine": "nim", "engine_image": f"nim/m/m:3.0.1@{DIGEST}"},
    ],
    ids=str,
)
def test_an_answer_that_no_file_can_have_is_refused_before_anything_is_written(
    changed: dict[str, str], tmp_path: Path
) -> None:
    ran = init(tmp_path / "new", "--offline", **changed)
    assert (ran.code, (tmp_path / "new").exists()) == (2, False)
    assert ran.errors


def test_on_a_terminal_only_what_no_option_answers_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    answers = [value for option, value in ANSWERS.items() if option in {"--cluster", "--share", "--model"}]
    given = ("--registry", "--engine-image", "--operator-image", "--weights-digest")
    options = [part for option in given for part in (option, ANSWERS[option])]
    ran = hermetic("init", tmp_path, *options, stdin="\n".join([*answers, "", ""]))
    assert (ran.code, {file.name for file in tmp_path.iterdir()}) == (0, FILES)
    assert document(tmp_path / "egress-audit.yaml")["spec"]["cluster"] == CLUSTER
    assert "Private registry" not in ran.err + ran.out


@pytest.mark.parametrize("engine", MEMBERS)
def test_question_for_the_image_names_one_of_the_engine(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    image = f"{ENGINES[engine][0]}@{DIGEST}"
    ran = init(tmp_path, "--offline", "--engine", engine, engine_image="", stdin=f"{image}\n\n")
    assert ran.code == 0, ran.err
    assert f"such as {ENGINES[engine][0].partition(':')[0]}:" in ran.err + ran.out


def test_first_manifest_of_the_readme_is_valid_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "llama.yaml"
    file.write_text(documented("README.md", "The first model"))
    validated = hermetic("validate", "-f", file)
    assert validated.code == 0, validated.out

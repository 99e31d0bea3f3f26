"""`hermetic convert`: what it takes, what it prints on which stream, and how it ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from hermetic.api.kubernetes_yaml import dump
from tests.commandline import PROGRAM, hermetic

IMAGE = ("--image", "contoso.azurecr.io/vllm/vllm-openai:v0.33.0")
SERVE = ("--", "vllm", "serve", "org/model", "--tensor-parallel-size", "2", "--host", "0.0.0.0")
TEXT = "$ vllm serve org/model \\\n>   --tensor-parallel-size 2 --host 0.0.0.0\n"


def test_the_manifest_goes_to_standard_output_and_the_notes_to_standard_error() -> None:
    ran = hermetic("convert", *IMAGE, *SERVE)
    assert ran.code == 0
    assert yaml.safe_load(ran.out)["kind"] == "ModelDeployment"
    lines = ran.err.splitlines()
    assert all(line.startswith(("# left out: ", "# replaced: ", "# stage: ", "# set: ")) for line in lines)
    assert sum(line.startswith("# left out: --host: ") for line in lines) == 1
    assert sum(line.startswith("# stage: org/model: ") for line in lines) == 1


def test_the_manifest_is_valid_and_renders() -> None:
    manifest = hermetic("convert", *IMAGE, *SERVE).out
    assert hermetic("validate", "-f", "-", stdin=manifest).code == 0
    rendered = hermetic("render", "-f", "-", stdin=manifest)
    assert rendered.code == 0
    (deployment,) = [manifest for manifest in yaml.safe_load_all(rendered.out) if manifest["kind"] == "Deployment"]
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[args.index("--tensor-parallel-size") + 1] == "2"


def test_the_manifest_is_written_alike_whatever_the_order_of_the_flags() -> None:
    manifest = hermetic("convert", *IMAGE, "--", "vllm", "serve", "m/m", "--port", "9000", "-tp", "2").out
    assert manifest == hermetic("convert", *IMAGE, "--", "vllm", "serve", "-tp", "2", "m/m", "--port", "9000").out
    assert manifest == dump(yaml.safe_load(manifest))


@pytest.mark.parametrize("form", ["words", "text", "file", "stdin", "without dashes"])
def test_a_command_is_taken_in_every_form(form: str, tmp_path: Path) -> None:
    expected = hermetic("convert", *IMAGE, *SERVE).out
    script = tmp_path / "serve.sh"
    script.write_text(TEXT, encoding="utf-8")
    arguments: tuple[str | Path, ...] = {
        "words": SERVE,
        "text": ("--", TEXT),
        "file": ("-f", script),
        "stdin": ("-f", "-"),
        "without dashes": SERVE[1:],
    }[form]
    assert hermetic("convert", *IMAGE, *arguments, stdin=TEXT).out == expected


def test_json_holds_the_manifest_and_the_notes() -> None:
    ran = hermetic("convert", *IMAGE, "-o", "json", *SERVE)
    document = json.loads(ran.out)
    assert document["schema"] == "hermetic.dev/conversion/v1"
    assert document["manifest"] == yaml.safe_load(hermetic("convert", *IMAGE, *SERVE).out)
    assert {"kind": "left out", "subject": "--host"}.items() <= document["notes"][-1].items()
    assert ran.err == ""


def test_every_choice_has_its_place() -> None:
    ran = hermetic(
        *("convert", "--image", "vllm/vllm-openai:v0.32.0", "--registry", "contoso.azurecr.io", "--version", "0.31.0"),
        *("--env", "VLLM_LOGGING_LEVEL=DEBUG", "-e", "NCCL_DEBUG=INFO", "--name", "big", "-n", "inference"),
        *("--share", "contosomodels/models/big/fp8", *SERVE),
    )
    manifest = yaml.safe_load(ran.out)
    assert manifest["metadata"] == {"name": "big", "namespace": "inference"}
    settings = manifest["spec"]["engine"]["vllm"]
    assert settings["image"].startswith("contoso.azurecr.io/vllm/vllm-openai@sha256:")
    assert settings["version"] == "0.31.0"
    assert [entry["name"] for entry in settings["extraEnv"]] == ["VLLM_LOGGING_LEVEL", "NCCL_DEBUG"]
    assert manifest["spec"]["weights"] == {
        "azureFiles": {"account": "contosomodels", "share": "models", "folder": "big/fp8"}
    }


def test_a_claim_is_the_source_of_the_weights() -> None:
    manifest = yaml.safe_load(hermetic("convert", *IMAGE, "--claim", "models/llama", *SERVE).out)
    assert manifest["spec"]["weights"] == {"persistentVolumeClaim": {"claimName": "models", "folder": "llama"}}


REFUSED: list[tuple[tuple[str, ...], str]] = [
    ((*IMAGE,), "no command"),
    ((*IMAGE, "-f", "/no/such/file"), "/no/such/file"),
    ((*IMAGE, "-f", "-", "--", "vllm", "serve", "m"), "two inputs"),
    ((*IMAGE, "--", "ls"), "starts no vLLM or SGLang server"),
    ((*IMAGE, "--", ""), "starts nothing"),
    (("--", "vllm", "serve", "m"), "names no image"),
    ((*IMAGE, "--env", "X", *SERVE), "--env 'X'"),
    ((*IMAGE, "--env", "=1", *SERVE), "--env '='"),
    ((*IMAGE, "-n", "Not A Namespace", *SERVE), "namespace"),
    ((*IMAGE, "--", "vllm", "serve", "m", "-tp", "64"), "64 GPUs"),
    ((*IMAGE, "--", "vllm serve 'm"), "not closed"),
    ((*IMAGE, "--", "vllm serve m\x00"), "control character"),
    ((*IMAGE, "--", "vllm serve " + "m" * 1_000_000), "characters"),
    ((*IMAGE, "--", "vllm", "serve", "m", *(["--seed"] * 200_000)), "characters"),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_nothing_can_be_made_of_ends_with_two(arguments: tuple[str, ...], reason: str) -> None:
    ran = hermetic("convert", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.errors) == len(ran.fixes) == 1
    assert reason.rstrip("'=") in ran.err
    assert len(ran.err) < 2_000


def test_standard_input_that_does_not_end_is_refused() -> None:
    with subprocess.Popen(["yes", "vllm serve m"], stdout=subprocess.PIPE) as endless:
        ran = subprocess.run(
            [*PROGRAM, "convert", *IMAGE, "-f", "-"], stdin=endless.stdout, capture_output=True, timeout=60, check=False
        )
        endless.kill()
    assert ran.returncode == 2
    assert b"characters" in ran.stderr


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"vllm serve \xff")
    assert hermetic("convert", *IMAGE, "-f", file).code == 2


def test_nothing_is_executed(tmp_path: Path) -> None:
    target = tmp_path / "touched"
    text = f"touch {target}; vllm serve $(touch {target}) --seed `touch {target}`"
    assert hermetic("convert", *IMAGE, "--", text).code == 2
    text = f"touch {target}; vllm serve org/m --seed `touch {target}` --max-num-seqs $(touch {target})"
    ran = hermetic("convert", *IMAGE, "--", text)
    assert ran.code == 0
    assert ran.err.count("nothing is executed") == 2
    assert not target.exists()

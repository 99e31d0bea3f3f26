"""The parts of docs/recipes.md for clients: manifests are valid, scripts get answers from the stand-in of vLLM."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hermetic.engines.sglang.tables import TABLES as SGLANG_TABLES
from hermetic.engines.vllm.tables import TABLES as VLLM_TABLES
from testbed.engine import vllm_environment
from testbed.engine.local import Running, running, unpack
from testbed.images.model import stage_model
from tests.commandline import hermetic
from tests.documented import ROOT
from tests.sampled_groups import ENGINE_STAND_IN
from tests.scenarios import Manifest, a_share_model

PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
PART = re.compile(r"^## (?P<heading>.+?)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PARTS: Mapping[str, str] = {match["heading"]: match["text"] for match in PART.finditer(PAGE)}
PIXEL = bytes.fromhex("89504e470d0a1a0a")


def blocks_of(heading: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PARTS[heading], re.DOTALL)


SCRIPTS = {heading: script for heading in PARTS for script in blocks_of(heading, "python")}
MANIFESTS = [(heading, text) for heading in PARTS for text in blocks_of(heading, "yaml")]


def manifest_of(text: str) -> Manifest:
    """The short deployment of a share with the part of a spec that the page shows."""
    part: dict[str, Any] = yaml.safe_load(text)
    manifest = a_share_model()
    manifest["spec"]["engine"]["vllm"] |= part.get("engine", {}).get("vllm", {})
    manifest["spec"]["model"] |= part.get("model", {})
    assert part.keys() <= {"engine", "model"}
    return manifest


def arguments_of(manifest: Manifest) -> list[str]:
    """The arguments of the container that the operator would run."""
    ran = hermetic("render", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert ran.code == 0, ran.err
    deployment = next(child for child in yaml.safe_load_all(ran.out) if child["kind"] == "Deployment")
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


@pytest.mark.parametrize(("heading", "text"), MANIFESTS, ids=[heading for heading, _ in MANIFESTS])
def test_part_of_a_manifest_is_valid_by_models_schema_flag_table_and_reviewed_list(heading: str, text: str) -> None:
    manifest = manifest_of(text)
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert ran.code == 0, (heading, ran.err)
    crd = yaml.safe_load((ROOT / "crds/modeldeployments.hermetic.dev.yaml").read_text("utf-8"))
    jsonschema.validate(manifest["spec"], crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    table = VLLM_TABLES.table_for(VLLM_TABLES.supported[-1])
    flags = [argument for argument in manifest["spec"]["engine"]["vllm"]["extraArgs"] if argument.startswith("--")]
    assert flags
    assert [flag for flag in flags if not table.knows(flag)] == []


def test_part_of_a_manifest_with_a_flag_of_no_release_would_be_found() -> None:
    text = MANIFESTS[0][1].replace("--tool-call-parser", "--tool-call-parsers")
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(manifest_of(text)))
    assert (ran.code, "did you mean '--tool-call-parser'?" in ran.err) == (2, True)


def test_every_flag_of_the_table_of_engines_is_one_of_the_newest_release() -> None:
    newest = (VLLM_TABLES.table_for(VLLM_TABLES.supported[-1]), SGLANG_TABLES.table_for(SGLANG_TABLES.supported[-1]))
    rows = [row.split("|")[1:3] for row in PARTS["The same with SGLang"].splitlines() if "`--" in row]
    assert len(rows) > 4
    flags = [(table, flag) for row in rows for table, cell in zip(newest, row, strict=True) for flag in cell.split("`")]
    assert [flag for table, flag in flags if flag.startswith("--") and not table.knows(flag.split()[0])] == []


@pytest.mark.parametrize("heading", SCRIPTS)
def test_script_compiles(heading: str) -> None:
    for script in blocks_of(heading, "python"):
        ast.parse(script)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("image"))


@contextmanager
def served(root: Path, folder: Path, manifest: Manifest) -> Iterator[Running]:
    """The stand-in with the rendered arguments, on a free port and a model of this machine."""
    stage_model(folder / "weights")
    arguments = [argument.replace("/weights", str(folder / "weights")) for argument in arguments_of(manifest)]
    arguments[arguments.index("--port") + 1] = "0"
    environment = {**vllm_environment("0.32.0"), "HOME": str(folder), "USER": "hermetic"}
    with running(root, "usr/local/bin/vllm", ["serve", *arguments], environment) as engine:
        yield engine


def answered(root: Path, folder: Path, heading: str, *arguments: str) -> str:
    """What the script of a part prints, beside the file that the page puts beside it."""
    (folder / "model.py").write_text(blocks_of("A client", "python")[1], encoding="utf-8")
    (folder / "script.py").write_text(blocks_of(heading, "python")[0], encoding="utf-8")
    manifest = manifest_of((blocks_of(heading, "yaml") or ["{}"])[0])
    with served(root, folder, manifest) as engine:
        environ = {"PATH": os.environ["PATH"], "URL": f"http://127.0.0.1:{engine.port}/v1"}
        command = [sys.executable, "-B", "script.py", *arguments]
        ran = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@ENGINE_STAND_IN
class TestScripts:
    """Each is run against a real socket."""

    def test_streaming_prints_the_tokens_and_their_number(self, root: Path, tmp_path: Path) -> None:
        printed = answered(root, tmp_path, "Streaming")
        assert "This is the hermetic engine stand-in" in printed
        assert re.search(r"^tokens: [1-9][0-9]*$", printed, re.MULTILINE)

    def test_tool_is_called_and_its_result_answered(self, root: Path, tmp_path: Path) -> None:
        assert "This is the hermetic engine stand-in" in answered(root, tmp_path, "Tool calls")

    def test_reasoning_is_apart_from_the_answer(self, root: Path, tmp_path: Path) -> None:
        thought, answer = answered(root, tmp_path, "Reasoning").splitlines()
        assert thought == "thought: The hermetic engine stand-in does not reason."
        assert answer.startswith("answer: This is the hermetic engine stand-in")

    def test_embeddings_are_compared(self, root: Path, tmp_path: Path) -> None:
        assert -1 <= float(answered(root, tmp_path, "Embeddings")) <= 1

    def test_documents_are_ordered(self, root: Path, tmp_path: Path) -> None:
        best, worst = answered(root, tmp_path, "Reranking").splitlines()
        assert best.endswith("A private endpoint has an address of the network.")
        assert worst.startswith("0.0 ")

    def test_image_is_sent_in_the_request(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "pixel.png").write_bytes(PIXEL)
        assert "it serves qwen3-vl-8b" in answered(root, tmp_path, "Images in a request", "pixel.png")

    @pytest.mark.parametrize("heading", ["Chat templates", "Speculative decoding"])
    def test_engine_starts_with_the_arguments(self, root: Path, tmp_path: Path, heading: str) -> None:
        for number, text in enumerate(blocks_of(heading, "yaml")):
            folder = tmp_path / str(number)
            folder.mkdir()
            with served(root, folder, manifest_of(text)) as engine:
                assert engine.port

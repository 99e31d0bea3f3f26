"""The commands of public recipes become manifests that `hermetic validate` accepts, or are refused with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import yaml

from tests.commandline import Ran, hermetic
from tests.documented import ROOT
from tests.recipes.table import RecipeCommand, recipe_commands
from tests.sampling import Sample

RELEASE = "0.33.0"
LEAST_VALID = 940
"""Of the 987 commands that are vLLM's own."""
UNIQUE_TRIED = 60
REASONS = {"vLLM-Omni": "the command starts vLLM-Omni"}
"""What may refuse a recipe: an engineer would not expect an engine of Hermetic to serve these."""


def converted(command: RecipeCommand) -> Ran:
    variables = [word for name, value in command.environment for word in ("--env", f"{name}={value}")]
    return hermetic(
        "convert",
        *("--image", f"vllm/vllm-openai:v{RELEASE}", "--share", "contosomodels/models/model", *variables),
        *("--", "vllm", "serve", command.model, *command.arguments),
    )


def test_the_table_holds_the_commands_of_all_recipes() -> None:
    commands = recipe_commands()
    assert len(commands) == 1035
    assert len({command.recipe for command in commands}) == 173
    assert sum(not command.is_of_omni for command in commands) == 987


def test_recipes_become_valid_manifests(sample: Sample, record_property: Callable[[str, object], None]) -> None:
    of_vllm = [command for command in recipe_commands() if not command.is_of_omni]
    starts = sorted({command.start for command in of_vllm}, key=str)
    tried = set(sample.of("recipe commands", starts, UNIQUE_TRIED))
    numbers = Counter(command.start for command in of_vllm if command.start in tried)
    first = {command.start: command for command in reversed(of_vllm)}
    refused: Counter[str] = Counter()
    manifests: list[str] = []
    for start, number in numbers.items():
        ran = converted(first[start])
        if ran.code == 0:
            manifests.append(named(ran.out, len(manifests)))
        else:
            assert ran.code == 2, ran.err
            assert not ran.out
            refused[reason_of(ran)] += number
    validated = hermetic("validate", "-f", "-", stdin="---\n".join(manifests))
    assert validated.code == 0, validated.err
    everything, valid = sum(numbers.values()), sum(numbers.values()) - sum(refused.values())
    refusal_counts = ", ".join(f"{number} {reason}" for reason, number in refused.items()) or "none"
    record_property("recipes converted", f"{valid} of {everything} valid; rest by reason: {refusal_counts}")
    if len(tried) == len(starts):
        assert valid >= LEAST_VALID
        page = " ".join((ROOT / "docs/recipes.md").read_text(encoding="utf-8").split())
        assert f"of the {everything} commands that are vLLM's own {valid} become valid manifests" in page


def named(manifest: str, number: int) -> str:
    """The manifest with a name of its own: variants of one recipe share the name that follows from the model."""
    document = yaml.safe_load(manifest)
    document["metadata"]["name"] = f"model-{number}"
    return yaml.safe_dump(document)


def reason_of(ran: Ran) -> str:
    """The short form of the reason, which must be an expected one."""
    (error,) = ran.errors
    (reason,) = [reason for reason, text in REASONS.items() if text in error] or [f"unexpected: {error}"]
    assert reason in REASONS, reason
    return reason


def test_every_refusal_of_a_recipe_is_an_expected_one(sample: Sample) -> None:
    of_omni = [command for command in recipe_commands() if command.is_of_omni]
    for command in sample.of("recipes of vLLM-Omni", of_omni, 8):
        ran = converted(command)
        assert (ran.code, reason_of(ran)) == (2, "vLLM-Omni"), command


@pytest.mark.parametrize("generation", ["hopper", "blackwell", "amd"])
def test_a_recipe_with_a_draft_model_names_the_folder_to_stage(generation: str) -> None:
    command = next(
        command
        for command in recipe_commands()
        if command.recipe == "models/openai/gpt-oss-120b.yaml"
        and (command.variant, command.generation) == ("default", generation)
    )
    ran = converted(command)
    spec = yaml.safe_load(ran.out)["spec"]
    extra_arguments = spec["engine"]["vllm"]["extraArgs"]
    assert (
        '"model":"/weights/gpt-oss-120b-Eagle3-v3"'
        in extra_arguments[extra_arguments.index("--speculative-config") + 1]
    )
    assert "# stage: nvidia/gpt-oss-120b-Eagle3-v3: " in ran.err
    assert ("resource" in spec["accelerator"]) is (generation == "amd")

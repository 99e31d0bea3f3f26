"""Whatever is pasted: a valid manifest, or one error that names a reason; never another exception, never a secret."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.conversion.deployment import Request, convert
from hermetic.conversion.server_command import read_server_command
from hermetic.engines.protocol import Extra
from hermetic.engines.registry import FLAG_ENGINES, engine_of
from hermetic.errors import InputError
from tests.conversions import SGLANG_IMAGE, VLLM_IMAGE

SECRET = "hf_0123456789secret"
PIECES = [
    *("vllm", "serve", "sglang", "docker", "run", "python3", "-m", "vllm.entrypoints.openai.api_server", "bash", "-c"),
    *(
        " ",
        " ",
        " ",
        "\n",
        "\\\n",
        "'",
        '"',
        "`",
        "$(",
        ")",
        "${A}",
        "$A",
        "A=1 ",
        "export ",
        "&&",
        ";",
        "|",
        ">",
        "<<E\n",
    ),
    *(
        "org/model",
        "/models/x",
        "{",
        "}",
        '{"model":"a/b"}',
        "=",
        "-",
        "--",
        "-O3",
        "-tp",
        "8",
        "-1",
        "0.9",
        "1e9",
        "nan",
    ),
    *("-e HF_TOKEN=", SECRET, "-p 80:80", "-v a:b", VLLM_IMAGE, "é", "\u2028", "\u2013tp", "$ ", "# "),
]
FLAGS = {
    member: sorted(FLAG_ENGINES[member].tables.table_for(FLAG_ENGINES[member].tables.supported[-1]).flags)
    for member in FLAG_ENGINES
}
VALUES = st.one_of(
    st.sampled_from(
        ["", "1", "-1", "9" * 30, "0.5", "true", "{}", "[]", '{"a":{"b":[1]}}', "org/x", "/x/../y", "a=b/c", "[" * 2000]
    ),
    st.text(max_size=40),
)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_text_gives_a_valid_manifest_or_an_error(pieces: list[str]) -> None:
    with suppress(InputError):
        command = read_server_command(["".join(pieces)])
        must_be_valid(convert(command, Request(image=VLLM_IMAGE)).manifest)


@given(data=st.data(), member=st.sampled_from(["vllm", "sglang"]))
def test_any_flags_with_any_values_give_a_valid_manifest_or_an_error(data: st.DataObject, member: str) -> None:
    flags = data.draw(st.lists(st.tuples(st.sampled_from(FLAGS[member]), st.lists(VALUES, max_size=2)), max_size=8))
    arguments = [word for flag, values in flags for word in (flag, *values)]
    first = ["vllm", "serve", "org/model"] if member == "vllm" else ["sglang", "serve", "--model-path", "org/model"]
    with suppress(InputError):
        command = read_server_command([*first, *arguments])
        image = VLLM_IMAGE if member == "vllm" else SGLANG_IMAGE
        must_be_valid(convert(command, Request(image=image)).manifest)


@given(
    variables=st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=6),
    name=st.sampled_from(["HF_TOKEN", "X"]),
)
def test_any_variables_give_a_valid_manifest_and_repeat_no_value(variables: dict[str, str], name: str) -> None:
    with suppress(InputError):
        command = read_server_command(["vllm", "serve", "org/model"])
        conversion = convert(command, Request(image=VLLM_IMAGE, environment={**variables, name: SECRET}))
        must_be_valid(conversion.manifest)
        assert SECRET not in str(conversion.notes)


def must_be_valid(manifest: object) -> None:
    spec = ModelDeployment.model_validate(manifest).spec
    engine = engine_of(spec)
    assert engine.objection(spec) is None
    assert list(engine.refused_settings(spec, Extra())) == []

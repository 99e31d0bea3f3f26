"""Which server a pasted text starts: shells, wrappers, containers, prompts; nothing is executed.

Sources: POSIX.1-2024 "Shell Command Language"; docs.docker.com "docker container run"; docs.vllm.ai "Using Docker" and
"OpenAI-Compatible Server"; docs.sglang.ai "Install SGLang" and "Server Arguments".
"""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from hermetic.conversion.container_options import Mount
from hermetic.conversion.server_command import DEEPEST, read_server_command
from hermetic.conversion.shell_text import has_substitution, read_commands
from hermetic.conversion.shell_words import LONGEST
from hermetic.errors import InputError

SERVES = [
    ("vllm serve org/m --a 1", ("org/m", "--a", "1")),
    ("/opt/venv/bin/vllm serve org/m", ("org/m",)),
    ("python3 -m vllm.entrypoints.openai.api_server --model org/m", ("--model", "org/m")),
    ("/usr/bin/python3.12 -u -m vllm.entrypoints.cli.main serve org/m", ("org/m",)),
    ("sudo -u me nohup env -u Y X=1 vllm serve org/m &", ("org/m",)),
    ("timeout 30 nice -n 5 vllm serve org/m", ("org/m",)),
    ("uv run --with vllm vllm serve org/m", ("org/m",)),
    ("CUDA_VISIBLE_DEVICES=0,1 vllm serve org/m", ("org/m",)),
    ("cd /srv && source .venv/bin/activate && exec vllm serve org/m > log 2>&1", ("org/m",)),
    ("pip install vllm==0.32.0; vllm serve org/m | tee server.log", ("org/m",)),
    ("bash -lc 'vllm serve org/m --a \"x y\"'", ("org/m", "--a", "x y")),
    ("sh -c \"bash -c 'vllm serve org/m'\"", ("org/m",)),
    ("vllm serve org/m \\\n  --a 1 \\\n  --b 2", ("org/m", "--a", "1", "--b", "2")),
    ("vllm serve org/m \\  \n  --a 1", ("org/m", "--a", "1")),
    ("vllm serve org/m \\\r\n  --a 1\r\n", ("org/m", "--a", "1")),
    ("$ vllm serve org/m \\\n>   --a 1", ("org/m", "--a", "1")),
    ("(venv) me@host:~/x$ vllm serve org/m", ("org/m",)),
    ("# the server\nvllm serve org/m # with defaults\n", ("org/m",)),
    ("```bash\nvllm serve org/m\n```", ("org/m",)),
    ('vllm serve org/m --a \'{"x": "y z"}\'', ("org/m", "--a", '{"x": "y z"}')),
    ('vllm serve org/m --a "{\\"x\\": 1}"', ("org/m", "--a", '{"x": 1}')),
    ('vllm serve org/m --a {\\"x\\":1}', ("org/m", "--a", '{"x":1}')),
    ("vllm serve org/m --a $'tab\\tnew'", ("org/m", "--a", "tab\tnew")),
    (
        "MODEL=org/m\nARGS='--a 1 --b 2'\nvllm serve $MODEL $ARGS \"$ARGS\"",
        ("org/m", "--a", "1", "--b", "2", "--a 1 --b 2"),
    ),
    ("vllm serve ${MODEL:-org/m} --a ${A-2}", ("org/m", "--a", "2")),
    ("vllm serve org/m --a $(nproc) --b `id` --c $UNSET", ("org/m", "--a", "$(nproc)", "--b", "`id`", "--c", "$UNSET")),
    ("vllm serve org/m --a '$(id)'", ("org/m", "--a", "$(id)")),
    ("cat > f <<EOF\nvllm serve other\nEOF\nvllm serve org/m", ("org/m",)),
    ("vllm\xa0serve org/m", ("org/m",)),
    ("vllm serve org/m --a ''", ("org/m", "--a", "")),
]


@pytest.mark.parametrize(("text", "arguments"), SERVES)
def test_a_text_that_starts_vllm_gives_its_arguments(text: str, arguments: tuple[str, ...]) -> None:
    server = read_server_command([text])
    assert (server.member, server.arguments) == ("vllm", arguments)


@pytest.mark.parametrize(
    "text",
    [
        "python -m sglang.launch_server --model-path org/m",
        "sglang serve --model-path org/m",
        "docker run lmsysorg/sglang:v0.5.23 python3 -m sglang.launch_server --model-path org/m",
        "docker run --entrypoint sglang lmsysorg/sglang:v0.5.23 serve --model-path org/m",
    ],
)
def test_a_text_that_starts_sglang_gives_its_arguments(text: str) -> None:
    server = read_server_command([text])
    assert (server.member, server.arguments) == ("sglang", ("--model-path", "org/m"))


def test_variables_come_from_exports_and_prefixes_in_their_order() -> None:
    text = 'export A=1 && B=2\nexport C\nD=4 E="5 6" vllm serve org/m'
    assert dict(read_server_command([text]).environment) == {"A": "1", "D": "4", "E": "5 6"}


def test_a_variable_that_is_exported_later_is_passed_on() -> None:
    assert dict(read_server_command(["A=1\nexport A\nA=2\nvllm serve org/m"]).environment) == {"A": "2"}


def test_words_that_a_shell_has_split_are_not_split_again() -> None:
    server = read_server_command(["X=1 2", "vllm", "serve", "org/m", "--a", "x y", "&&", "echo", "done"])
    assert server.arguments == ("org/m", "--a", "x y")
    assert dict(server.environment) == {"X": "1 2"}


CONTAINER = (
    "docker run --runtime nvidia --gpus '\"device=0,1\"' -itd --rm --name m --ipc=host --shm-size 16g -m 64g --cpus=8 "
    "-v ~/.cache/huggingface:/root/.cache/huggingface:ro --mount type=bind,source=/srv/models,target=/models "
    "-e HF_TOKEN -eA=1 --env 'B=x y' --env-file vars.env -p 127.0.0.1:8080:8000/tcp --device=/dev/kfd "
    "vllm/vllm-openai:v0.32.0 --model org/m --a 1"
)


@pytest.mark.parametrize("program", ["docker run", "sudo docker container run", "podman run", "nerdctl run"])
def test_the_options_of_a_container_are_read(program: str) -> None:
    server = read_server_command([CONTAINER.replace("docker run", program, 1)])
    container = server.container
    assert server.arguments == ("--model", "org/m", "--a", "1")
    assert dict(server.environment) == {"A": "1", "B": "x y"}
    assert container.image == "vllm/vllm-openai:v0.32.0"
    assert container.without_value == ("HF_TOKEN",)
    assert container.environment_files == ("vars.env",)
    assert dict(container.ports) == {8000: 8080}
    assert container.mounts == (
        Mount("~/.cache/huggingface", "/root/.cache/huggingface"),
        Mount("/srv/models", "/models"),
    )
    assert (container.shared_memory, container.memory, container.cpus) == ("16g", "64g", "8")
    assert container.devices == ("/dev/kfd",)


def test_a_container_takes_the_variables_that_the_command_passes_on_and_no_others() -> None:
    text = "export A=1 B=2; docker run -e A -e C vllm/vllm-openai:v0.32.0 org/m"
    server = read_server_command([text])
    assert dict(server.environment) == {"A": "1"}
    assert server.container.without_value == ("C",)


def test_a_shell_in_a_container_is_followed_by_its_server() -> None:
    text = "docker run -it --device /dev/kfd -e A=1 rocm/vllm-dev:main bash\nexport B=2\nvllm serve org/m"
    server = read_server_command([text])
    assert server.container.image == "rocm/vllm-dev:main"
    assert dict(server.environment) == {"A": "1", "B": "2"}


REFUSED = [
    ("", "starts nothing"),
    ("   \n # only a comment", "starts nothing"),
    ("ls -la", "starts 'ls'"),
    ("vllm bench serve --model org/m", "starts no vLLM or SGLang server"),
    ("vllm", "starts no vLLM or SGLang server"),
    ("python train.py -m vllm", "starts no vLLM or SGLang server"),
    ("python -m http.server", "starts no vLLM or SGLang server"),
    ("vllm serve a & vllm serve b", "starts 2 servers"),
    ("bash -c 'vllm serve a; vllm serve b'", "starts 2 servers"),
    ("vllm serve a --omni", "vLLM-Omni"),
    ("vllm-omni serve a", "vLLM-Omni"),
    ("vllm serve a --usp 2 --ring 1", "vLLM-Omni"),
    ("docker run -p 80:80", "names no image"),
    ("docker run --gpus all nvcr.io/nim/meta/llama:1.15 list-model-profiles", "knows the arguments of"),
    ("docker run lmsysorg/sglang:v0.5.23 --model-path x", "knows the arguments of"),
    ("docker run -it vllm/vllm-openai:v0.32.0 bash", "knows the arguments of"),
    ("docker ps", "starts no vLLM or SGLang server"),
    ("vllm serve 'org/m", "single quote that is not closed"),
    ('vllm serve "org/m', "double quote that is not closed"),
    ("vllm serve `org/m", "backquote that is not closed"),
    ("vllm serve $(org/m", "'$(' that is not closed"),
    ("vllm serve ${org/m", "'${' that is not closed"),
    ("vllm serve org/\x00m --a", "control character"),
    ("vllm serve org/m\x1b[0m --a", "control character"),
    ("vllm serve " + "x" * LONGEST, "characters, and at most"),
    ("A=aaaaaaaa;" + "A=$A$A;" * 40 + "vllm serve $A", "stand for more than"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text[:32] for text, _ in REFUSED])
def test_a_text_that_starts_no_server_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        read_server_command([text])
    assert reason in refused.value.message
    assert len(refused.value.message) < 400


def test_shells_in_shells_end() -> None:
    text = "vllm serve org/m"
    for _ in range(DEEPEST + 1):
        text = "bash -c '" + text.replace("'", "'\\''") + "'"
    with pytest.raises(InputError, match="nested"):
        read_server_command([text])


def test_a_substitution_is_found_where_a_shell_would_replace_it() -> None:
    assert all(map(has_substitution, ("$(id)", "a`id`", "$HOME/x", "${A}", "$((1+1))", "$1", "$@")))
    assert not any(map(has_substitution, ("", "5$", "a$ b", '{"a": "$"}', "100%")))


@pytest.mark.parametrize(
    "text", ["\\x", "$", "((((", "\n", "a=1 ", "<<E\n", "'a'", '"$A"', "{}", "$(", "${A", "&&", ">", "-", "=", "#"]
)
def test_hostile_text_is_read_in_time_that_grows_with_its_length(text: str) -> None:
    def seconds(length: int) -> float:
        begun = time.process_time()
        with suppress(InputError):
            read_commands((text * length)[:length])
        return time.process_time() - begun

    seconds(1_000)
    assert seconds(LONGEST) < 40 * max(seconds(LONGEST // 8), 0.02)

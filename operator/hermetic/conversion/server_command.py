"""Which engine a command starts, with which arguments and variables: through wrappers, containers and shells."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hermetic.api.engine import Member
from hermetic.api.image_references import repository_of
from hermetic.conversion.container_options import PROGRAMS, Container, read_container
from hermetic.conversion.shell_text import SimpleCommand, read_commands, split_commands
from hermetic.errors import InputError

FlagMember = Literal["vllm", "sglang"]
"""The engines that are started with flags."""
DEEPEST = 4
"""Shells and containers in each other."""

_MODULES: Mapping[str, FlagMember] = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "sglang.launch_server": "sglang",
}
_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ash"})
_KEYWORDS = frozenset({"then", "else", "do", "{", "!", "time", "exec", "nohup", "command", "builtin", "eval"})
# Programs that start another one: their options that take a value, and how many words come before the program.
_WRAPPERS: Mapping[str, tuple[frozenset[str], int]] = {
    "sudo": (frozenset({"-u", "-g", "-h", "-p", "-C"}), 0),
    "env": (frozenset({"-u", "-C", "--unset", "--chdir"}), 0),
    "nice": (frozenset({"-n"}), 0),
    "ionice": (frozenset({"-c", "-n"}), 0),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "timeout": (frozenset({"-k", "-s"}), 1),
    "taskset": (frozenset(), 1),
    "numactl": (frozenset({"-N", "-m", "-C", "-i", "-l"}), 0),
    "setsid": (frozenset(), 0),
    "tini": (frozenset(), 0),
    "uvx": (frozenset({"--with", "--from", "--python", "-p", "--index", "--extra-index-url"}), 0),
    "uv run": (frozenset({"--with", "--python", "-p", "--extra", "--group", "--directory", "--env-file"}), 0),
    "poetry run": (frozenset(), 0),
    "conda run": (frozenset({"-n", "-p", "--name", "--prefix"}), 0),
}
_PASTE = (
    "paste the command that starts the server: 'vllm serve ...', 'python -m sglang.launch_server ...' or "
    "'docker run ...'"
)

# Flags of vLLM-Omni that no release of vLLM has; `--omni` is what `vllm serve` passes on to it. Source: the recipes of
# vLLM-Omni in vllm-project/recipes at 8959cf6, models/*/*.yaml with the task "omni".
OMNI_FLAGS = frozenset(
    {
        "--omni",
        "--cfg-parallel-size",
        "--deploy-config",
        "--diffusion-attention-backend",
        "--dlo-no-use-allgather",
        "--dlo-resident-layers",
        "--enable-distributed-layerwise-offload",
        "--hsdp-shard-size",
        "--init-timeout",
        "--num-gpus",
        "--ring",
        "--stage-init-timeout",
        "--text-encoder-tp-size",
        "--ulysses-degree",
        "--use-hsdp",
        "--usp",
        "--vae-parallel-mode",
        "--vae-patch-parallel-size",
        "--vae-use-tiling",
    }
)
_OMNI = "the command starts vLLM-Omni, which Hermetic does not serve: it is another program than vLLM"
_OMNI_FIX = "serve the model from a Deployment of your own: no engine of Hermetic makes images, sound or video"


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The start of one server. `environment`: the variables that the command sets, in their order."""

    member: Member
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    container: Container = field(default_factory=Container)


def read_server_command(argv: Sequence[str]) -> ServerCommand:
    """The one server that the words start.

    One word with blanks in it is the text of a shell, several are what a shell has split already.
    Raises InputError where no engine is started, more than one is, or the text cannot be read.
    """
    is_text = len(argv) == 1 and (not argv[0] or any(blank in argv[0] for blank in " \t\n"))
    commands = read_commands(argv[0]) if is_text else split_commands(tuple(argv))
    server = _only_server(commands, 0)
    if server is None:
        programs = ", ".join(dict.fromkeys(f"'{command.argv[0][:64]}'" for command in commands[:8]))
        raise InputError(
            f"the command starts no vLLM or SGLang server and no NIM; it starts {programs or 'nothing'}", fix=_PASTE
        )
    if not OMNI_FLAGS.isdisjoint(argument.partition("=")[0] for argument in server.arguments):
        raise InputError(_OMNI, fix=_OMNI_FIX)
    return server


def _only_server(commands: Sequence[SimpleCommand], depth: int) -> ServerCommand | None:
    """The server that the commands start, if any. Raises InputError for two.

    Guides often start a container with a shell first, and the server in it by the next command.
    """
    servers: list[ServerCommand] = []
    opened: Container | None = None
    for command in commands:
        started = _started(command, depth)
        if isinstance(started, Container):
            opened = started
        elif started is not None and opened is not None and not started.container.image:
            environment = {**opened.environment, **started.environment}
            servers.append(replace(started, environment=environment, container=opened))
        elif started is not None:
            servers.append(started)
    if len(servers) > 1:
        raise InputError(f"the text starts {len(servers)} servers", fix="convert the command of each by itself")
    if not servers and opened is not None:
        raise InputError(
            f"the container of '{opened.image[:128]}' starts no server that Hermetic knows the arguments of",
            fix="write the server's command behind the image: 'vllm serve ...' or 'sglang serve ...'",
        )
    return servers[0] if servers else None


def _started(command: SimpleCommand, depth: int) -> ServerCommand | Container | None:
    """The server that one command starts, itself or through other programs; a container in which it starts none."""
    argv, environment = _unwrapped(command)
    if not argv:
        return None
    program, arguments = posixpath.basename(argv[0]), argv[1:]
    if program in PROGRAMS:
        return _containerized(arguments, environment, depth)
    if program in _SHELLS:
        return _of_shell(arguments, environment, depth)
    if _PYTHON.fullmatch(program):
        return _of_module(arguments, environment)
    if program == "vllm-omni":
        raise InputError(_OMNI, fix=_OMNI_FIX)
    if program in ("vllm", "sglang") and arguments[:1] == ["serve"]:
        return ServerCommand("vllm" if program == "vllm" else "sglang", tuple(arguments[1:]), environment)
    return None


def _unwrapped(command: SimpleCommand) -> tuple[list[str], dict[str, str]]:
    """The words from the program on that does the work, and the variables that are set for it."""
    argv, environment = list(command.argv), dict(command.variables)
    while argv:
        assignment = _ASSIGNMENT.fullmatch(argv[0])
        name = posixpath.basename(argv[0])
        if assignment is not None:
            environment[assignment[1]] = assignment[2]
            argv.pop(0)
        elif name in _KEYWORDS:
            argv.pop(0)
        elif (wrapper := " ".join([name, *argv[1:2]])) in _WRAPPERS:
            argv = _behind_wrapper(argv[2:], *_WRAPPERS[wrapper])
        elif name in _WRAPPERS:
            argv = _behind_wrapper(argv[1:], *_WRAPPERS[name])
        else:
            break
    return argv, environment


def _behind_wrapper(argv: list[str], with_value: frozenset[str], positional: int) -> list[str]:
    position = 0
    while position < len(argv) and argv[position].startswith("-"):
        position += 2 if argv[position] in with_value else 1
    return argv[position + positional :]


def _of_shell(argv: list[str], environment: Mapping[str, str], depth: int) -> ServerCommand | None:
    """The server of `bash -c TEXT`, with TEXT behind the last of the shell's options."""
    options = 0
    while options < len(argv) and argv[options].startswith("-"):
        options += 1
    if not any("c" in option.lstrip("-") for option in argv[:options]) or options == len(argv):
        return None
    if depth >= DEEPEST:
        raise InputError(f"the command is nested in more than {DEEPEST} shells", fix=_PASTE)
    server = _only_server(read_commands(argv[options]), depth + 1)
    return replace(server, environment={**environment, **server.environment}) if server is not None else None


def _of_module(argv: list[str], environment: Mapping[str, str]) -> ServerCommand | None:
    """The server of `python -m MODULE`."""
    for position, word in enumerate(argv):
        if word == "-m" and position + 1 < len(argv):
            member, arguments = _MODULES.get(argv[position + 1]), argv[position + 2 :]
            if member is None:
                return None
            if argv[position + 1] == "vllm.entrypoints.cli.main":
                return ServerCommand(member, tuple(arguments[1:]), environment) if arguments[:1] == ["serve"] else None
            return ServerCommand(member, tuple(arguments), environment)
        if not word.startswith("-"):
            return None
    return None


def _containerized(argv: list[str], environment: Mapping[str, str], depth: int) -> ServerCommand | Container | None:
    """The server in the container of `docker run`. The variables of the command itself are not the container's."""
    behind = argv[1:] if argv[:1] == ["container"] else argv
    if behind[:1] not in (["run"], ["create"]):
        return None
    if depth >= DEEPEST:
        raise InputError(f"the command is nested in more than {DEEPEST} containers", fix=_PASTE)
    container, arguments = read_container(behind[1:])
    inherited = {name: environment[name] for name in container.without_value if name in environment}
    without_value = tuple(name for name in container.without_value if name not in inherited)
    container = replace(container, environment={**inherited, **container.environment}, without_value=without_value)
    program = (container.entrypoint, *arguments) if container.entrypoint else arguments
    started = _started(SimpleCommand(program), depth + 1) if program else None
    server = started if isinstance(started, ServerCommand) else _of_image(container, arguments)
    if server is None:
        return container
    return replace(server, environment={**container.environment, **server.environment}, container=container)


def is_nim(image: str) -> bool:
    """Whether the image is one of NVIDIA's NIMs, which lie below 'nim/' in nvcr.io and in mirrors of it."""
    return "nim" in repository_of(image).split("/")


def _of_image(container: Container, arguments: Sequence[str]) -> ServerCommand | None:
    """The server that the image itself starts: images of vLLM take the arguments of `vllm serve`.

    Source: docs.vllm.ai, "Using Docker": `docker run ... vllm/vllm-openai:latest --model MODEL`. A NIM starts with
    arguments or without, the model among them (docs.nvidia.com, NIM "Advanced Configuration", "Model-Free NIM").
    """
    name = container.image.lower()
    is_shell = bool(arguments) and posixpath.basename(arguments[0]) in _SHELLS
    if is_nim(name) and not container.entrypoint:
        behind = tuple(arguments[1:] if arguments and arguments[0] == "nim-serve" else arguments)
        # Another word, such as 'list-model-profiles', is a program of the image.
        starts_server = not behind or behind[0].startswith(("-", "/")) or "://" in behind[0]
        return ServerCommand("nim", behind) if starts_server else None
    if container.entrypoint or not arguments or is_shell or "sglang" in name or "vllm" not in name:
        return None
    return ServerCommand("vllm", tuple(arguments[1:] if arguments[0] == "serve" else arguments))

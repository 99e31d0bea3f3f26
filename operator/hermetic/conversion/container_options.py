"""`docker run` and the programs that take its options: image, environment, ports, folders, memory and GPUs.

Source of the options: docs.docker.com, "docker container run", table "Options"; podman and nerdctl take the same names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hermetic.errors import InputError

PROGRAMS = frozenset({"docker", "podman", "nerdctl", "finch"})
SWITCHES = frozenset(
    {
        "--detach",
        "--disable-content-trust",
        "--help",
        "--init",
        "--interactive",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--privileged",
        "--publish-all",
        "--quiet",
        "--read-only",
        "--replace",
        "--rm",
        "--sig-proxy",
        "--tty",
        "--use-api-socket",
    }
)
"""Options without a value; every other one takes one."""
SHORT_SWITCHES = frozenset("ditPqh")
SHORT = {"-e": "--env", "-p": "--publish", "-v": "--volume", "-m": "--memory", "-w": "--workdir", "-c": "--cpu-shares"}


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host, or a named volume, and its path in the container."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Container:
    """What `docker run` says beside the command. `ports`: port in the container to port of the host."""

    image: str = ""
    entrypoint: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    without_value: tuple[str, ...] = ()
    environment_files: tuple[str, ...] = ()
    ports: Mapping[int, int] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    shared_memory: str = ""
    memory: str = ""
    cpus: str = ""
    name: str = ""
    gpus: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """One option with its full name."""

    name: str
    value: str


def read_container(argv: Sequence[str]) -> tuple[Container, tuple[str, ...]]:
    """The words behind `docker run`: what they say of the container, and the words behind the image.

    Raises InputError where there is no image.
    """
    options, remainder = _options(argv)
    if not remainder:
        raise InputError("the container command names no image", fix="paste the whole command, up to its end")
    values: dict[str, list[str]] = {}
    for option in options:
        values.setdefault(option.name, []).append(option.value)
    variables = [text.partition("=") for text in values.get("--env", [])]
    container = Container(
        image=remainder[0],
        entrypoint=_last(values, "--entrypoint"),
        environment={name: value for name, equals, value in variables if equals},
        without_value=tuple(name for name, equals, _ in variables if not equals),
        environment_files=tuple(values.get("--env-file", ())),
        ports=dict(port for text in values.get("--publish", ()) for port in _ports(text)),
        mounts=tuple(_mounts(values)),
        devices=tuple(values.get("--device", ())),
        shared_memory=_last(values, "--shm-size"),
        memory=_last(values, "--memory"),
        cpus=_last(values, "--cpus"),
        name=_last(values, "--name"),
        gpus=_last(values, "--gpus"),
    )
    return container, tuple(remainder[1:])


def _last(values: Mapping[str, list[str]], name: str) -> str:
    return values[name][-1] if name in values else ""


def _options(argv: Sequence[str]) -> tuple[list[Option], Sequence[str]]:
    """The options before the image, and the words from the image on."""
    options: list[Option] = []
    position = 0
    while position < len(argv) and argv[position].startswith("-") and argv[position] != "--":
        word = argv[position]
        position += 1
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            name, value, needs_value = _short(word)
        else:
            needs_value = not equals and name not in SWITCHES
        if needs_value and position < len(argv):
            value = argv[position]
            position += 1
        options.append(Option(SHORT.get(name, name), value))
    if position < len(argv) and argv[position] == "--":
        position += 1
    return options, argv[position:]


def _short(word: str) -> tuple[str, str, bool]:
    """Name, value and whether the value follows: `-it`, `-e`, `-eX=1`, `-itp`, `-p=80:80`."""
    letters = word[1:]
    for index, letter in enumerate(letters):
        if letter not in SHORT_SWITCHES:
            value = letters[index + 1 :].removeprefix("=")
            return f"-{letter}", value, not value
    return word, "", False


def _ports(text: str) -> Iterator[tuple[int, int]]:
    """`[ADDRESS:][HOST:]CONTAINER[/tcp]`; ranges and other protocols are left out."""
    mapping, _, protocol = text.partition("/")
    parts = mapping.rsplit(":", 2)
    container, host = parts[-1], parts[-2] if len(parts) > 1 else ""
    if protocol in ("", "tcp") and container.isdecimal() and len(container) < 6:
        yield int(container), int(host) if host.isdecimal() and len(host) < 6 else int(container)


def _mounts(values: Mapping[str, list[str]]) -> Iterator[Mount]:
    for text in values.get("--volume", ()):
        source, colon, target = text.partition(":")
        if colon:
            yield Mount(source, target.partition(":")[0])
    for text in values.get("--mount", ()):
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        source = parts.get("source") or parts.get("src") or ""
        target = parts.get("target") or parts.get("destination") or parts.get("dst") or ""
        if source and target:
            yield Mount(source, target)

"""Flags that have a field in a ModelDeployment: the field, and its value in the form of the field.

Every flag that `api/` reserves in favour of a field is here; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from hermetic.conversion.outcomes import Field, Note, Outcome, left_out
from hermetic.conversion.server_command import FlagMember
from hermetic.engines.extra_arguments import WrittenFlag, is_choice
from hermetic.errors import InputError

# Values of "size" flags (vLLM): k, m, g and t are powers of 1000, K, M, G and T of 1024. Of "si-size" flags (SGLang):
# k, M, G and T are powers of 1000, Ki, Mi, Gi and Ti of 1024. engines/argument_values.py names the sources.
_UNITS: Mapping[str, Mapping[str, int]] = {
    "size": {"": 1, **{unit: 1000**power for power, unit in enumerate("kmgt", 1)}}
    | {unit: 1024**power for power, unit in enumerate("KMGT", 1)},
    "si-size": {"": 1, **{unit: 1000**power for power, unit in enumerate("kMGT", 1)}}
    | {f"{unit}i": 1024**power for power, unit in enumerate("KMGT", 1)},
    "int": {"": 1},
}
_SHARE = re.compile(r"[01]?\.?[0-9]{0,18}(?<=[0-9])|1\.")
MOST_GPUS = 16
"""The largest `accelerator.count`."""
MOST_NODES = 16
"""The largest `accelerator.nodes`."""
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([A-Za-z]{0,2})")


@dataclass(frozen=True, slots=True)
class Target:
    """Where the fields of one conversion are: `engine` is the path of the engine's settings, `name` the object's."""

    engine: str
    name: str


FieldFlag = Callable[[WrittenFlag, Target], Iterator[Outcome]]


def whole_number(path: str, least: int, most: int) -> FieldFlag:
    """A whole number within the bounds of the field; `path` is relative to the engine unless it begins with '/'."""

    def outcomes(flag: WrittenFlag, target: Target) -> Iterator[Outcome]:
        number = size_of(flag)
        field = _path(path, target)
        if number is None or not least <= number <= most:
            message = (
                f"`{field}` takes a whole number from {least} to {most}: set it by hand, or leave it to the engine"
            )
            yield left_out(flag.flag.name, message)
            return
        yield Field(field, number)

    return outcomes


def size_of(flag: WrittenFlag) -> int | None:
    """The flag's value as a whole number, with the units that its parser takes; None where it is none."""
    text = flag.values[-1].strip() if flag.values else ""
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(flag.flag.type, _UNITS["int"]).get(match[2]) if match is not None else None
    if match is None or unit is None or ("." in match[1] and unit == 1):
        return None
    integer, _, fraction = match[1].partition(".")
    scale: int = 10 ** len(fraction)
    return int(integer + fraction) * unit // scale


def gpus(path: str, most: int = MOST_GPUS) -> FieldFlag:
    """A number of GPUs. Raises InputError for more than `most`."""

    def outcomes(flag: WrittenFlag, target: Target) -> Iterator[Outcome]:
        number = size_of(flag)
        if number is None or number < 1:
            yield left_out(flag.flag.name, f"its value is not a number of GPUs: set `{_path(path, target)}` by hand")
            return
        refuse_more_gpus(number, most)
        yield Field(_path(path, target), number)

    return outcomes


def refuse_more_gpus(number: int, most: int = MOST_GPUS) -> None:
    """Raises InputError where the server needs more GPUs than a pod, or the pods of a replica, can have."""
    if number > most:
        raise InputError(
            f"the command needs {number} GPUs, and Hermetic gives a pod at most {MOST_GPUS}",
            fix="convert a command for fewer GPUs, or for several nodes: with --nnodes",
        )


def nodes(flag: WrittenFlag, _: Target) -> Iterator[Outcome]:
    """The number of nodes of a replica. Raises InputError for more than a replica can have."""
    number = size_of(flag)
    if number is None or not 1 <= number <= MOST_NODES:
        raise InputError(
            f"the command has {flag.flag.name} {flag.values[-1] if flag.values else ''}, and a replica has 1 to "
            f"{MOST_NODES} nodes",
            fix="convert a command for fewer nodes",
        )
    if number > 1:
        yield Field("accelerator.nodes", number)
        yield Note(
            "set", "accelerator.interconnect", "Ethernet, until you set {type: InfiniBand, resource: NAME, count: N}"
        )


def rendered_for_each_pod(flag: WrittenFlag, _: Target) -> Iterator[Outcome]:
    """Flags that differ from pod to pod, or name the first of them."""
    yield left_out(flag.flag.name, "each pod of a replica gets its own value")


def percent(path: str) -> FieldFlag:
    """A share of 1 as the percentage of the field, rounded down to a whole one."""

    def outcomes(flag: WrittenFlag, target: Target) -> Iterator[Outcome]:
        text, field = (flag.values[-1].strip() if flag.values else ""), _path(path, target)
        hundredths = Decimal(text) * 100 if _SHARE.fullmatch(text) else Decimal(0)
        if not 10 <= hundredths <= 98:
            yield left_out(flag.flag.name, f"`{field}` takes a share from 0.10 to 0.98: set it by hand, in percent")
            return
        yield Field(field, int(hundredths))
        if hundredths != int(hundredths):
            yield Note("replaced", flag.flag.name, f"{text} by `{field}: {int(hundredths)}`: it takes whole percents")

    return outcomes


def number_format(path: str) -> FieldFlag:
    """A number format that the release knows."""

    def outcomes(flag: WrittenFlag, target: Target) -> Iterator[Outcome]:
        text, field = (flag.values[-1] if flag.values else ""), _path(path, target)
        if re.fullmatch(r"[a-z0-9_]{1,32}", text) is None or not is_choice(flag.flag, text):
            yield left_out(flag.flag.name, f"the release takes no such value for `{field}`")
            return
        yield Field(field, text)

    return outcomes


def secret(path: str, purpose: str, command: str) -> FieldFlag:
    """A credential: the name of a Secret that the reader creates. Its value is never repeated."""

    def outcomes(flag: WrittenFlag, target: Target) -> Iterator[Outcome]:
        name = f"{target.name}-{purpose}"
        yield Field(path, name)
        create = command.replace("NAME", name)
        yield Note("set", flag.flag.name, f"its value becomes the Secret '{name}' of `{path}`; create it: {create}")

    return outcomes


def adapters(flag: WrittenFlag, _: Target) -> Iterator[Outcome]:
    """Flags of adapters: neither the rank nor the place on the share is known from any of them alone."""
    yield left_out(
        flag.flag.name,
        "stage each adapter in a folder of the share, beside the model's, and add it to `adapters`: "
        "{name: NAME, folder: FOLDER, rank: RANK, integrity: {digest: DIGEST}}",
    )


def _path(path: str, target: Target) -> str:
    return path[1:] if path.startswith("/") else f"{target.engine}.{path}"


_KEY = "kubectl create secret generic NAME --from-literal=token=KEY"
_CERTIFICATE = "kubectl create secret tls NAME --cert=tls.crt --key=tls.key"
API_KEY: FieldFlag = secret("endpoint.apiKey.secretName", "api-key", _KEY)
TLS: FieldFlag = secret("endpoint.tls.secretName", "tls", _CERTIFICATE)
STARTUP_BUDGET = whole_number("/startupBudgetSeconds", 60, 14400)

_MOST_OF_A_GROUP = MOST_GPUS * MOST_NODES
_COMMON: Mapping[str, FieldFlag] = {
    "--nnodes": nodes,
    "--node-rank": rendered_for_each_pod,
    "--port": whole_number("/endpoint.port", 1024, 65535),
    "--api-key": API_KEY,
    "--ssl-certfile": TLS,
    "--ssl-keyfile": TLS,
    "--kv-cache-dtype": number_format("kvCacheDtype"),
}
FIELD_FLAGS: Mapping[FlagMember, Mapping[str, FieldFlag]] = {
    "vllm": {
        **_COMMON,
        "--max-model-len": whole_number("maxModelLength", 1, 10_000_000),
        "--gpu-memory-utilization": percent("gpuMemoryUtilizationPercent"),
        **dict.fromkeys(("--headless", "--master-addr", "--master-port"), rendered_for_each_pod),
        "--tensor-parallel-size": gpus("tensorParallelSize", _MOST_OF_A_GROUP),
        "--pipeline-parallel-size": gpus("pipelineParallelSize"),
        "--shutdown-timeout": whole_number("/drainSeconds", 0, 3600),
        **dict.fromkeys(("--enable-lora", "--lora-modules", "--max-lora-rank"), adapters),
    },
    "sglang": {
        **_COMMON,
        "--context-length": whole_number("maxModelLength", 1, 10_000_000),
        "--mem-fraction-static": percent("memFractionStaticPercent"),
        "--dist-init-addr": rendered_for_each_pod,
        "--tp-size": gpus("tensorParallelSize", _MOST_OF_A_GROUP),
        "--pp-size": gpus("pipelineParallelSize"),
        **dict.fromkeys(("--enable-lora", "--lora-paths", "--max-lora-rank"), adapters),
    },
}

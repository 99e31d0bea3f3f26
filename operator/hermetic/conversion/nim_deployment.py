"""A `docker run` of an NVIDIA NIM as a ModelDeployment: variables as fields, what has no field as a note.

Sources: docs.nvidia.com, NIM for large language models, "Configure Your NIM" of 1.12.0, "Environment Variables" and
"Advanced Configuration" of 2.0.12, "Model-Free NIM" of 2.1.6 (the model as first argument, names that follow from it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermetic.api.image_references import repository_of, tag_of
from hermetic.api.reserved_flags import ENVIRONMENT, NIM_FLAGS, reserved_variable
from hermetic.conversion.container_fields import DEFAULT_PORTS, container_outcomes
from hermetic.conversion.engine_flags import SUBSTITUTED
from hermetic.conversion.engine_variables import CHOICE_OF_GPUS
from hermetic.conversion.field_flags import TLS, FieldFlag, Target, gpus, refuse_more_gpus, whole_number
from hermetic.conversion.manifest import Conversion, Request, manifest_of, spec_of
from hermetic.conversion.model_files import folder_name, is_path
from hermetic.conversion.outcomes import Argument, Field, Note, Outcome, Variable, left_out
from hermetic.conversion.served_model import object_name
from hermetic.conversion.server_command import ServerCommand
from hermetic.conversion.serving_image import private_image
from hermetic.conversion.shell_text import has_substitution
from hermetic.conversion.trial_spec import Trial
from hermetic.conversion.weights_source import weights_source
from hermetic.engines.extra_arguments import WrittenFlag, is_flag
from hermetic.engines.flag_tables import Flag
from hermetic.engines.protocol import EngineAdapter
from hermetic.engines.registry import ENGINES, gpus_of_profile
from hermetic.errors import InputError

ASSUMED_LINE = "2.1"
_RELEASE = re.compile(r"v?([0-9]{1,2})\.([0-9]{1,3})(?![0-9])")
_GENERIC = re.compile(r"llm-nim|nim-llm|vllm|sglang|.*model-free.*")
"""Last parts of images that serve any model: their name is not that of a model."""
_REFERENCE = re.compile(r"(?:[a-z0-9]+://)?(?P<reference>.+?)(?::[^:/]+)?")
_MODEL = ("NIM_MODEL_NAME", "NIM_MODEL_PATH")
_PROFILE, _NAME = "NIM_MODEL_PROFILE", "NIM_SERVED_MODEL_NAME"
_TENSOR, _PIPELINE = "NIM_TENSOR_PARALLEL_SIZE", "NIM_PIPELINE_PARALLEL_SIZE"
_COUNT = gpus("/accelerator.count")
_PORT = whole_number("/endpoint.port", 1024, 65535)
# Variables and flags with a field.
_FIELDS: Mapping[str, FieldFlag] = {
    "NIM_SERVER_PORT": _PORT,
    "NIM_HTTP_API_PORT": _PORT,
    "NIM_MAX_MODEL_LEN": whole_number("maxModelLength", 1, 10_000_000),
    "NIM_SSL_KEY_PATH": TLS,
    "NIM_SSL_CERTS_PATH": TLS,
    _TENSOR: _COUNT,
    "--max-model-len": whole_number("maxModelLength", 1, 10_000_000),
    "--tensor-parallel-size": _COUNT,
}


def convert_nim(command: ServerCommand, request: Request) -> Conversion:
    """The container of a NIM as a ModelDeployment. Raises InputError where nothing can be made of it."""
    source = request.image or command.container.image
    line, line_notes = _line(source, request.version)
    image, image_notes = private_image(source, request.registry, "nim")
    environment = {**command.environment, **request.environment}
    arguments = command.arguments
    stated, arguments = (arguments[0], arguments[1:]) if arguments and not is_flag(arguments[0]) else ("", arguments)
    model = _model(source, stated, environment)
    name = object_name(request.name, model.name)
    weights, weights_notes = weights_source(request.claim, request.share, name)
    target = Target("engine.nim", name)
    trial: Trial[EngineAdapter] = Trial(ENGINES["nim"], {"line": line}, weights)
    outcomes = (
        Field("engine.nim.image", image),
        Field("engine.nim.line", line),
        *model.outcomes,
        *container_outcomes(command.container, _port_of(environment), model.reference),
        Field("accelerator.count", _gpus(environment, command.container.gpus)),
        *(outcome for name, value in environment.items() for outcome in _of_variable(name, value, target, trial)),
        *(outcome for flag in _flags(arguments) for outcome in _of_flag(flag, target, trial)),
    )
    spec = {**spec_of(outcomes, target), "weights": weights}
    notes = (
        *line_notes,
        *image_notes,
        *_notes_on_weights(model, environment),
        *weights_notes,
        *(outcome for outcome in outcomes if isinstance(outcome, Note)),
    )
    return Conversion(manifest_of(name, request.namespace, spec), tuple(dict.fromkeys(notes)))


def _line(image: str, version: str) -> tuple[str, tuple[Note, ...]]:
    """The release line: that of `version`, else of the image's tag, else an assumed one with a note."""
    stated = version or tag_of(image)
    release = _RELEASE.match(stated)
    if release is None and version:
        raise InputError(f"--version '{version[:64]}' is not a release of a NIM", fix="write it as --version 2.1")
    if release is None:
        message = f"the image does not name its release; {ASSUMED_LINE} is assumed: set it, or give --version"
        return ASSUMED_LINE, (Note("set", "engine.nim.line", message),)
    if release[1] not in ("1", "2"):
        raise InputError(
            f"NIM {stated[:64]} is of line {release[1]}, and Hermetic serves lines 1 and 2: what keeps later lines "
            "offline could not be verified",
            fix="convert the command of an image of line 2",
        )
    return f"{release[1]}.{release[2]}", ()


@dataclass(frozen=True, slots=True)
class _NimModel:
    """`reference`: the repository or path that is served, "" for the model of the image. `name`: that clients send."""

    reference: str
    name: str
    outcomes: tuple[Outcome, ...]


def _model(image: str, argument: str, environment: Mapping[str, str]) -> _NimModel:
    """The model of the argument, else of the variables, else of the image."""
    stated = argument or next((environment[name] for name in _MODEL if environment.get(name)), "")
    match = _REFERENCE.fullmatch(stated)
    reference = match["reference"] if match is not None else ""
    below_nim = repository_of(image).split("/nim/")[-1]
    of_image = "" if _GENERIC.fullmatch(below_nim.rpartition("/")[2]) else below_nim
    of_reference = folder_name(reference) if is_path(reference) else reference
    stated_name = environment.get(_NAME, "").split(",")[0]
    name = stated_name or of_reference or of_image
    if not name or has_substitution(name):
        problem = f"the model is named '{name[:128]}'; {SUBSTITUTED}" if name else "the command names no model"
        raise InputError(problem, fix=f"add --env {_NAME}=NAME")
    outcomes: list[Outcome] = [Field("model.name", name)]
    if not stated_name and name != of_image:
        outcomes.append(Note("set", "model.name", f"'{name}': clients send it; correct it if need be"))
    if profile := environment.get(_PROFILE, ""):
        outcomes.append(Field("engine.nim.profile", profile))
    return _NimModel(reference, name, tuple(outcomes))


def _notes_on_weights(model: _NimModel, environment: Mapping[str, str]) -> Iterator[Note]:
    """What must be staged: a cache for a profile, else a folder of the model."""
    if profile := environment.get(_PROFILE, ""):
        yield Note(
            "stage",
            profile,
            f"on a connected host run 'download-to-cache --profiles {profile}' in the image, then: "
            "hermetic stage CACHE DESTINATION",
        )
    elif model.reference:
        yield Note("stage", model.reference, "download it on a connected host, then: hermetic stage FOLDER DESTINATION")
    else:
        yield Note(
            "stage",
            model.name,
            "the image would download its model: on a connected host run 'list-model-profiles' and 'create-model-store "
            "--profile ID --model-store FOLDER' in the image, then: hermetic stage FOLDER DESTINATION",
        )
    clients = "no client may connect yet: give `allowedClients`, `internalLoadBalancer` or both"
    yield Note("set", "endpoint", clients)


def _port_of(environment: Mapping[str, str]) -> int:
    """The port that the server listens on in its container."""
    stated = environment.get("NIM_SERVER_PORT", environment.get("NIM_HTTP_API_PORT", ""))
    return int(stated) if stated.isdecimal() and len(stated) < 6 else DEFAULT_PORTS["nim"]


def _gpus(environment: Mapping[str, str], option: str) -> int:
    """The GPUs of the profile, else of the tensor and pipeline sizes, else of `--gpus`, else one."""
    count = gpus_of_profile(environment.get(_PROFILE, ""))
    if count is not None:
        refuse_more_gpus(count)
        return count
    sizes = [environment[name] for name in (_TENSOR, _PIPELINE) if environment.get(name, "").isdecimal()]
    if sizes:
        number = 1
        for size in sizes:
            number *= max(1, int(size[:6]))
        refuse_more_gpus(number)
        return number
    text = option.strip("\"'")
    if text.startswith("device="):
        return len(text.removeprefix("device=").split(","))
    return int(text) if text.isdecimal() and 1 <= int(text[:6]) <= 16 else 1


def _of_variable(name: str, value: str, target: Target, trial: Trial[EngineAdapter]) -> Iterator[Outcome]:
    """What becomes of one variable. Its value is not repeated."""
    shown = name[:128]
    if name in (*_MODEL, _PROFILE, _NAME, _TENSOR):
        return  # a field, or the folder of the staged weights
    if has_substitution(value):
        yield left_out(shown, SUBSTITUTED)
    elif name in _FIELDS:
        yield from _FIELDS[name](WrittenFlag(name, Flag(shown, "one", type="int"), (value,)), target)
    elif name in CHOICE_OF_GPUS:
        yield left_out(shown, "the device plug-in chooses the GPUs of a pod; `accelerator.count` is their number")
    elif reserved_variable(name):
        yield left_out(shown, ENVIRONMENT.get(name, "it holds a credential or a proxy, which a pod is not given"))
    elif objection := trial.objection_to_variable(name, value):
        yield left_out(shown, objection)
    else:
        yield Variable(name, value)


def _flags(arguments: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Each flag with the words behind it."""
    items: list[str] = []
    for argument in arguments:
        if is_flag(argument) and items:
            yield tuple(items)
            items = []
        items.append(argument)
    if items:
        yield tuple(items)


def _of_flag(items: tuple[str, ...], target: Target, trial: Trial[EngineAdapter]) -> Iterator[Outcome]:
    option, equals, attached = items[0].partition("=")
    name = option.replace("_", "-")
    values = ((attached,) if equals else ()) + items[1:]
    if any(has_substitution(value) for value in values):
        yield left_out(name[:128], SUBSTITUTED)
    elif name in _FIELDS:
        yield from _FIELDS[name](WrittenFlag(items[0], Flag(name, "one", type="size"), values), target)
    elif name in NIM_FLAGS:
        yield left_out(name, NIM_FLAGS[name])
    elif objection := trial.objection_to_argument(items, 1):
        yield left_out(name[:128], objection)
    else:
        yield Argument(items)

"""A command as a ModelDeployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.conversion.arguments import ReadArguments, read_arguments
from hermetic.conversion.container_fields import DEFAULT_PORTS, container_outcomes, is_for_amd
from hermetic.conversion.engine_flags import FlagConversion
from hermetic.conversion.engine_variables import variable_outcomes
from hermetic.conversion.field_flags import Target, refuse_more_gpus, size_of
from hermetic.conversion.manifest import Conversion, Request, manifest_of, spec_of
from hermetic.conversion.model_files import WORK_FOLDER, ModelFiles
from hermetic.conversion.nim_deployment import convert_nim
from hermetic.conversion.outcomes import Field, Note, Outcome
from hermetic.conversion.served_model import ServedModel, object_name, served_model
from hermetic.conversion.server_command import ServerCommand
from hermetic.conversion.serving_image import serving_image
from hermetic.conversion.successors import Successors, with_successors
from hermetic.conversion.trial_spec import Trial
from hermetic.conversion.weights_source import weights_source
from hermetic.engines.extra_arguments import read
from hermetic.engines.flag_engine import FlagEngine
from hermetic.engines.flag_tables import FlagTable
from hermetic.engines.registry import FLAG_ENGINES
from hermetic.errors import InputError


def convert(command: ServerCommand, request: Request) -> Conversion:
    """The command as a ModelDeployment. Raises InputError where nothing can be made of it."""
    if command.member == "nim":
        return convert_nim(command, request)
    engine = FLAG_ENGINES[command.member]
    named_image = request.image or command.container.image
    image = serving_image(named_image, request.version, request.registry, command.member, engine.tables)
    table = engine.tables.table_for(image.version)
    current = with_successors(command.arguments, {**command.environment, **request.environment}, command.member, table)
    arguments = read_arguments(current.arguments, table)
    model = served_model(arguments, command.member)
    name = object_name(request.name, model.names[0])
    weights, weights_notes = weights_source(request.claim, request.share, name)
    target = Target(f"engine.{command.member}", name)
    trial = Trial(engine, {"version": image.version}, weights)
    successors = Successors(command.member, table)
    conversion = FlagConversion(command.member, successors, target, trial, _files(command, model))
    outcomes = (
        Field(f"{target.engine}.image", image.reference),
        Field(f"{target.engine}.version", image.version),
        # Clients of the command call this port; the default of the field is another.
        *([Field("endpoint.port", DEFAULT_PORTS["sglang"])] if command.member == "sglang" else []),
        *model.outcomes,
        *current.notes,
        *conversion.outcomes(arguments),
        *variable_outcomes(current.environment, target, trial, successors),
        *container_outcomes(command.container, _engine_port(command, arguments), model.reference),
        *_accelerator(command, named_image, current.environment),
    )
    spec = {**spec_of(outcomes, target), "weights": weights}
    accelerator, settings = spec.setdefault("accelerator", {}), spec["engine"][command.member]
    nodes = accelerator.get("nodes", 1)
    if nodes > 1:
        # The engine's own default is one stage; that of the field is one for each node.
        settings.setdefault("pipelineParallelSize", 1)
    accelerator["count"] = _gpus_of_a_pod(_gpus(settings, trial, table), nodes)
    notes = (
        *image.notes,
        *_notes_of_model(model),
        *weights_notes,
        *(outcome for outcome in outcomes if isinstance(outcome, Note)),
    )
    return Conversion(manifest_of(name, request.namespace, spec), tuple(dict.fromkeys(notes)))


def _files(command: ServerCommand, model: ServedModel) -> ModelFiles:
    work_folder = WORK_FOLDER if command.member == "vllm" else ""
    return ModelFiles(model.reference, command.container.mounts, bool(command.container.image), work_folder)


def _engine_port(command: ServerCommand, arguments: ReadArguments) -> int:
    """The port that the server listens on in its container."""
    flag = arguments.flag("--port")
    number = size_of(flag) if flag is not None else None
    return DEFAULT_PORTS[command.member] if number is None else number


def _accelerator(command: ServerCommand, image: str, environment: Mapping[str, str]) -> Iterator[Outcome]:
    if is_for_amd(command.container, image, environment):
        yield Field("accelerator.resource", "amd.com/gpu")
        yield Note("set", "accelerator.resource", "'amd.com/gpu', because the command is for GPUs of AMD")


def _notes_of_model(model: ServedModel) -> Iterator[Note]:
    yield Note("stage", model.reference, "download it on a connected host, then: hermetic stage FOLDER DESTINATION")
    clients = "no client may connect yet: give `allowedClients`, `internalLoadBalancer` or both"
    yield Note("set", "endpoint", clients)


def _gpus(settings: Mapping[str, Any], trial: Trial[FlagEngine], table: FlagTable) -> int:
    """The GPUs that the engine starts workers on."""
    flags, _ = read(settings.get("extraArgs", ()), table)
    groups = trial.engine.groups({flag.flag.name: flag for flag in flags if not flag.is_negated})
    number = settings.get("tensorParallelSize", 1) * settings.get("pipelineParallelSize", 1) * groups
    return int(number)


def _gpus_of_a_pod(number: int, nodes: int) -> int:
    """The GPUs of each pod. Raises InputError where nodes cannot share them, or a pod would have too many."""
    if number % nodes:
        raise InputError(
            f"the command needs {number} GPUs, which {nodes} nodes cannot share evenly",
            fix="give tensor and pipeline parallel sizes whose product is a multiple of --nnodes",
        )
    refuse_more_gpus(number // nodes)
    return number // nodes

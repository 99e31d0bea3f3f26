"""The environment of a command as fields and variables of a ModelDeployment. No value is repeated in a note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.api.reserved_flags import ENVIRONMENT, reserved_variable
from hermetic.conversion.engine_flags import SUBSTITUTED
from hermetic.conversion.field_flags import API_KEY, STARTUP_BUDGET, FieldFlag, Target
from hermetic.conversion.outcomes import Outcome, Variable, left_out
from hermetic.conversion.shell_text import has_substitution
from hermetic.conversion.successors import Successors
from hermetic.conversion.trial_spec import Trial
from hermetic.engines.extra_arguments import WrittenFlag
from hermetic.engines.flag_engine import VISIBLE_DEVICES, FlagEngine
from hermetic.engines.flag_tables import Flag

_FIELDS: Mapping[str, FieldFlag] = {
    "VLLM_API_KEY": API_KEY,
    "VLLM_ENGINE_READY_TIMEOUT_S": STARTUP_BUDGET,
    "SGLANG_WARMUP_TIMEOUT": STARTUP_BUDGET,
}
CHOICE_OF_GPUS = VISIBLE_DEVICES | {"NVIDIA_VISIBLE_DEVICES"}


def variable_outcomes(
    environment: Mapping[str, str], target: Target, trial: Trial[FlagEngine], successors: Successors
) -> Iterator[Outcome]:
    """What becomes of each variable, in the order of the command."""
    for name, value in environment.items():
        shown = name[:128]
        if name in _FIELDS:
            yield from _FIELDS[name](WrittenFlag(name, Flag(shown, "one", type="int"), (value,)), target)
        elif name in CHOICE_OF_GPUS:
            yield left_out(shown, "the device plug-in chooses the GPUs of a pod; `accelerator.count` is their number")
        elif reserved_variable(name):
            yield left_out(shown, ENVIRONMENT.get(name, "it holds a credential or a proxy, which a pod is not given"))
        elif has_substitution(value):
            yield left_out(shown, SUBSTITUTED)
        elif (dropped := successors.dropped(name)) is not None:
            yield left_out(shown, f"{successors.table.dialect.product} {dropped.since} dropped it: {dropped.instead}")
        elif objection := trial.objection_to_variable(name, value):
            yield left_out(shown, objection)
        else:
            yield Variable(name, value)

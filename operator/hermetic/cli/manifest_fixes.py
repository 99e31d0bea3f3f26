"""What to do about a field that the schema refuses: the answer that `hermetic explain` knows, or the field to use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

from pydantic import BaseModel

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.api.reserved_flags import FIELD, RESERVED, RESERVED_NAME
from hermetic.api.validation_errors import NO_SUCH_FIELD, REQUIRED, FieldError

_STAGE = "stage the model with 'hermetic stage', and name the share in spec.weights.azureFiles or nfs"
_ONE_CONTAINER = "is not offered: a pod runs the engine alone, and policies refuse other containers"
NOT_OFFERED: dict[str, str] = {
    "imagePullSecrets": "is not offered: a Secret with a registry password would lie in each namespace; nodes pull "
    "with the cluster's identity (az aks update --attach-acr REGISTRY)",
    "runtimeClassName": "is not offered: another runtime may pass the node's devices and networks to the pod; a "
    "platform team may set it by a mutating webhook, which Hermetic accepts",
    "labels": "is not offered on pods: labels attach identities, networks and sidecars; select pods by "
    "hermetic.dev/modeldeployment. Labels of `metadata` that describe are copied to the pods if `modelMetadata` of the "
    "operator's configuration lists their keys",
    "annotations": "is not offered on pods: annotations attach networks and sidecars. Annotations of `metadata` are "
    "copied to the pods if `modelMetadata` of the operator's configuration lists their keys",
    "env": "use `extraEnv` of the engine, for variables on the reviewed list",
    "args": "use `extraArgs` of the engine, one word an item",
    "command": "is not offered: the command decides what the pod runs; use `extraArgs` of the engine",
    "securityContext": "is not offered: every pod is restricted in the same way; for the group of a share use "
    "`weights.supplementalGroups`",
    "hostNetwork": "is not offered: NetworkPolicies do not cover the network of the node",
    "volumes": "is not offered: a pod mounts its weights alone, from `weights`",
    "volumeMounts": "is not offered: a pod mounts its weights alone, from `weights`",
    "initContainers": _ONE_CONTAINER,
    "containers": _ONE_CONTAINER,
    "sidecars": _ONE_CONTAINER,
    "serviceAccountName": "is not offered: each model has an account of its own, without rights and without a token",
    "topologySpreadConstraints": "is not offered: replicas spread over nodes where there is room; use "
    "`scheduling.nodeSelector` for a zone or a pool",
    "affinity": "use `accelerator.instanceTypes`, or `scheduling.nodeSelector`",
    "ingress": "is not offered: a model has a private address by `endpoint.internalLoadBalancer`",
    "huggingFace": f"is not offered: nothing is fetched in a sealed cluster; {_STAGE}",
    "huggingface": f"is not offered: nothing is fetched in a sealed cluster; {_STAGE}",
    "url": f"is not offered: nothing is fetched in a sealed cluster; {_STAGE}",
    "limits": "use `resources.memory`, which is request and limit, `resources.cpuLimit`, "
    "`resources.ephemeralStorageLimit` and `accelerator.count`",
    "requests": "use `resources.cpu`, `resources.memory` and `accelerator.count`",
}  # fmt: skip
"""By its name, a field that people expect and that this API does not have: why, and what to use."""

_MOST_PLACES = 3


def fix_of(problem: FieldError) -> str:
    """The remedy for this field; "" where the message about the whole object has it."""
    parent, _, name = problem.path.rpartition(".")
    if problem.near and name not in NOT_OFFERED:
        return f"write `{problem.near}` for `{problem.value if name == 'kind' else name}`"
    if problem.path == "kind":
        return "name a file of Hermetic's kinds, or the folder: other kinds are skipped in a folder"
    if not problem.path.startswith("spec"):
        return ""
    if answer := _known_answer(problem, name):
        return answer
    field = re.sub(r"\[.*", "", parent if problem.message == NO_SUCH_FIELD else problem.path)
    verb = {NO_SUCH_FIELD: "remove it", REQUIRED: "add it"}.get(problem.message, "correct it")
    return f"{verb}; docs/api.md describes {field} (with a cluster: kubectl explain modeldeployment.{field})"


def _known_answer(problem: FieldError, name: str) -> str:
    """The answer for this field or value; "" for none."""
    text = _text(problem.value)
    answer = ""
    if problem.message.startswith(NO_SUCH_FIELD):
        answer = f"`{name}` {NOT_OFFERED[name]}" if name in NOT_OFFERED else _moved(name)
    elif problem.message.startswith((RESERVED, RESERVED_NAME)):
        answer = _about_reserved(problem.message)
    elif name == "version" and text.startswith("v"):
        answer = f'write "{text[1:]}"'
    elif name in {"image", "reference"} and "@" not in text:
        answer = _about_tag(text)
    elif name in _NUMBERS:
        answer = _NUMBERS[name](text)
    return answer


def _about_percent(text: str) -> str:
    """A share of 1 where the field takes percents."""
    is_share = re.fullmatch(r"0?\.[0-9]{1,4}", text) is not None
    return f"write {round(float(text) * 100)}: the field takes whole percents" if is_share else ""


def _about_context(text: str) -> str:
    longest = "leave it out for the length of the model"
    is_open = text in {"-1", "auto", "0"}
    return f"{longest}; for the longest that fits add '--max-model-len=auto' to extraArgs of vLLM" if is_open else ""


def _about_port(text: str) -> str:
    """A well-known port, which the Service may have and the pod may not."""
    is_well_known = text.isdecimal() and 1 <= int(text[:5]) < 1024
    return f"write `servicePort: {text}`, and a `port` from 1024 on for the pod" if is_well_known else ""


_NUMBERS: dict[str, Callable[[str], str]] = {
    "gpuMemoryUtilizationPercent": _about_percent,
    "memFractionStaticPercent": _about_percent,
    "maxModelLength": _about_context,
    "port": _about_port,
}
"""What to write for a value that people copy from flags and from other objects."""


def _moved(name: str) -> str:
    """Where a field of this name belongs; "" where there is none."""
    paths = list(_places(name))[:_MOST_PLACES]
    return f"move it to {' or '.join(paths)}" if paths else ""


def _about_reserved(message: str) -> str:
    """What to do about a flag or variable of which the message says why it is reserved."""
    _, has_field, field = message.partition(f": {FIELD}")
    return f"leave it out, and set spec.{field}" if has_field else "leave it out"


def _about_tag(image: str) -> str:
    """How to find the digest of an image that is named by its tag."""
    host, _, repository = image.partition("/")
    if "…" in image or not repository:
        return ""
    if host.endswith(".azurecr.io"):
        registry = host.removesuffix(".azurecr.io")
        command = f"az acr repository show --name {registry} --image {repository} --query digest --output tsv"
    else:
        command = f"skopeo inspect --format '{{{{.Digest}}}}' docker://{image}"
    return f"write {image.rpartition(':')[0] if ':' in repository else image}@DIGEST, with what this prints: {command}"


def _places(name: str) -> Iterator[str]:
    """Every field of a ModelDeployment's spec with this name, as paths; the shallowest first."""
    level: list[tuple[str, Any]] = [("spec", ModelDeployment.model_fields["spec"].annotation)]
    while level:
        below: list[tuple[str, Any]] = []
        for path, annotation in level:
            for model in _models_in(annotation):
                for own, field in model.model_fields.items():
                    child = f"{path}.{field.alias or own}"
                    if (field.alias or own) == name:
                        yield child
                    below.append((child, field.annotation))
        level = below


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The object itself or the optional object; items of a list have no path to move a field to."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for part in get_args(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield part


def _text(value: str) -> str:
    """The text behind a value that is shown as JSON, and may be cut."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return value.strip('"')
    return decoded if isinstance(decoded, str) else value

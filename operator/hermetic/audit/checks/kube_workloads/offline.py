"""Model servers stay offline, and hold no key and no token that a compromised server could use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hermetic.api.field_managers import CONTAINERS, LABELS, VOLUMES
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.variables import config_maps
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.environment import HUB_KEYS, EnvVar
from hermetic.audit.estate.kubernetes.pods import Container, Pod
from hermetic.audit.estate.kubernetes.volumes import Volume
from hermetic.audit.evaluation.each_object import each_pod
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
NIM = "NIM_DISABLE_MODEL_DOWNLOAD"
# Values that the hub's libraries take for true; a NIM accepts only "1".
YES = frozenset({"1", "ON", "YES", "TRUE"})
WORKLOAD_IDENTITY = "azure.workload.identity/use"
# Common names of Secrets with the key of a model hub, a registry or a tracker.
_KEY = re.compile(
    r"(^|[-._])(hf|hugging-?face|hub|ngc|nvcr|nvidia-api|modelscope|kaggle|wandb|token|tokens|api-?key|pat|dockerconfig"
    r"|registry|pull)([-._]|$)",
    re.IGNORECASE,
)
API = "the API server"


@check_each(
    "k8s-hf-offline", each_pod("Offline", "every container with a GPU is set to stay offline, and none holds a key")
)
def k8s_hf_offline(estate: Estate, _policy: Policy, pod: Pod) -> Iterator[CheckResult]:
    """The switches are required in model servers; a key fails in any container."""
    maps = config_maps(estate)
    model_servers = _model_servers(pod)
    keys, missing, unseen = set(), set(), set()
    for container in pod.containers:
        env = {variable.name: variable for variable in maps.variables(pod, container)}
        keys |= {variable.name for variable in env.values() if variable.name in HUB_KEYS and variable.is_set}
        if container in model_servers:
            off, unclear = _not_offline(container, env)
            missing |= set(off)
            unseen |= set(unclear)
    if keys:
        yield fails(
            pod.workload, "HubKey", f"its pods hold a key to a model hub: {_listed(keys)}", pod, blames=CONTAINERS
        )
    unread = maps.unread(pod) if pod.wants_gpu else ()
    if unread and not keys:
        yield unknown(pod.workload, "ConfigMapsNotSeen", "it takes variables from ConfigMaps", pod, *unread)
    elif missing:
        yield fails(
            pod.workload,
            "NotOffline",
            f"its model server is not set to stay offline: {_listed(missing)}",
            pod,
            blames=CONTAINERS,
        )
    elif unseen or (pod.wants_gpu and maps.beyond(pod)):
        message = f"{_listed(unseen or {'variables'})}: set from elsewhere, with a value that the audit does not read"
        yield unknown(pod.workload, "OfflineNotSeen", message, pod)


def _model_servers(pod: Pod) -> list[Container]:
    """Its containers with a GPU. An init container is one only where no later container has a GPU.

    Otherwise it prepares the pod for the model server, as the one that checks the GPUs does.
    """
    return [container for container in pod.servers if container.wants_gpu] or [
        container for container in pod.containers if container.wants_gpu
    ]


def _not_offline(container: Container, env: Mapping[str, EnvVar]) -> tuple[list[str], list[str]]:
    """Switches that are off, and switches whose value is not visible."""
    switches = (*OFFLINE, NIM) if _is_nim(container, env) else OFFLINE
    off = [name for name in switches if name in env and not env[name].value_from and not _is_on(env[name])]
    absent = [name for name in switches if name not in env]
    unclear = [name for name in switches if name in env and env[name].value_from]
    return (
        (off, unclear + absent)
        if any(source.secret_ref for source in container.env_from or ())
        else (off + absent, unclear)
    )


def _is_on(variable: EnvVar) -> bool:
    value = variable.value or ""
    return value == "1" if variable.name == NIM else value.upper() in YES


def _is_nim(container: Container, env: Mapping[str, EnvVar]) -> bool:
    return "/nim/" in container.image or any(name.startswith("NIM_") for name in env)


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))


@check_each("k8s-model-token", each_pod("NoToken", "no model server has a token"))
def k8s_model_token(_estate: Estate, _policy: Policy, pod: Pod) -> Iterator[CheckResult]:
    """No pod with a GPU has a token for a service outside, or a Secret with the name of such a key."""
    if not pod.wants_gpu:
        return
    volumes = tuple(pod.spec.volumes or ())
    keys = tuple(dict.fromkeys(name for volume in volumes for name in _secrets(volume) if _KEY.search(name)))
    audiences = tuple(dict.fromkeys(name for volume in volumes for name in _audiences(volume)))
    foreign = tuple(audience for audience in audiences if audience != API)
    if pod.labels.get(WORKLOAD_IDENTITY) == "true" and not foreign:
        foreign = ("Microsoft Entra ID",)
    if keys:
        yield fails(
            pod.workload,
            "KeyMounted",
            f"its model server has the Secret {', '.join(keys)} as files",
            pod,
            blames=(VOLUMES,),
        )
    if foreign:
        message = f"its model server has a token of its service account for {', '.join(foreign)}"
        yield fails(
            pod.workload,
            "TokenMounted",
            message,
            pod,
            paths=(path_of(hops.kubernetes(pod.workload), foreign[0]),),
            blames=(VOLUMES, LABELS),
        )
    elif API in audiences:
        message = f"its model server has a token for {API}: it has all rights of its service account"
        yield fails(pod.workload, "ApiTokenMounted", message, pod, severity=Severity.LOW, blames=(VOLUMES,))


def _secrets(volume: Volume) -> Iterator[str]:
    if volume.secret is not None and volume.secret.secret_name:
        yield volume.secret.secret_name
    for source in (volume.projected.sources if volume.projected is not None else None) or ():
        if source.secret is not None and source.secret.name:
            yield source.secret.name


def _audiences(volume: Volume) -> Iterator[str]:
    for source in (volume.projected.sources if volume.projected is not None else None) or ():
        if source.service_account_token is not None:
            yield source.service_account_token.audience or API

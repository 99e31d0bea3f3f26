"""Model servers are configured to stay offline, and hold no key to a model hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.api.field_managers import CONTAINERS
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.environment import HUB_KEYS, EnvVar
from hermetic.audit.estate.kubernetes.pods import Container, Pod
from hermetic.audit.evaluation import Judgement, cannot_say, fails
from hermetic.audit.policy import Policy
from hermetic.audit.variables import config_maps
from hermetic.audit.workloads import each_pod

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
NIM = "NIM_DISABLE_MODEL_DOWNLOAD"
# Values that the hub's libraries take for true; a NIM accepts only "1".
YES = frozenset({"1", "ON", "YES", "TRUE"})


@check_each(
    "k8s-hf-offline", each_pod("Offline", "every container with a GPU is told to stay offline, and none holds a key")
)
def k8s_hf_offline(estate: Estate, _policy: Policy, pod: Pod) -> Iterator[Judgement]:
    """The switches are required in containers with a GPU; a key fails in any container."""
    maps = config_maps(estate)
    keys, missing, unseen = set(), set(), set()
    for container in pod.containers:
        env = {one.name: one for one in maps.variables(pod, container)}
        keys |= {one.name for one in env.values() if one.name in HUB_KEYS and one.is_set}
        if container.wants_gpu:
            off, unclear = _not_offline(container, env)
            missing |= set(off)
            unseen |= set(unclear)
    if keys:
        yield fails(
            pod.workload, "HubKey", f"its pods hold a key to a model hub: {_listed(keys)}", pod, blames=CONTAINERS
        )
    unread = maps.unread(pod) if pod.wants_gpu else ()
    if unread and not keys:
        yield cannot_say(pod.workload, "ConfigMapsNotSeen", "it takes variables from ConfigMaps", pod, *unread)
    elif missing:
        yield fails(
            pod.workload,
            "NotOffline",
            f"its model server is not told to stay offline: {_listed(missing)}",
            pod,
            blames=CONTAINERS,
        )
    elif unseen or (pod.wants_gpu and maps.beyond(pod)):
        message = f"{_listed(unseen or {'variables'})}: set from elsewhere, with a value that the audit does not read"
        yield cannot_say(pod.workload, "OfflineNotSeen", message, pod)


def _not_offline(container: Container, env: Mapping[str, EnvVar]) -> tuple[list[str], list[str]]:
    """Switches that are off, and switches whose value is not visible."""
    wanted = (*OFFLINE, NIM) if _is_nim(container, env) else OFFLINE
    off = [name for name in wanted if name in env and not env[name].value_from and not _is_on(env[name])]
    absent = [name for name in wanted if name not in env]
    unclear = [name for name in wanted if name in env and env[name].value_from]
    return (
        (off, unclear + absent) if any(one.secret_ref for one in container.env_from or ()) else (off + absent, unclear)
    )


def _is_on(variable: EnvVar) -> bool:
    value = variable.value or ""
    return value == "1" if variable.name == NIM else value.upper() in YES


def _is_nim(container: Container, env: Mapping[str, EnvVar]) -> bool:
    return "/nim/" in container.image or any(name.startswith("NIM_") for name in env)


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names))

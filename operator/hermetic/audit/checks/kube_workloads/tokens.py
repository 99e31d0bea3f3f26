"""Tokens that are mounted into model servers, which a compromised server could use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermetic.api.field_managers import LABELS, VOLUMES
from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.volumes import Volume
from hermetic.audit.evaluation import Judgement, fails
from hermetic.audit.findings import Severity
from hermetic.audit.hops import path_of
from hermetic.audit.policy import Policy
from hermetic.audit.workloads import each_pod

WORKLOAD_IDENTITY = "azure.workload.identity/use"
# Common names of Secrets with the key of a model hub, a registry or a tracker.
_KEY = re.compile(
    r"(^|[-._])(hf|hugging-?face|hub|ngc|nvcr|nvidia-api|modelscope|kaggle|wandb|token|tokens|api-?key|pat|dockerconfig"
    r"|registry|pull)([-._]|$)",
    re.IGNORECASE,
)
API = "the API server"


@check_each("k8s-model-token", each_pod("NoToken", "no model server has a token"))
def k8s_model_token(_estate: Estate, _policy: Policy, pod: Pod) -> Iterator[Judgement]:
    """No pod with a GPU has a token for a service outside, or a Secret with the name of such a key."""
    if not pod.wants_gpu:
        return
    volumes = tuple(pod.spec.volumes or ())
    keys = tuple(dict.fromkeys(name for one in volumes for name in _secrets(one) if _KEY.search(name)))
    audiences = tuple(dict.fromkeys(name for one in volumes for name in _audiences(one)))
    foreign = tuple(one for one in audiences if one != API)
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
        message = f"its model server has a token for {API}: what its service account may do, it may do"
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

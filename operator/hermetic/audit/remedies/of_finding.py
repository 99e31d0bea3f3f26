"""The remedy of one finding, from the page of its check or from its result, with names of the estate filled in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from hermetic.audit.estate.arm_ids import group_of, name_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.estate import Estate
from hermetic.audit.remedies.filling import Fill, filled, values_of
from hermetic.audit.remedies.steps import RemedyStep, steps_of, text_of
from hermetic.errors import FactDamaged

_OBJECT = re.compile(
    r"(?:[a-z0-9.-]+/)?v[a-z0-9]+/(?P<kind>[A-Z][A-Za-z0-9]*) (?P<namespace>[a-z0-9.-]+/)?[a-z0-9.:-]+"
)
# The template of a Job is immutable: kubernetes.io/docs/concepts/workloads/controllers/job.
_WITH_TEMPLATE = frozenset({"CronJob", "DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
_OF_A_POD = """A pod without a controller cannot be changed while it runs: save it, change the file, delete the pod, and
create it again from the file.
kubectl --namespace NAMESPACE get pod NAME --output yaml
Warning: the pod serves nothing until it exists again.
kubectl --namespace NAMESPACE delete pod NAME
"""
_OF_A_JOB = """The template of a Job cannot be changed: save it, change the file, delete the Job, and create it again.
kubectl --namespace NAMESPACE get job NAME --output yaml
Warning: its pods end.
kubectl --namespace NAMESPACE delete job NAME
"""
_OF_A_TEMPLATE = """Its pods are made again with the change.
kubectl --namespace NAMESPACE edit KIND NAME
"""
_IN_A_NAMESPACE = "kubectl --namespace NAMESPACE "

IN_THE_NODE_GROUP = (
    "This resource lies in the node resource group, which AKS manages. With node resource group lockdown Azure refuses "
    "changes made there by hand, and without it AKS can undo them: change the cluster or the Service that asked for "
    "it, or use a virtual network of your own."
)


@dataclass(frozen=True, slots=True)
class RemedyContext:
    """What every remedy may name: the cluster's id, and its node resource group ("" if not known)."""

    cluster: str
    node_group: str = ""


def surroundings_of(estate: Estate) -> RemedyContext:
    """The context of an estate; reads the cluster only, as every audit of Azure does."""
    if "azure" not in estate.sources:
        return RemedyContext(estate.cluster)
    cluster = estate.one(ManagedCluster, estate.cluster).value
    try:
        return RemedyContext(estate.cluster, (cluster.node_resource_group or "") if cluster is not None else "")
    except FactDamaged:
        return RemedyContext(estate.cluster)


def filled_remedy(text: str, in_node_group: str, resource: str, around: RemedyContext, fill: Fill | None = None) -> str:
    """The remedy's text with its placeholders filled. Where a command would change the node resource group, which AKS
    manages, a note is added, and the steps of `in_node_group`, if any, replace it.
    """
    values: Fill = {**values_of(resource, around.cluster, around.node_group), **(fill or {})}
    steps = filled(_with_object_steps(steps_of(_for_scope(text, resource)), resource), values)
    if around.node_group and any(_changes(command, around.node_group) for step in steps for command in step.commands):
        first, *other_steps = filled(steps_of(in_node_group), values) or steps
        steps = (
            RemedyStep(f"{IN_THE_NODE_GROUP} {first.explanation}".strip(), first.warning, first.commands),
            *other_steps,
        )
    return text_of(steps)


def _changes(command: str, group: str) -> bool:
    """Whether the az command would change something in the group; `az aks` goes through AKS and is not counted."""
    arguments = shlex.split(command)
    verb = next((before for before, word in pairwise(arguments) if word.startswith("-")), "")
    if arguments[:1] != ["az"] or arguments[1:2] == ["aks"] or verb.startswith(("show", "list")):
        return False
    named = {name_of(group_of(word)).lower() for word in arguments}
    named |= {word.lower() for option, word in pairwise(arguments) if option == "--resource-group"}
    return group.lower() in named


def _with_object_steps(steps: Iterable[RemedyStep], resource: str) -> tuple[RemedyStep, ...]:
    """The steps; where none has a command, those for the finding's workload as well."""
    written, described = tuple(steps), _OBJECT.fullmatch(resource)
    if described is None or any(step.commands for step in written):
        return written
    kind = described["kind"]
    if kind in _WITH_TEMPLATE:
        return (*written, *steps_of(_OF_A_TEMPLATE))
    return (*written, *steps_of({"Pod": _OF_A_POD, "Job": _OF_A_JOB}.get(kind, "")))


def _for_scope(text: str, resource: str) -> str:
    """The remedy without the option of a namespace, for an object of the whole cluster."""
    described = _OBJECT.fullmatch(resource)
    is_of_whole_cluster = described is not None and not described["namespace"]
    return text.replace(_IN_A_NAMESPACE, "kubectl ") if is_of_whole_cluster else text

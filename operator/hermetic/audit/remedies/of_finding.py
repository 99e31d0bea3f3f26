"""The remedy of one finding, from the page of its check or from its result, with names of the estate filled in."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from itertools import pairwise

from hermetic.audit.estate.arm_ids import group_of, name_of
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.estate import Estate
from hermetic.audit.remedies.filling import Fill, filled, values_of
from hermetic.audit.remedies.of_object import for_scope, with_object_steps
from hermetic.audit.remedies.steps import RemedyStep, steps_of, text_of
from hermetic.errors import FactDamaged

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
    steps = filled(with_object_steps(steps_of(for_scope(text, resource)), resource), values)
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

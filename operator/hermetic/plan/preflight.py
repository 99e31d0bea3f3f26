"""Whether pods check their GPUs before the engine starts: what the spec asks for, and the configuration's minimum.

A template from before the check keeps its pods: an upgrade restarts none, and the next change of the pods adds it.
"""

from __future__ import annotations

from hermetic.api.configuration import Configuration
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.preflight import PREFLIGHT_POLICIES, Preflight, PreflightPolicy
from hermetic.objects.accelerator_checks import AcceleratorChecks, is_checked
from hermetic.plan.snapshot import ClusterSnapshot


def preflight_policy(spec: ModelDeploymentSpec, configuration: Configuration) -> PreflightPolicy:
    """The policy in effect: a deployment may ask for more than the minimum, never for less."""
    policy = (spec.accelerator.preflight or Preflight()).policy
    return PREFLIGHT_POLICIES.strictest(policy, configuration.preflight.minimum_policy)


def accelerator_checks(spec: ModelDeploymentSpec, configuration: Configuration) -> AcceleratorChecks | None:
    """What checks the GPUs of the next pods; None where they are not checked."""
    policy = preflight_policy(spec, configuration)
    return None if policy == "Off" else AcceleratorChecks(policy)


def may_wait_for_a_change(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> bool:
    """Whether a live template without the check may stay as it is, because the check is only the default."""
    template = snapshot.workload.template
    is_default = spec.accelerator.preflight is None and preflight_policy(spec, snapshot.policy) == "Warn"
    return is_default and bool(template) and not is_checked(template)

"""Whether the engine gets the compile caches that are staged with the weights: the condition CachesUsed."""

from __future__ import annotations

from hermetic.api.condition_updates import ConditionUpdate
from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.engines.compile_caches import why_not_used
from hermetic.engines.registry import engine_of

_KIND = ConditionType.CACHES_USED
NOT_VERIFIED = (
    "they are code, and these weights are not verified: set `weights.integrity` with the policy Require, which needs "
    "`integrity.verifiers` in the operator's configuration"
)


def cache_use(spec: ModelDeploymentSpec, *, required: bool) -> ConditionUpdate | None:
    """The condition for a spec that lists compile caches; None for one that lists none.

    `required`: no engine starts on weights that do not match. Compiled kernels are code.
    """
    staged = spec.weights.caches
    if not staged:
        return None
    key = engine_of(spec).cache_key(spec)
    clause = why_not_used(staged, key)
    if not clause and spec.weights.is_mounted and not required:
        clause = NOT_VERIFIED
    if clause or isinstance(key, str):
        message = f"the staged compile caches are ignored, and the engine compiles its own: {clause}"
        return ConditionUpdate(_KIND, "False", Reason.CACHES_IGNORED, message)
    message = f"the compile caches '{key.folder}' are linked into the engine's cache"
    return ConditionUpdate(_KIND, "True", Reason.CACHES_MATCH, message)

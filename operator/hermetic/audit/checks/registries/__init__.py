"""Table F, registries: who may pull, push and fetch there, and what leaves them by themselves."""

from __future__ import annotations

from hermetic.audit.checks.family import family
from hermetic.audit.checks.registries import access, data_export, identities, previews, tokens

CHECKS = family(
    __package__ or "",
    {
        "acr-public": access.public,
        "acr-trusted-bypass": access.trusted_bypass,
        "acr-task-bypass": access.task_bypass,
        "acr-export-policy": access.export_policy,
        "acr-anonymous": access.anonymous,
        "acr-admin": access.admin,
        "acr-tokens": tokens.tokens,
        "acr-arm-audience": access.arm_audience,
        "acr-push-identity": identities.push,
        "acr-cache-wildcard": data_export.cache_rules,
        "acr-writable-cache": previews.writable_caches,
        "acr-endpoints": previews.endpoints,
        "acr-pipelines": previews.pipelines,
        "acr-tasks": previews.tasks,
        "acr-connected-registry": data_export.connected_registries,
        "acr-webhooks": data_export.webhooks,
        "acr-replications": data_export.replications,
    },
)

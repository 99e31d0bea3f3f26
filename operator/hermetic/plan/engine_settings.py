"""The gate that decides whether the engine may be given the variables and arguments of the spec."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reserved_flags import REMOTE_CODE
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.strictness import covers
from hermetic.engines.protocol import Extra, Refused
from hermetic.engines.registry import engine_of
from hermetic.plan.gate_results import HOLDS, Blocks, Verdict
from hermetic.plan.snapshot import ClusterSnapshot

SHOWN = 3


def engine_settings_are_allowed(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> Verdict:
    """Every variable and flag is on the reviewed list of this engine, and no value names an address or code.

    Code beside the weights runs only where the operator's configuration allows it to the namespace.
    """
    engine, namespace = spec.engine.member, snapshot.owner.namespace
    if spec.engine.runs_remote_code and not any(
        covers(allowed.namespaces, namespace) for allowed in snapshot.policy.remote_code
    ):
        return Blocks(
            SpecReason.ENGINE_SETTING_NOT_ALLOWED,
            f"`engine.{engine}.extraArgs` holds '{REMOTE_CODE}', which runs the code beside the weights. A platform "
            f"team that knows who builds the image can allow it in the operator's configuration: "
            f"`remoteCode: [{{namespaces: [{namespace}]}}]`",
        )
    refused = list(itertools.islice(engine_of(spec).refused_settings(spec, _extra(engine, snapshot)), SHOWN + 1))
    if not refused:
        return HOLDS
    clauses = "; ".join(_in_words(refusal, engine) for refusal in refused[:SHOWN])
    more = "; and more" if len(refused) > SHOWN else ""
    return Blocks(SpecReason.ENGINE_SETTING_NOT_ALLOWED, f"{clauses}{more}{_line(refused, engine, namespace)}")


def _extra(engine: str, snapshot: ClusterSnapshot) -> Extra:
    """What the operator's configuration allows this namespace in addition to the reviewed lists."""
    counted = [
        allowed
        for allowed in snapshot.policy.engine_settings
        if allowed.engine == engine and covers(allowed.namespaces, snapshot.owner.namespace)
    ]
    return Extra(
        variables=frozenset(name for allowed in counted for name in allowed.variables),
        arguments=frozenset(name for allowed in counted for name in allowed.arguments),
    )


def _in_words(refusal: Refused, engine: str) -> str:
    field = f"`engine.{engine}.{'extraEnv' if refusal.field == 'variable' else 'extraArgs'}`"
    if refusal.kind == "value":
        return f"{field}: the value of '{refusal.name}' {refusal.why}"
    if refusal.kind == "unread":
        return f"{field} holds '{refusal.name}', {refusal.why}"
    meant = f"; did you mean '{refusal.near}'?" if refusal.near else "; remove it"
    return f"{field} holds '{refusal.name[:128]}', which is not allowed: {refusal.why}{meant}"


def _line(refused: Iterable[Refused], engine: str, namespace: str) -> str:
    """The configuration to add, for names that the platform team may decide about."""
    names = {refusal.field: refusal.name for refusal in refused if refusal.kind == "name"}
    if not names:
        return ""
    named = ", ".join(f"{'variables' if field == 'variable' else 'arguments'}: [{names[field]}]" for field in names)
    return (
        f". A platform team that has read what it does can allow it in the operator's configuration, under "
        f"`engineSettings`: - {{engine: {engine}, {named}, namespaces: [{namespace}]}}"
    )

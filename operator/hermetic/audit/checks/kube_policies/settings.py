"""Settings with which a policy engine enforces nothing, or not what the policies say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.api.field_managers import DATA, SPEC, Place
from hermetic.audit import hops
from hermetic.audit.checks.kube_policies.enforcement import CALICO, CILIUM
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.calls import ConfigMap
from hermetic.audit.estate.kubernetes.engine_settings import (
    CILIUM_CONFIG,
    LABEL_FILTERS_OF_CILIUM,
    POLICY_FILES_OF_CILIUM,
    SETTINGS_READ,
    SWITCHES_OF_CILIUM,
    CiliumNodeConfig,
    FelixConfiguration,
)
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, reference_to
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation import CheckResult, fails, unknown
from hermetic.audit.findings import Severity
from hermetic.audit.hops import NODE, path_of
from hermetic.audit.kube_findings import everywhere, objections
from hermetic.errors import FactDamaged

_TRUE, _FALSE = frozenset({"1", "t", "true"}), frozenset({"0", "f", "false"})
# Go's spellings of truth values (strconv.ParseBool), for switches; the modes of enable-policy by their names.
_ENFORCING = {"enable-policy": frozenset({"default", "always"}), "policy-audit-mode": _FALSE}
_NOT_ENFORCING = {"enable-policy": frozenset({"never"}), "policy-audit-mode": _TRUE, "enable-k8s-networkpolicy": _FALSE}
_CILIUM_REMEDY = """
Take the setting out, or set enable-policy to default and policy-audit-mode to false; then restart the agents.
Warning: policies that had no effect take effect.
kubectl --namespace kube-system rollout restart daemonset cilium
"""


def evaluate_settings(
    estate: Estate, engines: frozenset[str] | None
) -> tuple[list[CheckResult], tuple[Observation, ...]]:
    """The results about the settings of these engines (None: not known), and the lists that they rest on."""
    found: list[CheckResult] = []
    observations: list[Observation] = []
    if engines is None or CILIUM in engines:
        configs, maps = everywhere(estate, CiliumNodeConfig), _maps(estate)
        found += [*objections(maps, _evaluate_map), *objections(configs, _evaluate_node_config)]
        observations += [configs, maps]
    if engines is None or CALICO in engines:
        felix = everywhere(estate, FelixConfiguration)
        found += objections(felix, _evaluate_felix)
        observations.append(felix)
    return found, tuple(observations)


def has_a_label_filter(estate: Estate) -> bool:
    """Whether a setting changes which labels of pods Cilium sees, as far as settings can be read.

    Settings that cannot be read make k8s-policy-engine-live Unknown.
    """
    maps, configs = _maps(estate), everywhere(estate, CiliumNodeConfig)
    try:
        some = (*(_settings(one) for one in maps), *(one.spec.defaults or {} for one in configs))
    except FactDamaged:
        return False
    return any(one.get(name) for one in some for name in LABEL_FILTERS_OF_CILIUM)


def _maps(estate: Estate) -> Listing[ConfigMap]:
    wanted = reference_to(ConfigMap, *CILIUM_CONFIG)
    return everywhere(estate, ConfigMap).where(lambda one: one.id == wanted)


def _settings(one: ConfigMap) -> Mapping[str, str]:
    _ = one.data  # raises where it could not be read: nothing was made of it then
    return one.engine_settings or {}


def _evaluate_map(one: ConfigMap) -> Iterator[CheckResult]:
    yield from _evaluate_cilium(one, _settings(one), DATA)


def _evaluate_node_config(one: CiliumNodeConfig) -> Iterator[CheckResult]:
    settings = one.spec.defaults or {}
    yield from _evaluate_cilium(one, settings, SPEC)
    if others := sorted(settings.keys() - SETTINGS_READ):
        message = f"it sets {', '.join(others[:3])} for some nodes, and what that does to policies is not evaluated"
        yield unknown(one.id, "NodeSettingsNotKnown", message, one, severity=Severity.MEDIUM)


def _evaluate_cilium(one: KubernetesObject, settings: Mapping[str, str], place: Place) -> Iterator[CheckResult]:
    for name in SWITCHES_OF_CILIUM:
        value = settings.get(name, "").strip().lower()
        if value in _NOT_ENFORCING.get(name, ()):
            yield _enforces_nothing(one, f"{name}: {value}", place, _CILIUM_REMEDY)
        elif value and value not in _ENFORCING.get(name, _TRUE):
            yield unknown(one.id, "EnforcementUnknown", f"{name} is {value}: some policies may have no effect", one)
    if settings.get(POLICY_FILES_OF_CILIUM):
        message = f"{POLICY_FILES_OF_CILIUM} names a folder of policies, which the API server does not show"
        yield unknown(one.id, "PolicyFilesNotRead", message, one)


def _enforces_nothing(one: KubernetesObject, setting: str, place: Place, remedy: str = "") -> CheckResult:
    message = f"{setting}: the engine runs and enforces no NetworkPolicy where this holds"
    path = path_of(hops.pod("pod (no policy is enforced)"), NODE, "all that the network lets through")
    return fails(one.id, "PolicyNotEnforced", message, one, paths=(path,), remedy=remedy, blames=(place,))


def _evaluate_felix(one: FelixConfiguration) -> Iterator[CheckResult]:
    spec = one.spec
    override = spec.drop_action_override or ""
    if "accept" in override.lower():
        yield _enforces_nothing(one, f"dropActionOverride: {override}", SPEC)
    if spec.interface_prefix:
        message = (
            f"interfacePrefix is {spec.interface_prefix}: no policy holds for a pod whose interface has another name"
        )
        yield unknown(one.id, "InterfacesUnknown", message, one)
    if (spec.chain_insert_mode or "insert").lower() != "insert":
        message = f"chainInsertMode is {spec.chain_insert_mode}: rules of the node come before the policies"
        yield unknown(one.id, "OtherRulesFirst", message, one)

"""Settings with which a policy engine enforces nothing, or not what the policies say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermetic.api.field_managers import DATA, SPEC, Place
from hermetic.audit.checks.kube_policies.enforcement import CALICO, CILIUM
from hermetic.audit.cluster.objects import everywhere
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
from hermetic.audit.evaluation.each_object import objections
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import NODE, path_of
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
    results: list[CheckResult] = []
    observations: list[Observation] = []
    if engines is None or CILIUM in engines:
        configs, maps = _node_configs(estate), _maps(estate)
        results += [*objections(maps, _evaluate_map), *objections(configs, _evaluate_node_config)]
        observations += [configs, maps]
    if engines is None or CALICO in engines:
        felix = everywhere(estate, FelixConfiguration)
        results += objections(felix, _evaluate_felix)
        observations.append(felix)
    return results, tuple(observations)


def has_a_label_filter(estate: Estate) -> bool:
    """Whether a setting changes which labels of pods Cilium sees, as far as settings can be read.

    Settings that cannot be read make k8s-policy-engine-live Unknown.
    """
    maps, configs = _maps(estate), _node_configs(estate)
    try:
        some = (*(_settings(config_map) for config_map in maps), *(config.spec.defaults or {} for config in configs))
    except FactDamaged:
        return False
    return any(settings.get(name) for settings in some for name in LABEL_FILTERS_OF_CILIUM)


def _maps(estate: Estate) -> Listing[ConfigMap]:
    reference = reference_to(ConfigMap, *CILIUM_CONFIG)
    return everywhere(estate, ConfigMap).where(lambda config_map: config_map.id == reference)


def _node_configs(estate: Estate) -> Listing[CiliumNodeConfig]:
    """Those that the agents read: of their own namespace alone.

    Source: docs.cilium.io, Per-node configuration; cilium/cilium, cilium-dbg/cmd/build-config.go.
    """
    return everywhere(estate, CiliumNodeConfig).where(lambda config: config.namespace == CILIUM_CONFIG[0])


def _settings(config_map: ConfigMap) -> Mapping[str, str]:
    _ = config_map.data  # raises where it could not be read: nothing was made of it then
    return config_map.engine_settings or {}


def _evaluate_map(config_map: ConfigMap) -> Iterator[CheckResult]:
    yield from _evaluate_cilium(config_map, _settings(config_map), DATA)


def _evaluate_node_config(node_config: CiliumNodeConfig) -> Iterator[CheckResult]:
    settings = node_config.spec.defaults or {}
    yield from _evaluate_cilium(node_config, settings, SPEC)
    if other_settings := sorted(settings.keys() - SETTINGS_READ):
        message = (
            f"it sets {', '.join(other_settings[:3])} for some nodes, and what that does to policies is not evaluated"
        )
        yield unknown(node_config.id, "NodeSettingsNotKnown", message, node_config, severity=Severity.MEDIUM)


def _evaluate_cilium(
    kubernetes_object: KubernetesObject, settings: Mapping[str, str], field_path: Place
) -> Iterator[CheckResult]:
    for name in SWITCHES_OF_CILIUM:
        value = settings.get(name, "").strip().lower()
        if value in _NOT_ENFORCING.get(name, ()):
            yield _enforces_nothing(kubernetes_object, f"{name}: {value}", field_path, _CILIUM_REMEDY)
        elif value and value not in _ENFORCING.get(name, _TRUE):
            yield unknown(
                kubernetes_object.id,
                "EnforcementUnknown",
                f"{name} is {value}: some policies may have no effect",
                kubernetes_object,
            )
    if settings.get(POLICY_FILES_OF_CILIUM):
        message = f"{POLICY_FILES_OF_CILIUM} names a folder of policies, which the API server does not show"
        yield unknown(kubernetes_object.id, "PolicyFilesNotRead", message, kubernetes_object)


def _enforces_nothing(
    kubernetes_object: KubernetesObject, setting: str, field_path: Place, remedy: str = ""
) -> CheckResult:
    message = f"{setting}: the engine runs and enforces no NetworkPolicy where this holds"
    path = path_of(hops.pod("pod (no policy is enforced)"), NODE, "all that the network lets through")
    return fails(
        kubernetes_object.id,
        "PolicyNotEnforced",
        message,
        kubernetes_object,
        paths=(path,),
        remedy=remedy,
        blames=(field_path,),
    )


def _evaluate_felix(configuration: FelixConfiguration) -> Iterator[CheckResult]:
    spec = configuration.spec
    override = spec.drop_action_override or ""
    if "accept" in override.lower():
        yield _enforces_nothing(configuration, f"dropActionOverride: {override}", SPEC)
    if spec.interface_prefix:
        message = (
            f"interfacePrefix is {spec.interface_prefix}: no policy holds for a pod whose interface has another name"
        )
        yield unknown(configuration.id, "InterfacesUnknown", message, configuration)
    if (spec.chain_insert_mode or "insert").lower() != "insert":
        message = f"chainInsertMode is {spec.chain_insert_mode}: rules of the node come before the policies"
        yield unknown(configuration.id, "OtherRulesFirst", message, configuration)

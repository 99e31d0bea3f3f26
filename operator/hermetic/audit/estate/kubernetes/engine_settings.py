"""Settings of the policy engines: for all nodes, for some of them, and what is kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.environment import NOT_KEPT
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed, api_object
from hermetic.audit.estate.resource import Part

CILIUM_CONFIG = ("kube-system", "cilium-config")
"""Namespace and name of the ConfigMap from which Cilium's agents read their settings."""

# docs.cilium.io, "cilium-agent" (command reference).
SWITCHES_OF_CILIUM = (
    "enable-policy", "policy-audit-mode", "enable-k8s-networkpolicy", "enable-cilium-network-policy",
    "enable-cilium-clusterwide-network-policy",
)  # fmt: skip
LABEL_FILTERS_OF_CILIUM = ("labels", "label-prefix-file")
POLICY_FILES_OF_CILIUM = "static-cnp-path"
SETTINGS_READ = frozenset((*SWITCHES_OF_CILIUM, *LABEL_FILTERS_OF_CILIUM, POLICY_FILES_OF_CILIUM))
"""The settings of Cilium whose values are kept."""
LONGEST = 253


def kept_settings(data: Mapping[Any, Any], *, with_names: bool = False) -> dict[str, Any]:
    """The settings that decide what is enforced. `with_names`: of all others that they are set, without the value."""
    values = {str(key): _kept(value) for key, value in data.items() if str(key) in SETTINGS_READ}
    other_settings = {str(key): NOT_KEPT for key in data if with_names and str(key) not in SETTINGS_READ}
    return {**other_settings, **values}


def _kept(value: Any) -> Any:
    # A value that is no text stays: a check must report it. A long one is none of the words that a switch knows.
    return NOT_KEPT if isinstance(value, str) and len(value) > LONGEST else value


class CiliumNodeConfigSpec(Trimmed):
    """`defaults` come before those of the ConfigMap, on the nodes that it selects."""

    defaults: FreeMap[str] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep the names of all settings, and the values of those that a check reads."""
        defaults = fields.get("defaults")
        return {"defaults": kept_settings(defaults, with_names=True)} if isinstance(defaults, Mapping) else fields


@api_object("cilium.io/v2/ciliumnodeconfigs", "CiliumNodeConfig", also_served_as=("v2alpha1",))
class CiliumNodeConfig(KubernetesObject):
    """docs.cilium.io, "Per-node configuration"."""

    spec: CiliumNodeConfigSpec = CiliumNodeConfigSpec()


class FelixSpec(Part):
    """`interface_prefix`: only interfaces with it are under policy. `drop_action_override` is Calico Enterprise's."""

    interface_prefix: str | None = None
    chain_insert_mode: str | None = None
    drop_action_override: str | None = None


@api_object("crd.projectcalico.org/v1/felixconfigurations", "FelixConfiguration", namespaced=False)
class FelixConfiguration(KubernetesObject):
    """Settings of Calico's agent: `default` for all nodes, `node.NAME` for one."""

    spec: FelixSpec = FelixSpec()

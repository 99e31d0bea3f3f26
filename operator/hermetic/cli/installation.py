"""The rights and admission policies of one installation, generated from those of `manifests/` and its configuration.

`manifests/rbac` and `manifests/policies` are written for the names of a default installation. Here names are replaced,
and the cluster-wide binding is replaced by one for each watched namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import hermetic
from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import LOADER
from hermetic.cli.allowed import NAME as ALLOWED
from hermetic.cli.allowed import allowed

Manifest = dict[str, Any]
PACKAGE = Path(hermetic.__file__).parent
NAMESPACE, ACCOUNT, PROBES = "hermetic-system", "hermetic-operator", "hermetic-probe"
LABELS = {"app.kubernetes.io/name": "hermetic", "app.kubernetes.io/part-of": "hermetic"}
MODELS, EVENTS, ROUTES = "hermetic-operator-models", "hermetic-operator-events", "hermetic-operator-routes"
# Where the API server requires Events about cluster-scoped objects, such as the EgressAudit.
EVENTS_OF_THE_CLUSTER = "default"


@dataclass(frozen=True, slots=True)
class Installation:
    """The operator's account and its namespaces: `account` is a ServiceAccount in the namespace of the Lease.

    With `limited` its account may use only the registries and shares of the configuration.
    """

    configuration: Configuration
    account: str = ACCOUNT
    limited: bool = True

    @property
    def namespace(self) -> str:
        """The operator's own namespace."""
        return self.configuration.lease.namespace

    @property
    def user(self) -> str:
        """The operator's user name at the API server."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"


def rights(installation: Installation) -> list[Manifest]:
    """Namespaces, ServiceAccount, roles, bindings and admission policies, in the order in which to apply them."""
    gateways = written("gateways") if installation.configuration.gateways else ()
    granted = [_named(manifest, installation) for manifest in (*written("rbac"), *gateways)]
    policies = [_named(manifest, installation) for manifest in written("policies")]
    if installation.limited:
        policies = [allowed(installation.configuration), *map(_without_exception, policies)]
    return [*_bound(granted, installation), *policies]


@cache
def written(folder: str) -> tuple[Manifest, ...]:
    """The documents of a folder of `manifests/`, in the order of its kustomization. Callers must not change them."""
    root = _manifests() / folder
    (kustomization,) = _documents(root / "kustomization.yaml")
    return tuple(manifest for name in kustomization["resources"] for manifest in _documents(root / name))


def _documents(file: Path) -> list[Manifest]:
    return list(yaml.load_all(file.read_text(encoding="utf-8"), Loader=LOADER))


def _manifests() -> Path:
    """The folder beside the code in an installed package, or at the root of a checkout."""
    installed = PACKAGE / "manifests"
    return installed if installed.is_dir() else PACKAGE.parents[1] / "manifests"


def _named(manifest: Manifest, installation: Installation) -> Manifest:
    renamed: Manifest = _in_every_text(manifest, _renaming(installation))
    if manifest["kind"] == "ServiceAccount":
        renamed["metadata"]["name"] = installation.account
    for subject in renamed.get("subjects", ()):
        if subject["kind"] == "ServiceAccount":
            subject["name"] = installation.account
    return renamed


def _renaming(installation: Installation) -> Callable[[str], str]:
    names = {
        f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}": installation.user,
        NAMESPACE: installation.namespace,
        PROBES: installation.configuration.probe_namespace,
    }
    # A whole word: 'hermetic-probe' must not match in 'hermetic-probe-image'.
    anyone = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, names))})(?![\w-])")
    return lambda text: anyone.sub(lambda match: names[match[1]], text)


def _in_every_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _in_every_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_every_text(item, change) for item in value]
    return value


def _bound(manifests: list[Manifest], installation: Installation) -> Iterator[Manifest]:
    """With watched namespaces, binds the roles for models in each of them instead of in the cluster."""
    namespaces = installation.configuration.watch_namespaces
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        if not namespaces or manifest["kind"] != "ClusterRoleBinding" or name not in (MODELS, ROUTES):
            yield manifest
            continue
        subjects = manifest["subjects"]
        for namespace in namespaces:
            yield _role_binding(namespace, name, "ClusterRole", subjects)
        if name == MODELS and EVENTS_OF_THE_CLUSTER not in namespaces:
            yield _role_of_events()
            yield _role_binding(EVENTS_OF_THE_CLUSTER, EVENTS, "Role", subjects)


def _without_exception(manifest: Manifest) -> Manifest:
    """The binding, changed to admit nothing while the ConfigMap 'hermetic-allowed' is missing."""
    parameter = manifest["spec"].get("paramRef", {})
    if parameter.get("name") == ALLOWED and "Deny" in manifest["spec"]["validationActions"]:
        parameter["parameterNotFoundAction"] = "Deny"
    return manifest


def _role_of_events() -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": EVENTS, "namespace": EVENTS_OF_THE_CLUSTER, "labels": LABELS},
        "rules": [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}],
    }


def _role_binding(namespace: str, role: str, kind: str, subjects: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace, "labels": LABELS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": subjects,
    }

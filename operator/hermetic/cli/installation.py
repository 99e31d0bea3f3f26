"""The rights and admission policies of one installation, made from those of `manifests/` and its configuration.

`manifests/rbac` and `manifests/policies` are written for the names of a default installation. Here they get the names
of another one, and in place of the binding in the whole cluster one for each watched namespace.
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
MODELS, EVENTS = "hermetic-operator-models", "hermetic-operator-events"
# Where the API server wants Events about objects without a namespace, the EgressAudit among them.
EVENTS_OF_THE_CLUSTER = "default"


@dataclass(frozen=True, slots=True)
class Installation:
    """Who the operator is and for which namespaces: `account` is a ServiceAccount of the namespace of the Lease.

    With `limited` its account may use the registries and shares of the configuration alone.
    """

    configuration: Configuration
    account: str = ACCOUNT
    limited: bool = True

    @property
    def namespace(self) -> str:
        """Of the operator itself."""
        return self.configuration.lease.namespace

    @property
    def user(self) -> str:
        """The name by which the API server knows the operator."""
        return f"system:serviceaccount:{self.namespace}:{self.account}"


def rights(installation: Installation) -> list[Manifest]:
    """Namespaces, ServiceAccount, roles, bindings and admission policies, in the order in which to apply them."""
    granted = [_named(manifest, installation) for manifest in written("rbac")]
    policies = [_named(manifest, installation) for manifest in written("policies")]
    if installation.limited:
        policies = [allowed(installation.configuration), *map(_without_exception, policies)]
    return [*_bound(granted, installation), *policies]


@cache
def written(folder: str) -> tuple[Manifest, ...]:
    """The documents of a folder of `manifests/`, in the order of its kustomization. Not to be changed."""
    root = _manifests() / folder
    (kustomization,) = _documents(root / "kustomization.yaml")
    return tuple(manifest for name in kustomization["resources"] for manifest in _documents(root / name))


def _documents(file: Path) -> list[Manifest]:
    return list(yaml.load_all(file.read_text(encoding="utf-8"), Loader=LOADER))


def _manifests() -> Path:
    """Beside the code in an installed package, at the root of a checkout."""
    installed = PACKAGE / "manifests"
    return installed if installed.is_dir() else PACKAGE.parents[1] / "manifests"


def _named(manifest: Manifest, installation: Installation) -> Manifest:
    """The manifest with the names of this installation."""
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
    # A whole word: 'hermetic-probe' is no part of 'hermetic-probe-image'.
    anyone = re.compile(rf"(?<![\w.-])({'|'.join(map(re.escape, names))})(?![\w-])")
    return lambda text: anyone.sub(lambda found: names[found[1]], text)


def _in_every_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _in_every_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_every_text(item, change) for item in value]
    return value


def _bound(manifests: list[Manifest], installation: Installation) -> Iterator[Manifest]:
    """With namespaces to watch, the role for models is bound in each of them, and not in the cluster."""
    namespaces = installation.configuration.watch_namespaces
    for manifest in manifests:
        if not namespaces or (manifest["kind"], manifest["metadata"]["name"]) != ("ClusterRoleBinding", MODELS):
            yield manifest
            continue
        subjects = manifest["subjects"]
        for namespace in namespaces:
            yield _role_binding(namespace, MODELS, "ClusterRole", subjects)
        if EVENTS_OF_THE_CLUSTER not in namespaces:
            yield _role_of_events()
            yield _role_binding(EVENTS_OF_THE_CLUSTER, EVENTS, "Role", subjects)


def _without_exception(manifest: Manifest) -> Manifest:
    """A binding that lets nothing through where the ConfigMap of what is allowed is missing."""
    parameter = manifest["spec"].get("paramRef", {})
    if parameter.get("name") == ALLOWED:
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

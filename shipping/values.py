"""The values of the chart: one list, from which its defaults, its schema and its table are made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hermetic.api.kubernetes_yaml import dump
from shipping.revision import HOME

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
RUNBOOKS = f"{HOME}/observability.html"
"""The page of the documentation site that explains each alert under a heading of its name."""
# Names and values as Kubernetes takes them; the three by which objects find each other stay as they are.
OF_THE_CHART = [f"app.kubernetes.io/{name}" for name in ("name", "component", "part-of")]
NAMES: Schema = {"pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"}
LABEL: Schema = {**TEXT, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", "maxLength": 63}
TOLERATION: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "key": {**TEXT, "description": "Key of the taint; none with operator Exists: every taint."},
        "operator": {"enum": ["Exists", "Equal"], "description": "How value is compared."},
        "value": {**TEXT, "description": "Value of the taint."},
        "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"], "description": "Effect of the taint."},
        "tolerationSeconds": {"type": "integer", "description": "For how long NoExecute is tolerated."},
    },
}
LONGEST_DEFAULT = 40
NUMERIC_ID: Schema = {"type": "integer", "minimum": 1, "maximum": 2147483647}
QUANTITIES: Schema = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}


@dataclass(frozen=True)
class Value:
    """One value by its path; `config` takes its schema from the configuration's models."""

    path: str
    schema: Schema
    default: Any
    text: str


VALUES = (
    Value(
        "image.registry",
        {**TEXT, "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9._/-]+)?$"},
        "",
        "Your registry, for example contoso.azurecr.io: every image of the chart comes from it. Required.",
    ),
    Value(
        "image.repository",
        {**TEXT, "pattern": "^[a-z0-9]+([._/-][a-z0-9]+)*$"},
        "hermetic",
        "Repository of the operator's image in that registry.",
    ),
    Value(
        "image.digest",
        {**TEXT, "pattern": "^sha256:[0-9a-f]{64}$"},
        "",
        "Digest of the operator's image, as `make image` prints it. Required.",
    ),
    Value("image.pullSecrets", {"type": "array", "items": TEXT}, [], "Names of Secrets to pull with."),
    Value("crds.install", {"type": "boolean"}, True, "Install and upgrade the CRDs. They stay when the release goes."),
    Value("config", {}, {"registries": [], "shares": []}, "The operator's configuration: docs/configuration.md."),
    Value(
        "allowed.install",
        {"type": "boolean"},
        True,
        "Write the ConfigMap hermetic-allowed, which holds the operator's account to the registries and shares of "
        "`config`. False: it is managed apart, or not at all.",
    ),
    Value(
        "commonLabels",
        {"type": "object", "propertyNames": {**NAMES, "not": {"enum": OF_THE_CHART}}, "additionalProperties": LABEL},
        {},
        "Labels of your own on every object of the chart and on the operator's pod.",
    ),
    Value(
        "podAnnotations",
        {"type": "object", "propertyNames": NAMES, "additionalProperties": TEXT},
        {},
        "Annotations of your own on the operator's pod.",
    ),
    Value(
        "nodeSelector",
        {"type": "object", "propertyNames": NAMES, "additionalProperties": LABEL},
        {"kubernetes.io/os": "linux"},
        "Labels of the nodes that the operator may run on, for example kubernetes.azure.com/mode: system as well.",
    ),
    Value("tolerations", {"type": "array", "items": TOLERATION}, [], "Taints that the operator's pod tolerates."),
    Value("priorityClassName", TEXT, "", "PriorityClass of the operator's pod."),
    Value(
        "resources",
        {"type": "object", "additionalProperties": False, "properties": {"requests": QUANTITIES, "limits": QUANTITIES}},
        {
            "requests": {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "128Mi"},
            "limits": {"memory": "512Mi", "ephemeral-storage": "1Gi"},
        },
        "Requests and limits of the operator's container. No CPU limit: throttled, it would lose its Lease.",
    ),
    Value(
        "runAsUser", NUMERIC_ID, 10001, "User id of the operator's pod. It writes to /tmp alone, which any user may."
    ),
    Value("runAsGroup", NUMERIC_ID, 10001, "Group id of the operator's pod."),
    Value(
        "networkPolicy.apiServers",
        {"type": "array", "items": {**TEXT, "pattern": "^[0-9a-f.:]+/[0-9]{1,3}$"}},
        [],
        "Ranges of the API server's addresses. A NetworkPolicy lets the operator reach them alone. Empty: those that "
        "the cluster reports at each installation and upgrade, if `lookup` is true.",
    ),
    Value(
        "networkPolicy.lookup",
        {"type": "boolean"},
        True,
        "Read the API server's addresses and port from the EndpointSlice default/kubernetes if `apiServers` is empty. "
        "`helm template`, and tools that use it, read nothing: then no NetworkPolicy is written.",
    ),
    Value(
        "networkPolicy.port",
        {"type": "integer", "minimum": 1, "maximum": 65535},
        443,
        "Port of the API server at the addresses of `apiServers`.",
    ),
    Value(
        "metrics.podMonitor",
        {"enum": ["", "monitoring.coreos.com/v1", "azmonitoring.coreos.com/v1"]},
        "",
        "apiVersion of a PodMonitor for the operator: monitoring.coreos.com/v1 for the Prometheus Operator, "
        "azmonitoring.coreos.com/v1 for Azure Managed Prometheus. Empty: none.",
    ),
    Value("metrics.rules", {"type": "boolean"}, False, "Alert rules as a PrometheusRule of the Prometheus Operator."),
    Value(
        "metrics.runbookUrl",
        {**TEXT, "pattern": "^https?://[^ ]+$"},
        RUNBOOKS,
        "The page that `runbook_url` of each alert leads to: observability.html of your copy of the documentation.",
    ),
    Value(
        "metrics.dashboard",
        {"type": "boolean"},
        False,
        "The Grafana dashboards in a ConfigMap labelled for its sidecar.",
    ),
)


def values_schema(configuration: Schema) -> Schema:
    """Every key described, every other key refused."""
    root: Schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_section("Values of the chart hermetic.")}
    # Helm gives every chart an object of this name.
    root["properties"]["global"] = {"type": "object", "description": "Not used.", "maxProperties": 0}
    for value in VALUES:
        *sections, name = value.path.split(".")
        section_schema = root
        for section in sections:
            section_schema = section_schema["properties"].setdefault(section, _section(f"Values of {section}."))
        schema = configuration if value.path == "config" else value.schema
        section_schema["properties"][name] = {**schema, "description": value.text}
    return root


def _section(text: str) -> Schema:
    return {"type": "object", "description": text, "additionalProperties": False, "properties": {}}


def chart_values() -> str:
    """values.yaml, with each text as a comment above its key."""
    lines = ["# Written by `python -m shipping chart` from shipping/values.py. Do not edit: give values of your own.\n"]
    open_section = ""
    for value in VALUES:
        section, _, name = value.path.rpartition(".")
        if section and section != open_section:
            lines.append(f"{section}:\n")
        open_section = section
        indent = "  " if section else ""
        written = "".join(f"{indent}{line}\n" for line in dump({name: value.default}).splitlines())
        lines.append(f"{indent}# {value.text}\n{written}")
    return "".join(lines)


def table() -> str:
    """The chart's README."""
    rows = "".join(f"| `{value.path}` | `{_short(value.default)}` | {value.text} |\n" for value in VALUES)
    return f"""\
<!-- Written by `python -m shipping chart`. Do not edit. -->
# The chart hermetic

The objects of `manifests/default`, for Helm. Other keys than these are refused.

| value | default | meaning |
| --- | --- | --- |
{rows}
The namespace of the release must be there before: `kubectl apply -f manifests/rbac/namespace.yaml`. docs/install.md
shows the commands.
"""


def _short(value: Any) -> str:
    if isinstance(value, dict):
        text = json.dumps(value)
        return text if len(text) <= LONGEST_DEFAULT else "see values.yaml"
    return dump({"v": value}).strip().removeprefix("v:").strip()

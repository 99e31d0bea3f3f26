"""`python -m shipping chart [--check]`: writes charts/hermetic from manifests/, crds/ and the configuration's models.

The objects are written once, in manifests/. Here their texts become templates: names that depend on the installation
become expressions of Helm, and `values.schema.json` and the table of values come from one list.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from hermetic import __version__
from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import dump
from hermetic.api.schema import structural_schema
from hermetic.cli.allowed import NAME as ALLOWED
from hermetic.cli.installation import (
    ACCOUNT,
    EVENTS,
    EVENTS_OF_THE_CLUSTER,
    LABELS,
    MODELS,
    NAMESPACE,
    PROBES,
    ROUTES,
    written,
)
from shipping.chart_allowed import LISTS, config_map_template
from shipping.revision import DESCRIPTION, HOME, LICENCE, REPOSITORY, SOURCE, VENDOR, Revision
from shipping.values import RUNBOOKS, chart_values, table, values_schema

Manifest = dict[str, Any]
CHART = REPOSITORY / "charts" / "hermetic"
NOTE = "Written by `python -m shipping chart`. Do not edit.\n"
PROBE_NAMESPACE = f'{{{{ .Values.config.probeNamespace | default "{PROBES}" }}}}'
EXPRESSIONS = {NAMESPACE: "{{ .Release.Namespace }}", PROBES: PROBE_NAMESPACE}
NAMES = re.compile(rf"(?<![\w.-])({'|'.join(EXPRESSIONS)})(?![\w-])")
IMAGE = "{{ .Values.image.registry }}/{{ .Values.image.repository }}@{{ .Values.image.digest }}"
CONFIG_NAME = "hermetic-config-{{ .Values.config | toJson | sha256sum | trunc 10 }}"
# Annotations of a pushed chart that Helm writes from other fields of Chart.yaml.
KEPT_BY_HELM = {f"org.opencontainers.image.{name}" for name in ("description", "source", "title", "version")}
# In the file itself: a page that shows the chart in a closed network fetches nothing.
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cpath d='M16 2 29 9v14l-13 "
    "7L3 23V9z' fill='%23124'/%3E%3Cpath d='M10 9v14M22 9v14M10 16h12' stroke='%23fff' stroke-width='3'/%3E%3C/svg%3E"
).replace(" ", "%20")
# Keys that are there only where a value is given; the text takes the place of the line.
OPTIONAL = {
    "imagePullSecrets": "{{- with .Values.image.pullSecrets }}\n      imagePullSecrets:\n"
    "        {{- range . }}\n        - name: {{ . }}\n        {{- end }}\n      {{- end }}",
    "priorityClassName": "{{- with .Values.priorityClassName }}\n      priorityClassName: {{ . }}\n      {{- end }}",
    **{
        name: f"{{{{- with .Values.{name} }}}}\n      {name}:\n"
        "        {{- toYaml . | nindent 8 }}\n      {{- end }}"
        for name in ("nodeSelector", "tolerations")
    },
}
COMMON_LABELS = "{{- with $.Values.commonLabels }}\nLABELS    {{- toYaml . | nindent 4 }}\n    {{- end }}\n"
OF_THE_POD = """\
        {{- with .Values.commonLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
"""
# The API server writes this EndpointSlice itself (kubernetes, pkg/controlplane/reconcilers); `lookup` is empty offline.
API_SERVERS = """\
{{- $ranges := .Values.networkPolicy.apiServers }}
{{- $port := .Values.networkPolicy.port }}
{{- if and (not $ranges) .Values.networkPolicy.lookup }}
{{- $slice := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" }}
{{- range $slice.endpoints }}
{{- range .addresses }}
{{- $ranges = append $ranges (printf "%s/%s" . (ternary "128" "32" (contains ":" .))) }}
{{- end }}
{{- end }}
{{- range $slice.ports }}
{{- $port = int .port }}
{{- end }}
{{- end }}
"""
CONFIG_MAP = f"""\
{{{{- $config := deepCopy .Values.config }}}}
{{{{- if ne .Release.Namespace "{NAMESPACE}" }}}}
{{{{- $_ := set $config "lease" (dict "namespace" .Release.Namespace) }}}}
{{{{- end }}}}
apiVersion: v1
kind: ConfigMap
metadata:
  # The name carries a digest of the content: a changed configuration restarts the operator.
  name: {CONFIG_NAME}
  namespace: {{{{ .Release.Namespace }}}}
data:
  config.yaml: |
    {{{{- toYaml $config | nindent 4 }}}}
"""
NOTES = """\
Hermetic {{ .Chart.AppVersion }} runs in namespace {{ .Release.Namespace }}.

  kubectl rollout status deployment/hermetic-operator -n {{ .Release.Namespace }}
  kubectl explain modeldeployment.spec
{{- if not .Values.config.registries }}

No registry is allowed yet, so no model can run: name yours in `config.registries`, and upgrade.
{{- end }}
{{- if not .Values.config.watchNamespaces }}

The operator may write in every namespace. `config.watchNamespaces` keeps it to those that it must write in.
{{- end }}
{{- $known := .Values.networkPolicy.apiServers }}
{{- if and (not $known) .Values.networkPolicy.lookup }}
{{- $known = lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" }}
{{- end }}
{{- if not $known }}

No NetworkPolicy limits the operator's pod: the addresses of the API server are not known. Name them in
`networkPolicy.apiServers`, and upgrade.
{{- end }}
{{- if not .Values.allowed.install }}

`allowed.install` is false: a stolen token of the operator may use every registry and share. `hermetic rbac --config`
prints the ConfigMap that limits it.
{{- end }}
{{- /* The installer may read the EgressAudit: the chart grants the same right. `lookup` is empty offline. */}}
{{- if .Capabilities.APIVersions.Has "hermetic.dev/v1alpha1/EgressAudit" }}
{{- $audit := lookup "hermetic.dev/v1alpha1" "EgressAudit" "" "cluster" }}
{{- $azure := dig "status" "evidence" "azure" (dict) $audit }}
{{- if $azure.expiresAt }}
{{- $observed := toDate "2006-01-02T15:04:05Z07:00" $azure.observedAt | unixEpoch | int64 }}
{{- $expires := toDate "2006-01-02T15:04:05Z07:00" $azure.expiresAt | unixEpoch | int64 }}
{{- $age := sub (now | unixEpoch | int64) $observed }}

The isolation evidence expires at {{ $azure.expiresAt }}.
{{- if ge (mul 4 $age) (mul 3 (sub $expires $observed)) }} Renew it, or no new pod of a model starts after that:

  hermetic audit --azure {{ $audit.spec.cluster }} --sign KEY --attestation attestation.yaml
  kubectl apply --server-side --filename attestation.yaml
{{- end }}
{{- end }}
{{- end }}
"""


def files() -> dict[str, str]:
    """Every file of the chart, by its path below the chart's folder."""
    return {
        name: _labelled(text) if name.endswith(".yaml") and "/" in name else text for name, text in _files().items()
    }


def _labelled(template: str) -> str:
    """With the labels of the installation on every object; a template of a pod is no object."""

    def more(match: re.Match[str]) -> str:
        head, labels, remainder = match[1].partition("  labels:\n")
        own = re.match(r"(    .*\n)*", remainder)
        assert own is not None
        if not labels:
            return f"metadata:\n  {COMMON_LABELS.replace('LABELS', '  labels:' + chr(10))}{head}"
        return f"metadata:\n{head}{labels}{own[0]}    {COMMON_LABELS.replace('LABELS', '')}{remainder[own.end() :]}"

    return re.sub(r"^metadata:\n((?:  .*\n)+)", more, template, flags=re.MULTILINE)


def _files() -> dict[str, str]:
    return {
        "Chart.yaml": chart_of(None),
        "README.md": table(),
        "values.yaml": chart_values(),
        "values.schema.json": json.dumps(values_schema(_configuration_schema()), indent=1) + "\n",
        "templates/crds.yaml": _crds(),
        "templates/rbac.yaml": _template(map(_rbac, (role for role in written("rbac") if not _made_before(role)))),
        "templates/gateways.yaml": _gateways(),
        "templates/policies.yaml": _template(map(_policy, written("policies"))),
        "templates/operator.yaml": _template([CONFIG_MAP, *map(_operator, written("operator"))]),
        "templates/networkpolicy.yaml": _network_policy(),
        "templates/allowed.yaml": _allowed(),
        "templates/metrics.yaml": _metrics(),
        "templates/NOTES.txt": NOTES,
    }


def chart_of(revision: Revision | None) -> str:
    """Chart.yaml: the file in charts/, or for a commit that of a package, which names the commit in annotations."""
    of_commit = {} if revision is None else revision.annotations()
    chart = {
        "apiVersion": "v2",
        "name": "hermetic",
        "description": DESCRIPTION,
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.32.0-0",
        "keywords": ["air gap", "aks", "gpu", "inference", "vllm"],
        "home": HOME,
        "sources": [SOURCE],
        "icon": ICON,
        "maintainers": [{"name": VENDOR, "url": HOME}],
        "annotations": {
            "artifacthub.io/category": "ai-machine-learning",
            "artifacthub.io/license": LICENCE,
            "artifacthub.io/operator": "true",
            **{name: value for name, value in of_commit.items() if name not in KEPT_BY_HELM},
        },
    }
    return f"# {NOTE}{dump(chart)}"


def _made_before(manifest: Manifest) -> bool:
    """The namespace of the release: Helm keeps its own records there, so it is there before the chart is."""
    return (manifest["kind"], manifest["metadata"]["name"]) == ("Namespace", NAMESPACE)


def _template(documents: Iterable[str]) -> str:
    return f"# {NOTE}" + "---\n".join(documents)


def _document(manifest: Manifest) -> str:
    return NAMES.sub(lambda match: EXPRESSIONS[match[1]], _escaped(dump(manifest)))


def _escaped(text: str) -> str:
    return re.sub(r"\{\{|\}\}", lambda match: f'{{{{ "{match[0]}" }}}}', text)


def _rbac(manifest: Manifest) -> str:
    """The binding of a role for models: in the cluster, or in each watched namespace as `hermetic rbac` has it."""
    if (manifest["kind"], manifest["metadata"]["name"]) == ("ClusterRoleBinding", ROUTES):
        return _bound(manifest) + "{{- end }}\n{{- end }}\n"
    if (manifest["kind"], manifest["metadata"]["name"]) != ("ClusterRoleBinding", MODELS):
        return _document(manifest)
    events = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": EVENTS, "namespace": EVENTS_OF_THE_CLUSTER, "labels": LABELS},
        "rules": [{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]}],
    }
    bound = _document(_role_binding(EVENTS_OF_THE_CLUSTER, EVENTS, "Role"))
    return (
        _bound(manifest)
        + f'{{{{- end }}}}\n{{{{- if not (has "{EVENTS_OF_THE_CLUSTER}" .Values.config.watchNamespaces) }}}}\n---\n'
        + _document(events)
        + "---\n"
        + bound
        + "{{- end }}\n{{- end }}\n"
    )


def _bound(manifest: Manifest) -> str:
    """In the cluster, or else in each watched namespace; the end of the condition is the caller's."""
    name = manifest["metadata"]["name"]
    binding = _document(_role_binding("NAMESPACE", name, "ClusterRole")).replace("NAMESPACE", "{{ . }}")
    return (
        "{{- if not .Values.config.watchNamespaces }}\n"
        + _document(manifest)
        + "{{- else }}\n{{- range .Values.config.watchNamespaces }}\n---\n"
        + binding.replace(".Release", "$.Release")
    )


def _role_binding(namespace: str, role: str, kind: str) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": namespace, "labels": LABELS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }


def _crds() -> str:
    """Kept when the release goes: with a CRD every object of its kind would go, and every model with them."""
    names = yaml.safe_load((REPOSITORY / "crds" / "Kustomization").read_text())["resources"]
    documents = []
    for name in names:
        crd = yaml.safe_load((REPOSITORY / "crds" / name).read_text())
        crd["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
        documents.append(_escaped(dump(crd)))
    return "{{- if .Values.crds.install }}\n" + _template(documents) + "{{- end }}\n"


def _policy(manifest: Manifest) -> str:
    """Where the chart writes 'hermetic-allowed', nothing may pass when it is lost, as with `hermetic rbac --config`.

    Policies that only warn are left as they are.
    """
    spec = manifest["spec"]
    if spec.get("paramRef", {}).get("name") != ALLOWED or "Deny" not in spec["validationActions"]:
        return _document(manifest)
    missing = '{{ ternary "Deny" "Allow" .Values.allowed.install }}'
    return _document(manifest).replace("parameterNotFoundAction: Allow", f"parameterNotFoundAction: {missing}")


def _gateways() -> str:
    """The right to write routes, where the configuration allows gateways."""
    documents = "---\n".join(map(_rbac, written("gateways")))
    return f"# {NOTE}{{{{- if .Values.config.gateways }}}}\n{documents}{{{{- end }}}}\n"


def _allowed() -> str:
    text, expressions = config_map_template()
    document = _filled(_escaped(text), expressions)
    return f"# {NOTE}{{{{- if .Values.allowed.install }}}}\n{LISTS}{document}{{{{- end }}}}\n"


def _network_policy() -> str:
    """With the ranges that are given, else with the addresses that the API server has published of itself."""
    (manifest,) = written("network-policy")
    policy = deepcopy(manifest)
    (rule,) = policy["spec"]["egress"]
    rule["to"], rule["ports"][0]["port"] = "RANGES", "PORT"
    ranges = "\n    {{- range $ranges }}\n    - ipBlock:\n        cidr: {{ . }}\n    {{- end }}"
    text = _filled(_document(policy), {" RANGES": ranges, "PORT": "{{ $port }}"})
    return f"# {NOTE}{API_SERVERS}{{{{- if $ranges }}}}\n{text}{{{{- end }}}}\n"


def _metrics() -> str:
    """Kinds that not every cluster serves, so each is asked for by a value of its own."""
    monitor, rules = written("observability")
    monitor = {**monitor, "apiVersion": "API"}
    documents = (
        (".Values.metrics.podMonitor", _filled(_document(monitor), {"API": "{{ .Values.metrics.podMonitor }}"})),
        (".Values.metrics.rules", _document(rules).replace(f"{RUNBOOKS}#", "{{ .Values.metrics.runbookUrl }}#")),
        (".Values.metrics.dashboard", _document(dashboard())),
    )
    return f"# {NOTE}" + "".join(f"{{{{- if {value} }}}}\n---\n{text}{{{{- end }}}}\n" for value, text in documents)


def dashboard() -> Manifest:
    """The ConfigMap that the component of manifests/ generates."""
    root = REPOSITORY / "manifests" / "observability"
    (generated,) = yaml.safe_load((root / "kustomization.yaml").read_text())["configMapGenerator"]
    files = {Path(name).name: (root / name).read_text() for name in generated["files"]}
    metadata = {
        "name": generated["name"],
        "namespace": generated["namespace"],
        "labels": generated["options"]["labels"],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files}


def _operator(manifest: Manifest) -> str:
    return _deployment(manifest) if manifest["kind"] == "Deployment" else _document(manifest)


def _deployment(manifest: Manifest) -> str:
    deployment = deepcopy(manifest)
    pod = deployment["spec"]["template"]["spec"]
    del pod["nodeSelector"]  # the default of a value
    (container,) = pod["containers"]
    pod["securityContext"] |= {"runAsUser": "USER-ID", "runAsGroup": "GROUP-ID"}
    container["image"] = "IMAGE"
    container["ports"][0]["containerPort"] = "PORT"
    pod["volumes"][0]["configMap"]["name"] = "CONFIG"
    container["resources"] = "RESOURCES"
    expressions = {
        "IMAGE": IMAGE,
        "PORT": "{{ .Values.config.httpPort | default 8080 }}",
        "CONFIG": CONFIG_NAME,
        "USER-ID": "{{ int .Values.runAsUser }}",
        "GROUP-ID": "{{ int .Values.runAsGroup }}",
        "RESOURCES": "{{- toYaml .Values.resources | nindent 10 }}",
    }
    text = _filled(dump(deployment), expressions)
    text = text.replace("    spec:\n      serviceAccountName:", f"{OF_THE_POD}    spec:\n      serviceAccountName:")
    optional = "".join(f"      {value}\n" for value in OPTIONAL.values())
    text = re.sub(r"^      containers:\n", lambda match: optional + match[0], text, flags=re.MULTILINE)
    return NAMES.sub(lambda match: EXPRESSIONS[match[1]], text)


def _filled(text: str, expressions: Mapping[str, str]) -> str:
    """The text with expressions of Helm in the places of values that bear these names."""
    for name, expression in expressions.items():
        before = ":" if name.startswith(" ") else ": "
        text = re.sub(rf"(?<={before}){name}$", lambda _, value=expression: value, text, flags=re.MULTILINE)  # type: ignore[misc]
    return text


def _configuration_schema() -> dict[str, Any]:
    """The configuration's own, closed; the namespace of the Lease is that of the release."""
    schema: dict[str, Any] = _closed(structural_schema(Configuration))
    del schema["properties"]["lease"]
    return schema


def _closed(schema: Any) -> Any:
    """Without what only Kubernetes knows, and refusing keys that are not listed."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if not key.startswith("x-")}
    return {**closed, "additionalProperties": False} if isinstance(closed.get("properties"), dict) else closed


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m shipping chart", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 where a file is not current")
    check: bool = parser.parse_args(arguments).check
    stale = {CHART / name: text for name, text in files().items() if not _is(CHART / name, text)}
    for path, text in stale.items():
        if check:
            print(f"error: {path} is not what the manifests say\nfix: make generate", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text

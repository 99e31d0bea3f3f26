"""The ConfigMap 'hermetic-allowed' as a template: the lines that `hermetic rbac --config` prints."""

from __future__ import annotations

from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.kubernetes_yaml import dump
from hermetic.cli.allowed import EVERY, allowed

# `-` takes the newline of the directive itself, so that only the lists are written.
LISTS = f"""\
{{{{- $registries := list }}}}
{{{{- range $registry := .Values.config.registries }}}}
{{{{- range $namespace := $registry.namespaces }}}}
{{{{- range $registry.repositories | default (list "") }}}}
{{{{- $registries = append $registries (printf "%s %s/%s" $namespace $registry.host .) }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- range (.Values.config.integrity | default dict).verifiers }}}}
{{{{- $registries = append $registries (printf "{EVERY} %s" .) }}}}
{{{{- end }}}}
{{{{- $shares := list }}}}
{{{{- range $share := .Values.config.shares }}}}
{{{{- range $namespace := $share.namespaces }}}}
{{{{- range $share.folders | default (list "") }}}}
{{{{- if not $share.account }}}}
{{{{- $folder := ternary "" (printf "/%s" .) (empty .) }}}}
{{{{- $shares = append $shares (printf "%s nfs %s:%s%s" $namespace $share.server $share.path $folder) }}}}
{{{{- else }}}}
{{{{- $folder := ternary "" (printf "#%s" .) (empty .) }}}}
{{{{- $shares = append $shares (printf "%s azure %s/%s%s" $namespace $share.account $share.share $folder) }}}}
{{{{- with $share.server }}}}
{{{{- $shares = append $shares (printf "%s azure %s/%s %s%s" $namespace $share.account $share.share . $folder) }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- $gateways := list }}}}
{{{{- range $gateway := .Values.config.gateways }}}}
{{{{- range $gateway.namespaces }}}}
{{{{- $gateways = append $gateways (printf "%s %s/%s" . $gateway.namespace $gateway.name) }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- $metadata := .Values.config.modelMetadata | default dict }}}}
{{{{- $labels := $metadata.propagatedLabels | default list }}}}
{{{{- $labels = concat $labels (keys ($metadata.labels | default dict)) | sortAlpha }}}}
{{{{- $annotations := $metadata.propagatedAnnotations | default list }}}}
{{{{- $annotations = concat $annotations (keys ($metadata.annotations | default dict)) | sortAlpha }}}}
{{{{- $namespaces := .Values.config.watchNamespaces | default (list "{EVERY}") }}}}
"""
NAMES = ("namespaces", "registries", "shares", "gateways", "labels", "annotations")
NAMESPACE = "{{ .Release.Namespace }}"


def config_map_template() -> tuple[str, dict[str, str]]:
    """The manifest with placeholders for the namespace and the lists, and what takes the place of each."""
    manifest: dict[str, Any] = allowed(Configuration())
    lists = {_placeholder(name): f'{{{{ join "\\n" ${name} | quote }}}}' for name in NAMES}
    manifest["metadata"]["namespace"] = _placeholder("namespace")
    manifest["data"] |= {name: _placeholder(name) for name in NAMES}
    return dump(manifest), {_placeholder("namespace"): NAMESPACE, **lists}


def _placeholder(name: str) -> str:
    return f"PLACE-OF-{name.upper()}"

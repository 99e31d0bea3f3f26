"""A packaged chart as `helm push` puts it into a registry: https://helm.sh/docs/topics/registries/#helm-chart-manifest.

The configuration is Chart.yaml as Helm's Go type writes it, field by field, so that the digest is that of `helm push`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from typing import Any

import yaml

from hermetic.errors import BundleRefused

CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
CONTENT_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
# The order of https://pkg.go.dev/helm.sh/helm/v4/pkg/chart/v2#Metadata
FIELDS = (
    *("name", "home", "sources", "version", "description", "keywords", "maintainers", "icon", "apiVersion"),
    *("appVersion", "annotations", "kubeVersion", "type"),
)
ANNOTATIONS = {"description": "description", "title": "name", "version": "version", "url": "home"}
_PREFIX = "org.opencontainers.image."
_LARGEST = 16 * 2**20
# What Go's encoding/json escapes for the sake of HTML.
_OF_HTML = re.compile("[<>&]")


def chart_documents(packaged: bytes) -> tuple[bytes, bytes]:
    """Configuration and manifest of a chart; the same bytes for the same chart. Raises BundleRefused."""
    chart = _metadata(packaged)
    if unknown := sorted(chart.keys() - set(FIELDS)):
        raise BundleRefused(f"Chart.yaml: Helm's order of '{unknown[0]}' is not known here")
    own = dict(sorted((chart.get("annotations") or {}).items()))
    ordered = {field: chart[field] for field in FIELDS if field in chart}
    config = _as_go({**ordered, **({"annotations": own} if own else {})})
    manifest = {
        "schemaVersion": 2,
        "config": _descriptor(CONFIG_TYPE, config),
        "layers": [_descriptor(CONTENT_TYPE, packaged)],
        "annotations": dict(sorted({**_annotations(chart), **own}.items())),
    }
    return config, _as_go(manifest)


def _metadata(packaged: bytes) -> dict[str, Any]:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packaged)) as unzipped:
            content = unzipped.read(_LARGEST)
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            member = next(
                member for member in tar if member.name.count("/") == 1 and member.name.endswith("/Chart.yaml")
            )
            opened = tar.extractfile(member)
            metadata = yaml.safe_load(opened.read()) if opened is not None else None
    except (OSError, EOFError, StopIteration, tarfile.TarError, yaml.YAMLError):
        metadata = None
    if not isinstance(metadata, dict) or not {"name", "version"} <= metadata.keys():
        raise BundleRefused("chart/ holds no packaged chart with a name and a version")
    return metadata


def _annotations(chart: dict[str, Any]) -> dict[str, str]:
    named = {_PREFIX + name: str(chart[field]) for name, field in ANNOTATIONS.items() if chart.get(field)}
    if authors := ", ".join(maintainer["name"] for maintainer in chart.get("maintainers") or ()):
        named[f"{_PREFIX}authors"] = authors
    if sources := chart.get("sources"):
        named[f"{_PREFIX}source"] = sources[0]
    return named


def _descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}


def _as_go(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _OF_HTML.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()

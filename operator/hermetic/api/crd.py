"""The CustomResourceDefinitions, made from the models.

`python -m tools crds` writes them as files.
Short names: mdep (ModelDeployment), eaudit (EgressAudit), eattest (EgressAttestation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from hermetic.api.columns import ATTESTATION_COLUMNS, AUDIT_COLUMNS, DEPLOYMENT_COLUMNS, Column
from hermetic.api.egressaudit import EgressAttestation, EgressAudit
from hermetic.api.modeldeployment import ModelDeployment
from hermetic.api.rules import VALIDATIONS
from hermetic.api.schema import Schema, structural_schema, without_defaults
from hermetic.kinds import EGRESS_ATTESTATION, EGRESS_AUDIT, MODEL_DEPLOYMENT, Kind

# Flux and kstatus read "not seen yet" from this, so an object is never taken for ready before its first reconcile.
UNSEEN = {"observedGeneration": -1}


@dataclass(frozen=True)
class Definition:
    """What a CRD says beside its schema. A scalable kind has spec.replicas, status.replicas and status.selector."""

    kind: Kind
    model: type[BaseModel]
    short_name: str
    columns: tuple[Column, ...]
    scalable: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind.plural}.{self.kind.group}"


DEFINITIONS = (
    Definition(MODEL_DEPLOYMENT, ModelDeployment, "mdep", DEPLOYMENT_COLUMNS, scalable=True),
    Definition(EGRESS_AUDIT, EgressAudit, "eaudit", AUDIT_COLUMNS),
    Definition(EGRESS_ATTESTATION, EgressAttestation, "eattest", ATTESTATION_COLUMNS),
)


def crd(definition: Definition) -> dict[str, Any]:
    """The CustomResourceDefinition in the form of the YAML file."""
    schema = _root_schema(definition)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name},
        "spec": {
            "group": definition.kind.group,
            "scope": "Namespaced" if definition.kind.namespaced else "Cluster",
            "names": _names(definition),
            "versions": [
                {
                    "name": definition.kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": _subresources(definition, schema),
                    "additionalPrinterColumns": [column.as_printer_column() for column in definition.columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _names(definition: Definition) -> dict[str, Any]:
    return {
        "kind": definition.kind.kind,
        "listKind": f"{definition.kind.kind}List",
        "plural": definition.kind.plural,
        "singular": definition.kind.kind.lower(),
        "shortNames": [definition.short_name],
        # `all` is for kinds that namespace users work with; cluster-scoped evidence is left out of `kubectl get all`.
        "categories": ["all", "hermetic"] if definition.kind.namespaced else ["hermetic"],
    }


def _root_schema(definition: Definition) -> Schema:
    schema = structural_schema(definition.model)
    fields = dict(schema["properties"])
    fields["apiVersion"] = {"description": f"Always '{definition.kind.api_version}'.", "type": "string"}
    fields["kind"] = {"description": f"Always '{definition.kind.kind}'.", "type": "string"}
    fields["metadata"] = _metadata(schema)
    if "status" in fields:
        fields["status"] = without_defaults(fields["status"])
        fields["status"]["default"] = UNSEEN
    return {**schema, "required": ["spec"], "properties": fields}


def _metadata(schema: Schema) -> Schema:
    """The API server adds the schema of metadata; only a rule about the name requires the name here."""
    if any(rule.get("fieldPath") == ".metadata.name" for rule in schema.get(VALIDATIONS, ())):
        return {"type": "object", "properties": {"name": {"type": "string"}}}
    return {"type": "object"}


def _subresources(definition: Definition, schema: Schema) -> dict[str, Any]:
    subresources: dict[str, Any] = {}
    if "status" in schema["properties"]:
        subresources["status"] = {}
    if definition.scalable:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    return subresources

"""kubectl itself reads values as Hermetic reads them, and takes for text what Hermetic writes as text."""

from __future__ import annotations

import json

import pytest
import yaml

from hermetic.api.kubernetes_yaml import dump, read_documents
from testbed.kubectl import Kubectl
from tests.kubernetes_scalars import SCALARS

HEAD = "apiVersion: hermetic.dev/v1alpha1\nkind: ModelDeployment\nmetadata: {name: scalars}\n"


def as_kubectl_reads(kubectl: Kubectl, text: str) -> object:
    """`spec.values` after kubectl has made JSON of the manifest, before it is validated."""
    printed = kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", stdin=text)
    return json.loads(printed)["spec"]["values"]


@pytest.mark.usefixtures("installed")
def test_kubectl_takes_values_for_what_hermetic_takes_them_for(kubectl: Kubectl) -> None:
    text = HEAD + "spec:\n  values:\n" + "".join(f"  - {typed}\n" for typed, _ in SCALARS)
    values = as_kubectl_reads(kubectl, text)
    (document,) = read_documents(text)
    assert dict(zip([typed for typed, _ in SCALARS], values, strict=True)) == dict(SCALARS)
    assert json.dumps(document.value["spec"]["values"]) == json.dumps([meant for _, meant in SCALARS])


@pytest.mark.usefixtures("installed")
def test_kubectl_takes_for_text_what_hermetic_writes_as_text(kubectl: Kubectl) -> None:
    values = [
        *(typed for typed, _ in SCALARS),
        "a: b",
        "- a",
        "# a",
        "*a",
        "&a",
        "{a}",
        "é🦙",
        " a ",
        "a\nb",
        "\x85",
        "<<",
    ]
    written = dump({**yaml.safe_load(HEAD), "spec": {"values": values}})
    assert as_kubectl_reads(kubectl, written) == values

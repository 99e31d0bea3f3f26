"""Every rendered object is one that Kubernetes' own models accept: no unknown field, no wrong type, no string port."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.kubernetes_models import MODELS
from tests.renderings import RENDERINGS
from tests.snapshots import rendered


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_every_child_is_a_valid_object_of_its_kind(manifest):
    for kind, child in rendered(manifest).items():
        read = MODELS[kind].model_validate(child)
        assert read.to_dict(), kind


def test_models_refuse_what_the_api_server_would_refuse():
    """What the test above rests on."""
    service = rendered(RENDERINGS["share"])["Service"]
    unknown = {**service, "spec": {**service["spec"], "externalTraficPolicy": "Local"}}
    mistyped = {**service, "spec": {**service["spec"], "ports": [{"port": "8000"}]}}
    for wrong in (unknown, mistyped):
        with pytest.raises(ValidationError):
            MODELS["Service"].model_validate(wrong)

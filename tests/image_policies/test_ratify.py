"""Ratify accepts by manifests/image-policies/ratify.yaml what the keys signed, and refuses everything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shipping.notation import notation_signature
from shipping.signer import load_signer
from testbed.images.oci import Image
from tests.image_policies.ratify_program import filled_in, ratify_results
from tests.shipping.pushed_artifacts import another_image, push_with
from tests.shipping.signed_artifacts import REVISION, Keys, references

ENGINES = "vllm/vllm-openai"

Push = Callable[[Image, Keys | None], str]


@pytest.fixture
def push(pushed: str, tmp_path: Path) -> Push:
    """Pushes an image with the signature of keys; returns its reference."""

    def push_image(image: Image, keys: Keys | None) -> str:
        signed = []
        if keys is not None:
            signer = load_signer(keys.private, keys.certificate)
            signed.append(notation_signature(signer, image.manifest, REVISION.created))
        return push_with(image, signed, tmp_path / image.digest.removeprefix("sha256:"), pushed)

    return push_image


@pytest.fixture
def ratify(pushed: str, keys: Keys, other_keys: Keys, tmp_path: Path) -> Callable[..., list[bool]]:
    """Whether Ratify accepts each image. Engines are signed by the other keys."""
    certificates = {"platform.crt": keys.certificate, "engines.crt": other_keys.certificate}
    objects = filled_in("ratify.yaml", pushed, certificates)
    return lambda *images: [bool(result.get("isSuccess")) for result in ratify_results(tmp_path, objects, *images)]


def test_ratify_accepts_the_signed_image_as_index_and_of_each_platform(ratify, pushed, chart):
    *images, _ = references(pushed, chart)
    assert ratify(*images) == [True, True, True]


def test_ratify_refuses_what_nobody_signed_and_the_signature_of_another_key(ratify, push, other_keys):
    unsigned, of_others = push(another_image("unsigned"), None), push(another_image("signed by others"), other_keys)
    assert ratify(unsigned, of_others) == [False, False]


def test_ratify_accepts_engines_by_the_certificate_of_engines_alone(ratify, push, keys, other_keys):
    engine = push(another_image("engine", ENGINES), other_keys)
    of_the_platform = push(another_image("engine of the platform", ENGINES), keys)
    assert ratify(engine, of_the_platform) == [True, False]

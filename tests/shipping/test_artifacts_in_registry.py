"""Image, chart and all that refers to them in a real registry, read by ORAS and Helm, judged by cosign and notation."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from shipping.cosign import cosign_attestations, cosign_signature, signed_statement
from shipping.notation import notation_signature
from shipping.oci_artifacts import Artifact, Blob, referrer, subject_of
from shipping.provenance import PREDICATE_TYPE as PROVENANCE
from shipping.signer import load_signer
from testbed.images.oci import Image, as_json, digest_of
from testbed.installation import REPOSITORY
from testbed.programs import programs
from tests.sampled_groups import SHIPPING
from tests.shipping.pushed_artifacts import another_image, named_subject, oras, push_with
from tests.shipping.signature_programs import COSIGN, NOTATION, PAGE, judged, verifier
from tests.shipping.signed_artifacts import IMAGE, IMAGE_NAME, REVISION, references, statement

pytestmark = SHIPPING


@pytest.fixture(scope="module")
def home(keys, pushed, tmp_path_factory) -> Path:
    """What somebody has who was given the public key and the certificate."""
    return verifier(tmp_path_factory.mktemp("verifier") / "own", keys, pushed)


def test_cosign_accepts_image_and_chart_with_the_key(pushed, chart, home):
    for reference in references(pushed, chart):
        done = judged(home, "cosign verify", reference)
        assert done.returncode == 0, done.stderr
        (printed,) = json.loads(done.stdout)
        assert printed["critical"]["image"]["docker-manifest-digest"] == reference.partition("@")[2]


def attested(done: subprocess.CompletedProcess[str]) -> dict:
    """The statement that cosign verified and printed."""
    assert done.returncode == 0, done.stderr
    return json.loads(base64.b64decode(json.loads(done.stdout)["payload"]))


def test_cosign_accepts_provenance_and_inventory_with_the_key(pushed, chart, home):
    for reference in references(pushed, chart):
        printed = attested(judged(home, "cosign verify-attestation", reference))
        parameters = printed["predicate"]["buildDefinition"]["externalParameters"]
        assert (printed["predicateType"], parameters["revision"]) == (PROVENANCE, REVISION.commit)
    for image, reference in zip(IMAGE.images, references(pushed, chart)[1:3], strict=True):
        printed = attested(judged(home, "cosign verify-attestation", reference, slsaprovenance1="spdxjson"))
        assert printed["predicate"] == {"name": image.architecture}


def test_notation_accepts_image_and_chart_with_the_certificate(pushed, chart, home):
    for reference in references(pushed, chart):
        done = judged(home, NOTATION, reference)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"Successfully verified signature for {reference}\n"


def test_notation_takes_the_trust_policy_that_ratify_is_given(pushed, keys, chart, tmp_path):
    documents = yaml.safe_load_all((REPOSITORY / "manifests" / "image-policies" / "ratify.yaml").read_text())
    (policy,) = (document["spec"]["parameters"]["trustPolicyDoc"] for document in documents if is_verifier(document))
    home = verifier(tmp_path / "ratify", keys, pushed, json.dumps(policy))
    index, *platforms, of_chart = references(pushed, chart)

    assert [judged(home, NOTATION, reference).returncode for reference in (index, *platforms)] == [0, 0, 0]
    refused = judged(home, NOTATION, of_chart)  # no pod runs it, so no policy names its repository
    assert "registryScopes" in refused.stderr


def is_verifier(manifest: dict) -> bool:
    return manifest["kind"] == "Verifier"


def test_a_key_of_ed25519_signs_for_cosign(pushed, keys, chart, tmp_path):
    private, public = tmp_path / "ed25519.key", tmp_path / "ed25519.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    home = verifier(tmp_path / "home", keys._replace(public=public), pushed)
    signer, image = load_signer(private), another_image("signed by Ed25519")
    provenance = signed_statement(signer, {**statement(chart), "subject": [named_subject(image)]})
    signed = (
        cosign_signature(signer, IMAGE_NAME, image.manifest),
        cosign_attestations(image.manifest, {PROVENANCE: provenance}),
    )
    reference = push_with(image, signed, tmp_path / "layout", pushed)
    assert [judged(home, command, reference).returncode for command in COSIGN] == [0, 0]


NOT_OF_THE_KEY = {
    "cosign verify": "no matching signatures: invalid signature when validating ASN.1 encoded signature",
    "cosign verify-attestation": "no matching attestations: "
    "accepted signatures do not match threshold, Found: 0, Expected 1",
}
# The error that a program ends with, or why notation refused the only signature.
REASON = re.compile(r"^Error: (.*)|failed verification with error: (.*)", re.MULTILINE)


def refusals(home: Path, reference: str) -> dict[str, str]:
    """Why each command of the page refuses."""
    reasons = {}
    for command in (*COSIGN, NOTATION):
        more = {NOTATION: f"{NOTATION} --verbose"} if command == NOTATION else {}
        done = judged(home, command, reference, **more)
        assert done.returncode != 0, (command, done.stdout)
        reason = REASON.search(done.stderr)
        assert reason, done.stderr
        reasons[command] = reason[1] or reason[2]
    return reasons


def test_a_key_that_signed_nothing_is_refused_by_both(pushed, chart, other_keys, tmp_path):
    home = verifier(tmp_path / "other_keys", other_keys, pushed)
    for reference in references(pushed, chart):
        assert refusals(home, reference) == {
            **NOT_OF_THE_KEY,
            NOTATION: "the signature's certificate chain does not contain any trusted certificate",
        }


@pytest.fixture(scope="module")
def genuine(keys, chart) -> tuple[Artifact, ...]:
    """The signatures of the image, by all three."""
    signer = load_signer(keys.private, keys.certificate)
    return (
        cosign_signature(signer, IMAGE_NAME, IMAGE.manifest),
        cosign_attestations(IMAGE.manifest, {PROVENANCE: signed_statement(signer, statement(chart))}),
        notation_signature(signer, IMAGE.manifest, REVISION.created),
    )


def moved(artifact: Artifact, image: Image, forged: Callable[[Blob], Blob]) -> Artifact:
    """A signature of IMAGE in the place where a program looks for that of another image."""
    settings, *layers = artifact.blobs
    annotations = json.loads(artifact.manifest).get("annotations")
    tag = artifact.tag.replace(named(IMAGE.digest), named(image.digest))
    layers = tuple(map(forged, layers))
    return referrer(artifact.kind, image.manifest, layers, config=settings, annotations=annotations, tag=tag)


def named(digest: str) -> str:
    return digest.replace(":", "-")


def naming(image: Image) -> Callable[[Blob], Blob]:
    """Changes signed content so that it names this image, and leaves the signature as it is."""

    def change(blob: Blob) -> Blob:
        document = json.loads(blob.content)
        if "protected" in document:
            payload = as_json({"targetArtifact": subject_of(image.manifest)})
            document["payload"] = base64.urlsafe_b64encode(payload).rstrip(b"=").decode()
        elif "payload" in document:
            content = {**json.loads(base64.b64decode(document["payload"])), "subject": [named_subject(image)]}
            document["payload"] = base64.b64encode(as_json(content)).decode()
        else:
            document["critical"]["image"]["docker-manifest-digest"] = digest_of(image.manifest)
        return Blob(blob.media_type, as_json(document), blob.annotations)

    return change


def test_an_image_that_was_changed_has_no_signature(pushed, home, tmp_path):
    reference = push_with(another_image("changed"), (), tmp_path / "layout", pushed)

    reasons = refusals(home, reference)
    assert (reasons["cosign verify"], reasons["cosign verify-attestation"]) == (
        "no signatures found",
        "no matching attestations: ",
    )
    assert f'no signature is associated with "{reference}"' in reasons[NOTATION]


def test_the_signature_of_another_digest_is_refused(pushed, home, genuine, tmp_path):
    image = another_image("signatures of another image")
    signed = tuple(moved(artifact, image, lambda blob: blob) for artifact in genuine)
    reference = push_with(image, signed, tmp_path / "layout", pushed)

    assert refusals(home, reference) == {
        "cosign verify": f"no matching signatures: invalid or missing digest in claim: {IMAGE.digest}",
        "cosign verify-attestation": "no matching attestations: no matching subject digest found",
        NOTATION: "content descriptor mismatch",
    }


def test_signed_content_that_was_changed_to_name_the_digest_is_refused(pushed, home, genuine, tmp_path):
    image = another_image("changed content under an old signature")
    signed = tuple(moved(artifact, image, naming(image)) for artifact in genuine)
    reference = push_with(image, signed, tmp_path / "layout", pushed)

    assert refusals(home, reference) == {
        **NOT_OF_THE_KEY,
        NOTATION: "signature is invalid. Error: crypto/ecdsa: verification error",
    }


def test_the_page_names_the_versions_of_the_programs():
    """Those that they print: what was built, and not what a go.mod asks for."""
    versions = {program: printed_version(program) for program in ("cosign", "notation")}

    assert f"cosign {versions['cosign']} and notation {versions['notation']}," in PAGE.read_text()


def printed_version(program: str) -> str:
    printed = subprocess.run([programs(program)[program], "version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"^(?:Git)?Version: +(v[0-9.]+)", printed, re.MULTILINE)
    assert version, printed
    return version[1]


def test_the_registry_lists_inventory_provenance_and_signatures_as_referrers(pushed, chart):
    kinds = {
        reference: {
            manifest["artifactType"]
            for manifest in json.loads(oras("discover", "--format", "json", reference))["manifests"]
        }
        for reference in references(pushed, chart)
    }
    of_both = {
        "application/vnd.in-toto+json",
        "application/vnd.dev.cosign.artifact.sig.v1+json",
        "application/vnd.dev.cosign.artifact.att.v1+json",
        "application/vnd.cncf.notary.signature",
    }
    of_the_index = of_both | {"application/vnd.openvex+json"}
    of_a_platform = of_the_index | {"application/spdx+json", "application/vnd.cyclonedx+json"}
    assert list(kinds.values()) == [of_the_index, of_a_platform, of_a_platform, of_both]


def test_helm_pushes_the_chart_under_the_digest_that_is_signed(registry, chart, tmp_path):
    package = tmp_path / "hermetic-0.1.0.tgz"
    package.write_bytes(chart.package)
    command = [programs("helm")["helm"], "push", package, f"oci://{registry.host}/by-helm", "--plain-http"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"Digest: {chart.digest}" in done.stdout + done.stderr

"""What a registry keeps beside image and chart: in the forms that cosign, Notation, Helm and ORAS read.

Here the signatures are verified by the rules of their specifications, with openssl and PyJWT; in
`test_artifacts_in_registry.py` by cosign and notation themselves.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import tarfile

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from hermetic.signing.envelope import envelope_from
from hermetic.signing.keys import read_public_key, trusted
from hermetic.signing.signatures import is_signed_by, key_named_by
from shipping.signer import load_signer
from testbed.errors import BuildError
from tests.sampled_groups import SHIPPING
from tests.shipping.signed_artifacts import REVISION, artifacts, image_digests, new_chart, statement

pytestmark = SHIPPING


@pytest.fixture(scope="module")
def chart():
    return new_chart()


@pytest.fixture(scope="module")
def files(keys, chart) -> dict[str, bytes]:
    return artifacts(chart, load_signer(keys.private, keys.certificate))


def manifests_of(files: dict[str, bytes], kind: str) -> list[dict]:
    """The manifests of this type in artifacts/."""
    entries = json.loads(files["artifacts/index.json"])["manifests"]
    chosen = [entry["digest"] for entry in entries if entry.get("artifactType") == kind]
    return [json.loads(blob_of(files, digest)) for digest in chosen]


def blob_of(files: dict[str, bytes], digest: str) -> bytes:
    return files[f"artifacts/blobs/sha256/{digest.removeprefix('sha256:')}"]


def test_the_signature_for_cosign_is_the_one_of_its_specification(files, chart, keys, tmp_path):
    """https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md, with openssl in the place of cosign."""
    manifests = manifests_of(files, "application/vnd.dev.cosign.artifact.sig.v1+json")
    assert [manifest["subject"]["digest"] for manifest in manifests] == [*image_digests(), chart.digest]
    for manifest in manifests:
        (layer,) = manifest["layers"]
        payload = blob_of(files, layer["digest"])
        (tmp_path / "payload").write_bytes(payload)
        (tmp_path / "sig").write_bytes(base64.b64decode(layer["annotations"]["dev.cosignproject.cosign/signature"]))
        arguments = ("openssl", "dgst", "-sha256", "-verify", keys.public, "-signature", "sig", "payload")
        assert subprocess.run(arguments, cwd=tmp_path, capture_output=True, check=False).returncode == 0
        critical = json.loads(payload)["critical"]
        assert critical["image"]["docker-manifest-digest"] == manifest["subject"]["digest"]
        assert critical["type"] == "cosign container image signature"


def test_the_signature_for_notation_is_the_one_of_its_specification(files, chart, keys):
    """https://github.com/notaryproject/specifications/blob/main/specs/signature-envelope-jws.md, read by PyJWT."""
    public = load_pem_public_key(keys.public.read_bytes())
    manifests = manifests_of(files, "application/vnd.cncf.notary.signature")
    assert [manifest["subject"]["digest"] for manifest in manifests] == [*image_digests(), chart.digest]
    for manifest in manifests:
        envelope = json.loads(blob_of(files, manifest["layers"][0]["digest"]))
        compact = ".".join(envelope[part] for part in ("protected", "payload", "signature"))
        header = json.loads(decoded(envelope["protected"]))
        assert (header["alg"], header["crit"]) == ("ES256", ["io.cncf.notary.signingScheme"])
        assert header["io.cncf.notary.signingScheme"] == "notary.x509"
        signed, _, signature = compact.rpartition(".")
        assert jwt.get_algorithm_by_name("ES256").verify(signed.encode(), public, decoded(signature))
        assert json.loads(decoded(envelope["payload"])) == {"targetArtifact": manifest["subject"]}
        (certificate,) = envelope["header"]["x5c"]
        thumbprints = json.loads(manifest["annotations"]["io.cncf.notary.x509chain.thumbprint#S256"])
        assert thumbprints == [hashlib.sha256(base64.b64decode(certificate)).hexdigest()]


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_the_chart_names_its_commit_in_the_registry(chart):
    annotations = json.loads(chart.artifact.manifest)["annotations"]
    assert annotations["org.opencontainers.image.revision"] == REVISION.commit
    assert annotations["org.opencontainers.image.created"] == "2026-01-02T00:00:00Z"
    with tarfile.open(fileobj=io.BytesIO(chart.package)) as archive:
        assert all(member.mtime == 0 for member in archive)


def test_without_a_key_there_are_documents_and_no_signature(chart):
    index = json.loads(artifacts(chart, None)["artifacts/index.json"])
    assert not any("cosign" in entry.get("artifactType", "") for entry in index["manifests"])
    assert sum(entry.get("artifactType") == "application/vnd.in-toto+json" for entry in index["manifests"]) == 4


def test_without_a_certificate_there_is_no_signature_for_notation(chart, keys):
    files = artifacts(chart, load_signer(keys.private))
    kinds = {entry.get("artifactType", "") for entry in json.loads(files["artifacts/index.json"])["manifests"]}
    assert "application/vnd.dev.cosign.artifact.sig.v1+json" in kinds
    assert "application/vnd.cncf.notary.signature" not in kinds


def test_a_certificate_of_another_key_and_a_key_that_notation_does_not_know_are_refused(keys, other_keys, tmp_path):
    with pytest.raises(BuildError, match="the first certificate is not one of the key"):
        load_signer(keys.private, other_keys.certificate)
    ed25519 = tmp_path / "ed25519.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", ed25519], check=True)
    with pytest.raises(BuildError, match="Notation knows no Ed25519"):
        load_signer(ed25519, keys.certificate)
    with pytest.raises(BuildError, match="holds no certificates"):
        load_signer(keys.private, keys.public)


def test_the_same_key_and_commit_give_the_same_bytes(files, chart, keys):
    assert artifacts(chart, load_signer(keys.private, keys.certificate)) == files


def test_the_provenance_names_commit_and_locked_hashes(files, chart, keys):
    named = statement(chart)["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {"uri": f"git+{REVISION.source}", "digest": {"gitCommit": REVISION.commit}} in named
    assert {"uri": "file:requirements.lock", "digest": {"sha256": "0" * 64}} in named
    envelopes = [json.loads(content) for content in files.values() if b'"payloadType":' in content]
    public = read_public_key("platform", keys.public.read_text())
    for envelope in map(envelope_from, envelopes):
        assert is_signed_by(key_named_by(envelope, trusted([public])), envelope)
    assert base64.b64decode(envelopes[0]["payload"]).startswith(b'{"_type":"https://in-toto.io/Statement/v1"')

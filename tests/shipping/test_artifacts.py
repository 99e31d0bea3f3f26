"""What a registry keeps beside image and chart: in the forms that cosign, Notation, Helm and ORAS read.

The signatures are verified by the rules of their specifications, with openssl and PyJWT, and where
`python -m testbed programs signatures` was run also by the packages of cosign and notation-go that are behind their
commands, in a real registry.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from hermetic.cli.bundle.layout import ARTIFACTS
from hermetic.cli.bundle.pushes import CHART as CHART_REPOSITORY
from hermetic.signing.envelope import envelope_from
from hermetic.signing.keys import read_public_key, trusted
from hermetic.signing.signatures import is_signed_by, key_named_by
from shipping.artifacts import artifact_files
from shipping.bundle import packaged_chart
from shipping.helm_chart import chart_artifact
from shipping.inventory import VEX, cyclonedx_name, spdx_name
from shipping.layout import layout_files
from shipping.provenance import provenance
from shipping.revision import Revision
from shipping.signer import load_signer
from testbed.errors import BuildError
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, ImageIndex
from testbed.programs import SIGNATURES, is_built, programs
from testbed.registry import Registry
from tests.bundles import VERSION
from tests.oci_images import write_layout
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

REVISION = Revision("0123456789abcdef0123456789abcdef01234567", datetime(2026, 1, 2, tzinfo=UTC))
IMAGE = ImageIndex(
    tuple(
        Image("hermetic", VERSION, (layer_of_files({"a": architecture}),), architecture=architecture)
        for architecture in ("amd64", "arm64")
    )
)
DOCUMENTS = {
    **{spdx_name(image): f'{{"name": "{image.architecture}"}}'.encode() for image in IMAGE.images},
    **{cyclonedx_name(image): b"{}" for image in IMAGE.images},
    VEX: b"{}",
}
IMAGE_NAME, CHART_NAME = "hermetic", CHART_REPOSITORY


class Keys(NamedTuple):
    """A key of P-256 with its certificate, and a key that signed nothing."""

    private: Path
    public: Path
    certificate: Path


def new_keys(folder: Path) -> Keys:
    """As docs/supply-chain.md makes them."""
    folder.mkdir(parents=True)
    keys = Keys(folder / "platform.key", folder / "platform.pub", folder / "platform.crt")
    usage = ("-addext", "keyUsage=critical,digitalSignature", "-addext", "extendedKeyUsage=codeSigning")
    subject = ("-subj", "/C=DE/ST=Hessen/O=Contoso/CN=platform", "-addext", "basicConstraints=critical,CA:FALSE")
    for command in (
        ("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", keys.private),
        ("pkey", "-in", keys.private, "-pubout", "-out", keys.public),
        ("req", "-x509", "-new", "-key", keys.private, "-days", "365", *subject, *usage, "-out", keys.certificate),
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Keys:
    return new_keys(tmp_path_factory.mktemp("keys") / "own")


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> Keys:
    return new_keys(tmp_path_factory.mktemp("keys") / "others")


@pytest.fixture(scope="module")
def chart():
    return chart_artifact(packaged_chart(REVISION))


def statement(chart) -> dict:
    digests = {IMAGE_NAME: IMAGE.digest, CHART_NAME: chart.digest}
    digests |= {f"{IMAGE_NAME}/linux/{image.architecture}": image.digest for image in IMAGE.images}
    subjects = {name: digest.partition(":")[2] for name, digest in digests.items()}
    return provenance(subjects, "bundle", REVISION, (), {"requirements.lock": "0" * 64})


@pytest.fixture(scope="module")
def files(keys, chart) -> dict[str, bytes]:
    signer = load_signer(keys.private, keys.certificate)
    return artifact_files(IMAGE, chart, DOCUMENTS, statement(chart), REVISION, signer)


@pytest.fixture(scope="module")
def layout(files, tmp_path_factory) -> Path:
    """The layout of the image with artifacts/ laid over it, as docs/supply-chain.md makes it."""
    over = {name.removeprefix(ARTIFACTS): content for name, content in files.items()}
    return write_layout(tmp_path_factory.mktemp("layout") / "layout", {**layout_files(IMAGE), **over})


@pytest.fixture(scope="module")
def registry(tmp_path_factory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="module")
def pushed(registry, layout, chart) -> str:
    """The registry with image, chart, and all that refers to them."""
    for source, target in tags(chart):
        oras(
            "cp",
            "--recursive",
            "--from-oci-layout",
            f"{layout}:{source}",
            "--to-plain-http",
            f"{registry.host}/{target}",
        )
    return registry.host


def tags(chart) -> Iterator[tuple[str, str]]:
    """Every tag of the layout, with where it belongs in the registry."""
    yield IMAGE.tag, f"{IMAGE_NAME}:{IMAGE.tag}"
    yield f"chart-{IMAGE.tag}", f"{CHART_NAME}:{IMAGE.tag}"
    names = [(IMAGE_NAME, digest) for digest in image_digests()]
    for repository, digest in (*names, (CHART_NAME, chart.digest)):
        for suffix in ("sig", "att"):
            tag = f"{digest.replace(':', '-')}.{suffix}"
            yield tag, f"{repository}:{tag}"


def image_digests() -> list[str]:
    """Of the index and of the image of each platform."""
    return [IMAGE.digest, *(image.digest for image in IMAGE.images)]


def oras(*arguments: str) -> str:
    done = subprocess.run([programs("oras")["oras"], *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def signatures(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [programs("signatures")["signatures"], *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def subjects(host: str, chart) -> list[str]:
    return [*(f"{host}/{IMAGE_NAME}@{digest}" for digest in image_digests()), f"{host}/{CHART_NAME}@{chart.digest}"]


needs_libraries = pytest.mark.skipif(
    not is_built(SIGNATURES), reason="five minutes of CPU: python -m testbed programs signatures"
)


@needs_libraries
def test_cosign_accepts_image_and_chart_with_the_key(pushed, chart, keys):
    for reference in subjects(pushed, chart):
        done = signatures("cosign-verify", keys.public, reference)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["critical"]["image"]["docker-manifest-digest"] == reference.partition("@")[2]


@needs_libraries
def test_cosign_accepts_provenance_and_inventory_with_the_key(pushed, chart, keys):
    for reference in subjects(pushed, chart):
        done = signatures("cosign-verify-attestation", keys.public, "slsaprovenance1", reference)
        assert done.returncode == 0, done.stderr
        printed = json.loads(done.stdout)
        parameters = printed["predicate"]["buildDefinition"]["externalParameters"]
        assert (printed["predicateType"], parameters["revision"]) == ("https://slsa.dev/provenance/v1", REVISION.commit)
    for image, reference in zip(IMAGE.images, subjects(pushed, chart)[1:3], strict=True):
        done = signatures("cosign-verify-attestation", keys.public, "spdxjson", reference)
        assert json.loads(done.stdout)["predicate"] == {"name": image.architecture}


@needs_libraries
def test_notation_accepts_image_and_chart_with_the_certificate(pushed, chart, keys):
    for reference in subjects(pushed, chart):
        done = signatures("notation-verify", keys.certificate, reference)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["digest"] == reference.partition("@")[2]


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


@needs_libraries
def test_a_key_that_signed_nothing_is_refused_by_all_three(pushed, chart, others):
    reference = subjects(pushed, chart)[0]
    for arguments in (
        ("cosign-verify", others.public, reference),
        ("cosign-verify-attestation", others.public, "slsaprovenance1", reference),
        ("notation-verify", others.certificate, reference),
    ):
        assert signatures(*arguments).returncode == 1, arguments


def test_the_registry_lists_inventory_provenance_and_signatures_as_referrers(pushed, chart):
    kinds = {
        reference: {
            manifest["artifactType"]
            for manifest in json.loads(oras("discover", "--plain-http", "--format", "json", reference))["manifests"]
        }
        for reference in subjects(pushed, chart)
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


def test_the_chart_names_its_commit_in_the_registry(chart):
    annotations = json.loads(chart.artifact.manifest)["annotations"]
    assert annotations["org.opencontainers.image.revision"] == REVISION.commit
    assert annotations["org.opencontainers.image.created"] == "2026-01-02T00:00:00Z"
    with tarfile.open(fileobj=io.BytesIO(chart.package)) as archive:
        assert all(member.mtime == 0 for member in archive)


def test_without_a_key_there_are_documents_and_no_signature(chart):
    index = json.loads(
        artifact_files(IMAGE, chart, DOCUMENTS, statement(chart), REVISION, None)["artifacts/index.json"]
    )
    assert not any("cosign" in entry.get("artifactType", "") for entry in index["manifests"])
    assert sum(entry.get("artifactType") == "application/vnd.in-toto+json" for entry in index["manifests"]) == 4


def test_without_a_certificate_there_is_no_signature_for_notation(chart, keys):
    files = artifact_files(IMAGE, chart, DOCUMENTS, statement(chart), REVISION, load_signer(keys.private))
    kinds = {entry.get("artifactType", "") for entry in json.loads(files["artifacts/index.json"])["manifests"]}
    assert "application/vnd.dev.cosign.artifact.sig.v1+json" in kinds
    assert "application/vnd.cncf.notary.signature" not in kinds


def test_a_certificate_of_another_key_and_a_key_that_notation_does_not_know_are_refused(keys, others, tmp_path):
    with pytest.raises(BuildError, match="the first certificate is not one of the key"):
        load_signer(keys.private, others.certificate)
    ed25519 = tmp_path / "ed25519.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", ed25519], check=True)
    with pytest.raises(BuildError, match="Notation knows no Ed25519"):
        load_signer(ed25519, keys.certificate)
    with pytest.raises(BuildError, match="holds no certificates"):
        load_signer(keys.private, keys.public)


def test_the_same_key_and_commit_give_the_same_bytes(files, chart, keys):
    signer = load_signer(keys.private, keys.certificate)
    assert artifact_files(IMAGE, chart, DOCUMENTS, statement(chart), REVISION, signer) == files


def test_the_provenance_names_commit_and_locked_hashes(files, chart, keys):
    named = statement(chart)["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {"uri": f"git+{REVISION.source}", "digest": {"gitCommit": REVISION.commit}} in named
    assert {"uri": "file:requirements.lock", "digest": {"sha256": "0" * 64}} in named
    envelopes = [json.loads(content) for content in files.values() if b'"payloadType":' in content]
    public = read_public_key("platform", keys.public.read_text())
    for envelope in map(envelope_from, envelopes):
        assert is_signed_by(key_named_by(envelope, trusted([public])), envelope)
    assert base64.b64decode(envelopes[0]["payload"]).startswith(b'{"_type":"https://in-toto.io/Statement/v1"')

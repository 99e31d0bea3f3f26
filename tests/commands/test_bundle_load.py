"""`hermetic bundle load` into the real registry: without and with TLS, by password, by tokens as Azure issues them."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermetic.cli.bundle.opened import opened
from hermetic.cli.bundle.pushes import pushes
from hermetic.registry.pushing import Repository
from hermetic.registry.transport import Endpoint
from hermetic.registry.transport import opened as connected
from shipping.bundle import packaged_chart
from testbed.certificates import Authority, Credential, write_private
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, as_json, digest_of
from testbed.programs import programs
from testbed.registry import PASSWORD, USER, Registry, htpasswd
from testbed.token_issuer import TokenIssuer
from tests.bundles import IMAGE, IMAGE_INDEX, VERSION, content, index_content, sealed, written
from tests.commandline import Ran, hermetic

REFRESH_TOKEN = "a refresh token"


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "HERMETIC_REGISTRY_PASSWORD", "HERMETIC_REGISTRY_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("an authority of registries")


@pytest.fixture(scope="module")
def tls(authority: Authority) -> Credential:
    return authority.server("registry", ["127.0.0.1"])


@pytest.fixture(scope="module")
def ca_file(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_private(tmp_path_factory.mktemp("ca") / "ca.crt", authority.certificate)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {**content(), f"chart/hermetic-{VERSION}.tgz": packaged_chart()}
    return written(tmp_path_factory.mktemp("bundle") / "b.tar", sealed(files))


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry(tmp_path) as registry:
        yield registry


def loaded(bundle: Path, registry: Registry, *options: str | Path, stdin: str = "") -> Ran:
    return hermetic("bundle", "load", bundle, "--to", registry.host, *options, stdin=stdin)


def refused(ran: Ran, message: str, fix: str) -> None:
    assert (ran.code, ran.out, len(ran.errors)) == (4, "", 1), ran.err
    assert message in ran.errors[0]
    assert fix in ran.fixes[0]
    assert PASSWORD not in ran.err
    assert REFRESH_TOKEN not in ran.err


def test_image_and_chart_are_pushed_under_their_digests_and_a_second_run_sends_nothing(
    bundle: Path, registry: Registry
) -> None:
    ran = loaded(bundle, registry, "--plain-http", "--prefix", "platform/gpu", "-o", "json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    image, chart = report["pushed"]
    assert (image["kind"], image["digest"]) == ("image", IMAGE.digest)
    assert image["reference"] == f"{registry.host}/platform/gpu/hermetic:{VERSION}@{IMAGE.digest}"
    assert chart["reference"].startswith(f"{registry.host}/platform/gpu/charts/hermetic:{VERSION}@sha256:")
    for pushed in report["pushed"]:
        resolve = [programs("oras")["oras"], "resolve", "--plain-http", pushed["reference"].partition("@")[0]]
        assert subprocess.run(resolve, capture_output=True, text=True, check=True).stdout.strip() == pushed["digest"]
    again = loaded(bundle, registry, "--plain-http", "--prefix", "platform/gpu", "-o", "json")
    assert again.out == ran.out
    assert ": pushed" in ran.err
    assert ": pushed" not in again.err
    assert again.err.count(": there already") == ran.err.count(": pushed")


def test_an_index_is_pushed_with_the_image_of_every_platform_and_each_can_be_pulled(
    registry: Registry, tmp_path: Path
) -> None:
    files = {**index_content(), f"chart/hermetic-{VERSION}.tgz": packaged_chart()}
    ran = loaded(written(tmp_path / "b.tar", sealed(files)), registry, "--plain-http", "-o", "json")
    assert ran.code == 0, ran.err
    pushed = [(push["kind"], push["digest"]) for push in json.loads(ran.out)["pushed"]]
    platforms = [("platform", image.digest) for image in IMAGE_INDEX.images]
    assert pushed[:-1] == [*platforms, ("image", IMAGE_INDEX.digest)]
    reference = f"{registry.host}/hermetic:{VERSION}"
    for image in IMAGE_INDEX.images:
        resolve = ["resolve", "--plain-http", "--platform", f"linux/{image.architecture}", reference]
        done = subprocess.run([programs("oras")["oras"], *resolve], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == image.digest


def test_helm_pulls_the_chart_that_was_pushed_and_its_command_is_printed(
    bundle: Path, registry: Registry, tmp_path: Path
) -> None:
    ran = loaded(bundle, registry, "--plain-http")
    assert ran.code == 0, ran.err
    chart = f"oci://{registry.host}/charts/hermetic"
    helm = [programs("helm")["helm"], "pull", chart, "--version", VERSION, "--plain-http"]
    done = subprocess.run(helm, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"hermetic-{VERSION}.tgz").read_bytes() == packaged_chart()
    (command,) = (line for line in ran.err.splitlines() if line.startswith("# next: "))
    assert command.startswith(f"# next: helm install hermetic {chart} --version {VERSION} --namespace hermetic-system ")
    assert f"--set image.digest={IMAGE.digest}" in command


def test_a_registry_with_tls_and_a_password_takes_it_and_refuses_others(
    bundle: Path, tls: Credential, ca_file: Path, tmp_path: Path
) -> None:
    with Registry(tmp_path, tls=tls, auth=htpasswd(tmp_path)) as registry:
        login = ("--ca-file", ca_file, "--username", USER, "--password-stdin")
        refused(loaded(bundle, registry, "--ca-file", ca_file), "asks for a login, and no credentials", "--username")
        refused(
            loaded(bundle, registry, *login, stdin="other\n"), "refuses the credentials of standard input", "--user"
        )
        refused(loaded(bundle, registry, *login[2:], stdin=PASSWORD), "its certificate is not trusted", "--ca-file")
        refused(loaded(bundle, registry, "--plain-http"), "400", "")
        ran = loaded(bundle, registry, *login, stdin=f"{PASSWORD}\n")
        assert ran.code == 0, ran.err


def test_a_registry_without_tls_is_named_with_the_option_for_it(bundle: Path, registry: Registry) -> None:
    refused(loaded(bundle, registry), "does not answer with TLS", "--plain-http")


def docker_config(folder: Path, host: str, entry: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"auths": {host: entry}}))


def test_the_file_of_docker_login_and_the_environment_are_used(
    bundle: Path, tls: Credential, ca_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry(tmp_path, tls=tls, auth=htpasswd(tmp_path)) as registry:
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        docker_config(tmp_path / "docker", registry.host, {"auth": auth})
        ran = loaded(bundle, registry, "--ca-file", ca_file)
        assert ran.code == 0, ran.err
        docker_config(tmp_path / "docker", "other.example", {"auth": auth})
        refused(loaded(bundle, registry, "--ca-file", ca_file), "no credentials", "--username")
        monkeypatch.setenv("HERMETIC_REGISTRY_USERNAME", USER)
        monkeypatch.setenv("HERMETIC_REGISTRY_PASSWORD", PASSWORD)
        ran = loaded(bundle, registry, "--ca-file", ca_file)
        assert ran.code == 0, ran.err


def test_a_token_of_azure_is_exchanged_and_the_registry_takes_what_is_issued(
    bundle: Path, tls: Credential, ca_file: Path, tmp_path: Path
) -> None:
    """As `az acr login --expose-token | hermetic bundle load --password-stdin`: no user name is typed."""
    with (
        TokenIssuer(tmp_path, tls=tls, refresh_token=REFRESH_TOKEN) as issuer,
        Registry(tmp_path, tls=tls, auth=issuer.auth) as registry,
    ):
        options = ("--ca-file", ca_file, "--password-stdin")
        refused(loaded(bundle, registry, *options, stdin="an old token"), "401", "--username")
        ran = loaded(bundle, registry, *options, stdin=f"{REFRESH_TOKEN}\n")
        assert ran.code == 0, ran.err
        assert {method for method, _ in issuer.requests} == {"POST"}


def test_a_password_gets_a_token_and_docker_s_identity_token_is_a_refresh_token(
    bundle: Path, tls: Credential, ca_file: Path, tmp_path: Path
) -> None:
    with (
        TokenIssuer(tmp_path, tls=tls, refresh_token=REFRESH_TOKEN, user=USER, password=PASSWORD) as issuer,
        Registry(tmp_path, tls=tls, auth=issuer.auth) as registry,
    ):
        login = ("--ca-file", ca_file, "--username", USER, "--password-stdin")
        ran = loaded(bundle, registry, *login, stdin=PASSWORD)
        assert ran.code == 0, ran.err
        assert {method for method, _ in issuer.requests} == {"GET"}
        docker_config(tmp_path / "docker", registry.host, {"identitytoken": REFRESH_TOKEN})
        ran = loaded(bundle, registry, "--ca-file", ca_file)
        assert ran.code == 0, ran.err
        assert issuer.requests[-1] == ("POST", "")


def test_a_layer_of_several_chunks_and_what_refers_to_an_image_arrive(registry: Registry, tmp_path: Path) -> None:
    """A second layout as `artifacts/`: a manifest with a subject is listed where the registry has no referrers API."""
    image = Image("hermetic", VERSION, (layer_of_files({"a": "x" * 9_000_000}),), architecture="amd64")
    blob, empty = b"signature", b"{}"
    referrer = as_json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/vnd.example.signature",
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest_of(empty), "size": 2},
            "layers": [{"mediaType": "text/plain", "digest": digest_of(blob), "size": len(blob)}],
            "subject": {"mediaType": "", "digest": image.digest, "size": len(image.manifest)},
        }
    )
    entry = {"digest": image.digest, "size": len(image.manifest)}
    tag = f"sha256-{image.digest[7:]}.sig"
    signature = {"digest": digest_of(referrer), "size": len(referrer)}
    named = {**signature, "annotations": {"org.opencontainers.image.ref.name": tag}}
    index = as_json({"schemaVersion": 2, "manifests": [named, entry]})
    blobs_by_digest = {digest_of(blob): blob for blob in (referrer, blob, empty)}
    root = {digest_of(blob): blob for blob in (image.manifest, image.config, image.layers[0].tar)}
    file = written(
        tmp_path / "b.tar",
        {
            "artifacts/index.json": index,
            **{f"artifacts/blobs/sha256/{digest[7:]}": blob for digest, blob in blobs_by_digest.items()},
            "index.json": as_json({"schemaVersion": 2, "manifests": [entry]}),
            **{f"blobs/sha256/{digest[7:]}": blob for digest, blob in root.items()},
        },
    )
    with opened(file, file.stat()) as files, connected(Endpoint(registry.host, plain_http=True), None) as client:
        planned = pushes(files, image.digest, VERSION)
        for push in planned:
            repository = Repository(client, push.repository)
            assert all(repository.push_blob(part) for part in push.blobs)
            repository.push_manifest(push.manifest)
            repository.verify(push.manifest, push.blobs)
    assert [push.manifest.digest for push in planned] == [image.digest, digest_of(referrer)]
    discover = ["discover", "--plain-http", "--format", "json", f"{registry.host}/hermetic@{image.digest}"]
    done = subprocess.run([programs("oras")["oras"], *discover], capture_output=True, text=True, check=True)
    assert digest_of(referrer) in done.stdout
    resolve = ["resolve", "--plain-http", f"{registry.host}/hermetic:{tag}"]
    done = subprocess.run([programs("oras")["oras"], *resolve], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == digest_of(referrer)

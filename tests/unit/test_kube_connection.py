"""Finding the API server: the pod's service account, kubeconfigs with their contexts, credential plug-ins, TLS."""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hermetic.errors import InputError, Unreachable
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import find_connection, from_kubeconfig, from_pod

NOW = datetime.datetime.now(datetime.UTC)


def write_self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own CA, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api-server")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(hours=1))
        .not_valid_after(NOW + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "ca.crt", folder / "api.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate_file, key_file


@dataclass
class TlsServer:
    """Answers every request with a version; remembers the Authorization headers."""

    account: Path
    port: int = 0
    authorizations: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.authorizations.append(request.headers.get("Authorization", ""))
        return web.json_response({"major": "1", "minor": "36"})

    @property
    def environ(self) -> dict[str, str]:
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.port)}


@pytest.fixture
async def pod(tmp_path: Path) -> AsyncIterator[TlsServer]:
    """What a pod finds: an API server over TLS and a mounted service account."""
    certificate, key = write_self_signed(tmp_path)
    (tmp_path / "token").write_text("first")
    (tmp_path / "namespace").write_text("hermetic-system")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = TlsServer(tmp_path)
    app = web.Application()
    app.router.add_get("/version", server.handle)
    running = TestServer(app, scheme="https")
    await running.start_server(ssl=context)
    assert running.port
    server.port = running.port
    yield server
    await running.close()


def write_kubeconfig(path: Path, user: dict[str, Any] | None = None, **cluster: Any) -> Path:
    """A kubeconfig with the contexts `here` (current, namespace models) and `there`."""
    users = [{"name": "me", "user": user}] if user is not None else []
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "one", "user": "me", "namespace": "models"}},
            {"name": "there", "context": {"cluster": "two", "user": "me"}},
        ],
        "clusters": [
            {"name": "one", "cluster": {"server": "https://one.example:6443", **cluster}},
            {"name": "two", "cluster": {"server": "https://two.example:6443"}},
        ],
        "users": users,
    }
    path.write_text(yaml.safe_dump(config))
    return path


def plug_in(folder: Path, *statuses: dict[str, Any]) -> dict[str, Any]:
    """A kubeconfig user whose credential plug-in gives these answers in turn, then fails."""
    answers = folder / "answers.json"
    answers.write_text(json.dumps(statuses))
    program = folder / "plug_in.py"
    program.write_text(
        "import json, pathlib, sys\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "first, *rest = json.loads(file.read_text()) or sys.exit('no more tokens')\n"
        "file.write_text(json.dumps(rest))\n"
        "version = 'client.authentication.k8s.io/v1'\n"
        "print(json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': first}))\n"
    )
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": [str(program), str(answers)]}}


# --- in a pod ---------------------------------------------------------------------------------------------------------


async def test_a_pod_reaches_its_api_server_over_tls_and_knows_its_namespace(pod: TlsServer) -> None:
    connection = await find_connection(environ=pod.environ, service_account=pod.account)
    assert connection.server == f"https://127.0.0.1:{pod.port}"
    assert connection.namespace == "hermetic-system"
    async with KubernetesApi(connection) as api:
        assert await api.server_version() == (1, 36)
    assert pod.authorizations == ["Bearer first"]


async def test_a_pod_speaks_to_its_api_server_without_the_official_client(
    pod: TlsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ["kubernetes", *(name for name in sys.modules if name.startswith("kubernetes."))]:
        monkeypatch.setitem(sys.modules, module, None)  # an import of it fails
    async with KubernetesApi(await find_connection(environ=pod.environ, service_account=pod.account)) as api:
        assert await api.server_version() == (1, 36)


async def test_a_rotated_service_account_token_is_used_by_the_next_request(pod: TlsServer) -> None:
    async with KubernetesApi(from_pod(pod.environ, pod.account)) as api:
        await api.server_version()
        (pod.account / "token").write_text("second\n")  # a newline would make the header invalid
        await api.server_version()
    assert pod.authorizations == ["Bearer first", "Bearer second"]


async def test_a_token_that_vanishes_makes_the_api_server_unreachable(pod: TlsServer) -> None:
    async with KubernetesApi(from_pod(pod.environ, pod.account)) as api:
        (pod.account / "token").unlink()
        with pytest.raises(Unreachable, match="token cannot be read"):
            await api.server_version()


async def test_an_api_server_with_another_certificate_is_not_spoken_to(pod: TlsServer, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_self_signed(other)
    (other / "token").write_text("first")
    async with KubernetesApi(from_pod(pod.environ, other)) as api:
        with pytest.raises(Unreachable, match="TLS failed") as unreachable:
            await api.server_version()
    assert "check the CA" in unreachable.value.fix
    assert pod.authorizations == []


def test_an_ipv6_service_address_becomes_a_valid_url(tmp_path: Path) -> None:
    write_self_signed(tmp_path)
    (tmp_path / "token").write_text("t")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert from_pod(environ, tmp_path).server == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("missing", "environ", "cause"),
    [
        ("token", {"KUBERNETES_SERVICE_PORT": "443"}, "token, or it is empty"),
        ("ca.crt", {"KUBERNETES_SERVICE_PORT": "443"}, "ca.crt, or it is empty"),
        ("namespace", {}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set"),
        ("namespace", {"KUBERNETES_SERVICE_PORT": ""}, "are not both set"),
    ],
)
def test_a_pod_without_a_mounted_service_account_is_told_so(
    tmp_path: Path, missing: str, environ: dict[str, str], cause: str
) -> None:
    write_self_signed(tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("hermetic-system")
    (tmp_path / missing).unlink()
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", **environ}
    with pytest.raises(Unreachable, match=f"service account is incomplete: .*{cause}") as unreachable:
        from_pod(environ, tmp_path)
    assert "automountServiceAccountToken" in unreachable.value.fix


@pytest.mark.parametrize("empty", ["token", "ca.crt"])
def test_an_empty_file_of_a_service_account_is_a_missing_one(tmp_path: Path, empty: str) -> None:
    write_self_signed(tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / empty).write_text("")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(Unreachable, match=f"{empty}, or it is empty"):
        from_pod(environ, tmp_path)


async def test_a_ca_that_is_no_certificate_is_an_error_with_a_remedy(pod: TlsServer) -> None:
    (pod.account / "ca.crt").write_text("not a certificate")
    with pytest.raises(Unreachable, match="certificates for"):
        KubernetesApi(from_pod(pod.environ, pod.account))


# --- kubeconfigs ------------------------------------------------------------------------------------------------------


async def test_the_current_context_is_used_unless_another_is_named(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", {"token": "t"})
    here, there = await from_kubeconfig(str(path)), await from_kubeconfig(str(path), "there")
    assert (here.server, here.namespace) == ("https://one.example:6443", "models")
    assert (there.server, there.namespace) == ("https://two.example:6443", "")
    assert await there.authorization() == "Bearer t"


async def test_loading_a_kubeconfig_never_writes_it(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", {"token": "t"})
    before = path.read_bytes()
    await from_kubeconfig(str(path))
    assert path.read_bytes() == before


async def test_a_kubeconfig_keeps_its_tls_words(tmp_path: Path) -> None:
    path = write_kubeconfig(
        tmp_path / "config",
        {"token": "t"},
        **{"insecure-skip-tls-verify": True, "tls-server-name": "api.internal", "proxy-url": "http://jump:3128"},
    )
    connection = await from_kubeconfig(str(path))
    assert (connection.verify, connection.tls_server_name) == (False, "api.internal")
    assert connection.proxy == "http://jump:3128"  # named for this cluster by its owner, unlike HTTPS_PROXY


@pytest.mark.parametrize(
    ("text", "context", "says"),
    [
        ("{", None, "is not a kubeconfig: it has no contexts"),
        ("just words", None, "is not a kubeconfig: it has no contexts"),
        ("", None, "is not a kubeconfig: it has no contexts"),
        ("apiVersion: v1\nkind: Config\n", None, "has no contexts"),
        ("contexts: [{name: production}]", None, "has no current-context"),
        (None, "elsewhere", "has no context 'elsewhere'"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_says_which_and_why(
    tmp_path: Path, text: str | None, context: str | None, says: str
) -> None:
    path = write_kubeconfig(tmp_path / "config", {"token": "t"})
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=says) as unusable:
        await from_kubeconfig(str(path), context)
    assert str(path) in unusable.value.message


async def test_a_user_without_credentials_is_not_taken_for_an_anonymous_one(tmp_path: Path) -> None:
    empty = write_kubeconfig(tmp_path / "empty", {})
    with pytest.raises(Unreachable, match="its user holds none"):
        await from_kubeconfig(str(empty))
    missing = write_kubeconfig(tmp_path / "missing", None)
    with pytest.raises(InputError, match=r"kubeconfig .*/missing cannot be used"):
        await from_kubeconfig(str(missing))


@pytest.mark.filterwarnings("ignore:datetime:DeprecationWarning")  # the library's, from Python 3.12 on
async def test_a_plug_in_gives_the_token_and_is_not_run_again_while_it_lasts(tmp_path: Path) -> None:
    later = (NOW + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plug_in(tmp_path, {"token": "one", "expirationTimestamp": later})
    connection = await from_kubeconfig(str(write_kubeconfig(tmp_path / "config", user)))
    assert [await connection.authorization() for _ in range(2)] == ["Bearer one", "Bearer one"]


@pytest.mark.filterwarnings("ignore:datetime:DeprecationWarning")  # the library's, from Python 3.12 on
async def test_a_plug_in_is_run_again_when_its_token_has_ended(tmp_path: Path) -> None:
    over = (NOW - datetime.timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plug_in(tmp_path, {"token": "one", "expirationTimestamp": over}, {"token": "two"})
    connection = await from_kubeconfig(str(write_kubeconfig(tmp_path / "config", user)))
    assert await connection.authorization() == "Bearer two"
    with pytest.raises(Unreachable, match="gave no login: exit code 1 no more tokens"):
        await connection.authorization()


async def test_a_plug_in_that_fails_is_not_taken_for_an_anonymous_user(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", plug_in(tmp_path))
    with pytest.raises(Unreachable, match=r"credential plug-in of the kubeconfig .* gave no login"):
        await from_kubeconfig(str(path))


# --- which of them ----------------------------------------------------------------------------------------------------


async def test_what_is_named_comes_before_the_environment_and_that_before_the_pod(
    pod: TlsServer, tmp_path: Path
) -> None:
    mine = write_kubeconfig(tmp_path / "mine", {"token": "t"})
    other = tmp_path / "other"
    other.write_text(mine.read_text().replace("one.example", "other.example"))
    environ = pod.environ | {"KUBECONFIG": str(other)}
    named = await find_connection(kubeconfig=str(mine), environ=environ, service_account=pod.account)
    assert named.server == "https://one.example:6443"
    from_environment = await find_connection(environ=environ, service_account=pod.account)
    assert from_environment.server == "https://other.example:6443"
    in_pod = await find_connection(environ=pod.environ, service_account=pod.account)
    assert in_pod.server == f"https://127.0.0.1:{pod.port}"


async def test_without_any_kubeconfig_the_error_says_where_it_looked(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "missing")
    with pytest.raises(Unreachable, match=nowhere):
        await find_connection(environ={"KUBECONFIG": nowhere})

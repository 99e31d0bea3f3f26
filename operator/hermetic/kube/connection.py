"""How to reach the API server: from inside a pod, or through a kubeconfig and one of its contexts.

The official client reads kubeconfigs, with their credential plug-ins. It is imported for them only: the operator in a
pod reads the mounted service account itself, and saves 12 MiB.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from hermetic.errors import InputError, Unreachable

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LONGEST_EXCERPT = 300
_LIBRARY = logging.getLogger("kubernetes.aio.config")
_GET_KUBELOGIN = (
    "install kubelogin, and have it in PATH: 'az aks install-cli' brings it; without internet copy the program of its "
    "release here"
)


@dataclass(frozen=True, slots=True)
class Connection:
    """Address and credentials of the API server.

    `authorization` gives the value of the Authorization header as of now ("" with a client certificate, or for an
    anonymous caller); it is called before every request, so that a rotated token is used at once. `namespace` is the
    pod's own, or the context's ("" where it names none).
    """

    server: str
    authorization: Callable[[], Awaitable[str]]
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    namespace: str = ""


async def find_connection(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection to use: the named kubeconfig, else $KUBECONFIG, else the pod's own, else ~/.kube/config.

    Raises InputError for a kubeconfig or context that cannot be used, Unreachable for files that are not there.
    """
    named = kubeconfig or environ.get("KUBECONFIG")
    if not named and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return from_pod(environ, service_account)
    return await from_kubeconfig(named or str(Path.home() / ".kube" / "config"), context)


def from_pod(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Connection:
    """The connection that Kubernetes gives to a pod: two environment variables and the mounted service account."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    token_file, ca_file = service_account / "token", service_account / "ca.crt"
    missing = [f"there is no {file}, or it is empty" for file in (token_file, ca_file) if not _has_content(file)]
    if not host or not port:
        missing.insert(0, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set")
    if missing:
        raise Unreachable(
            f"this process looks like a pod's, but its service account is incomplete: {', '.join(missing)}",
            fix="set automountServiceAccountToken on the operator's pod, or pass --kubeconfig",
        )

    # The kubelet replaces the file before the token expires, and a revoked token must not be used. Reading it for every
    # request costs 20 microseconds.
    async def authorization() -> str:
        return f"Bearer {_mounted(token_file)}"

    namespace_file = service_account / "namespace"
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorization=authorization,
        ca_file=str(ca_file),
        namespace=_mounted(namespace_file) if namespace_file.is_file() else "",
    )


async def from_kubeconfig(path: str, context: str | None = None) -> Connection:
    """The connection of one context (the current one by default); `path` may be a list, as $KUBECONFIG may."""
    if not _any_file(path):
        raise Unreachable(f"no kubeconfig at {path}", fix="pass --kubeconfig PATH or set KUBECONFIG")
    if context and (contexts := _contexts(path)) and context not in contexts:
        near = difflib.get_close_matches(context, contexts, n=1)
        raise InputError(
            f"the kubeconfig {path} has no context '{context}'" + (f"; did you mean '{near[0]}'?" if near else ""),
            fix=f"--context takes one of: {', '.join(contexts)}",
        )
    client, config = _client()
    configuration, captured = client.Configuration(), _LoggedError()
    try:
        with captured:
            loader = await config.load_kube_config(
                config_file=path, context=context, client_configuration=configuration, persist_config=False
            )
    # For bad files the library raises its own exception, KeyError, YAML errors and base64 errors alike.
    except Exception as error:
        raise _unusable(path, context, error) from error
    # The library only logs a plug-in that fails; the request would continue unauthenticated.
    if configuration.host.startswith("https") and not configuration.api_key and not configuration.cert_file:
        raise _without_credentials(path, captured.message)
    return Connection(
        server=configuration.host,
        authorization=_authorization(loader, configuration, path),
        ca_file=configuration.ssl_ca_cert,
        certificate_file=configuration.cert_file,
        key_file=configuration.key_file,
        verify=configuration.verify_ssl,
        tls_server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
        namespace=str(loader.current_context["context"].get("namespace") or ""),
    )


def _client() -> tuple[Any, Any]:
    """The modules `client` and `config` of the official client. Raises InputError in the operator's image."""
    try:
        from kubernetes.aio import client, config
    except ModuleNotFoundError as error:
        raise InputError(
            "the operator's image reads no kubeconfig: in a pod it uses the mounted service account",
            fix="use the command line, hermetic.pyz: 'make cli' builds it, and the bundle has it in cli/",
        ) from error
    return client, config


def _authorization(loader: Any, configuration: Any, path: str) -> Callable[[], Awaitable[str]]:
    """The token of a kubeconfig user; an exec plug-in is run again when its token has expired."""

    async def authorization() -> str:
        if hasattr(loader, "exec_plugin_expiry"):  # only a plug-in whose token has an expiry is run again
            with _LoggedError() as captured:
                renewed = await loader.load_from_exec_plugin()
            if not renewed:
                raise _without_credentials(path, captured.message)
            return str(loader.token)
        return str(configuration.api_key.get("BearerToken", ""))

    return authorization


class _LoggedError(logging.Handler):
    """Log handler that keeps the library's last message about a credential plug-in: it logs a failure and continues."""

    def __init__(self) -> None:
        super().__init__()
        self.message = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the last message."""
        self.message = " ".join(record.getMessage().split())

    def __enter__(self) -> Self:
        _LIBRARY.addHandler(self)
        _LIBRARY.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        _LIBRARY.removeHandler(self)
        _LIBRARY.propagate = True


def _without_credentials(path: str, message: str) -> Unreachable:
    """Why a kubeconfig gave no credentials: the error of its plug-in, "" without one."""
    if (missing := re.search(r"No such file or directory: '(.+)'", message)) is not None:
        program = missing[1]
        return Unreachable(
            f"the kubeconfig {path} gets its login from the program '{program}', which is not installed here",
            fix=_GET_KUBELOGIN if Path(program).name == "kubelogin" else f"install {program}, and have it in PATH",
        )
    message = re.sub(r"^exec: process returned (\d+)(?:\. b'(.*)')?$", r"exit code \1 \2", message).strip()
    if message:
        return Unreachable(
            f"the credential plug-in of the kubeconfig {path} gave no login: {message[:LONGEST_EXCERPT]}",
            fix="log in again ('az login' for a cluster of AKS); "
            "'kubectl get --raw /version' with the same kubeconfig must work",
        )
    return Unreachable(
        f"the kubeconfig {path} gives no credentials: its user holds none",
        fix="'az aks get-credentials' writes a kubeconfig with a login",
    )


def _unusable(path: str, context: str | None, error: Exception) -> InputError:
    """Says what a person can act on; the library's own words otherwise."""
    contexts = _contexts(path)
    if not contexts:
        message = f"the file {path} is not a kubeconfig: it has no contexts"
        return InputError(message, fix="pass --kubeconfig PATH or set KUBECONFIG")
    if not context and not _current_context(path):
        message = f"the kubeconfig {path} has no current-context"
        return InputError(message, fix=f"pass --context, one of: {', '.join(contexts)}")
    chosen = f"context {context!r} of " if context else ""
    message = f"{chosen}the kubeconfig {path} cannot be used: {type(error).__name__}: {error}"
    return InputError(message, fix="`kubectl config get-contexts` lists what it holds")


def _contexts(paths: str) -> list[str]:
    """The names of all contexts; none where a file cannot be read: the library reports that."""
    names: list[str] = []
    for config in _files(paths):
        with contextlib.suppress(AttributeError, KeyError, TypeError):
            names += [str(context["name"]) for context in config.get("contexts") or ()]
    return names


def _current_context(paths: str) -> str:
    return next((str(config["current-context"]) for config in _files(paths) if config.get("current-context")), "")


def _files(paths: str) -> Iterator[dict[str, Any]]:
    """The objects in these files; what cannot be read is left to the library."""
    for path in filter(None, paths.split(os.pathsep)):
        try:
            config = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(config, dict):
            yield config


def _any_file(paths: str) -> bool:
    return any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)


def _has_content(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def _mounted(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Unreachable(f"the service account's {file.name} cannot be read: {error}") from error

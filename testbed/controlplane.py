"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, controller-manager, scheduler, kwok.

    with ControlPlane() as plane:
        subprocess.run(["kubectl", "--kubeconfig", plane.kubeconfig, "get", "nodes"])

`python -m testbed controlplane` runs one in the foreground.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NoReturn, Self

from testbed import audit, kwok
from testbed.api import Api
from testbed.certificates import Authority, Credential, service_account_keys, write_kubeconfig
from testbed.console import say
from testbed.errors import ApiError, ComponentError
from testbed.processes import Component, free_port, wait_until
from testbed.programs import CONTROL_PLANE_FAMILIES, OLDEST_KUBERNETES, programs

SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
# Collecting garbage was a fifth of what the API server computed; its memory is twice a few hundred megabytes at most.
GO_ENVIRONMENT = {"GOGC": "300"}
API_NAMES = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a caller may want different. The defaults are a cluster that only this machine's loopback can reach.

    audit_users: None keeps no audit log, () records the requests of all users, else only those of the named users.
    calls_kubelets: the API server gets a credential for kubelets, so logs and exec work on real nodes.
    start_seconds: how long the API server may take to be ready; a machine that others use as well is slower.
    oldest_kubernetes: API server, controller-manager and scheduler are of the oldest release that is supported.
    """

    bind_address: str = "127.0.0.1"
    advertise_address: str = "127.0.0.1"
    endpoint_reconciler: str = "none"
    admission_plugins: tuple[str, ...] = ()
    calls_kubelets: bool = False
    fake_nodes: bool = True
    audit_users: tuple[str, ...] | None = None
    start_seconds: float = 60.0
    oldest_kubernetes: bool = False
    extra_apiserver_args: tuple[str, ...] = ()
    extra_controller_manager_args: tuple[str, ...] = ()


@dataclass
class ControlPlane:
    """One cluster. A folder that the caller names is kept after `stop()`, one of our own is removed."""

    settings: Settings = field(default_factory=Settings)
    folder: Path | None = None

    def __post_init__(self) -> None:
        self._own_folder = self.folder is None
        self._components: list[Component] = []
        self._programs: Mapping[str, Path] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Builds what is missing, starts everything and returns when the cluster is usable.

        Call it from a thread that runs as long as the cluster should: the programs end with it.
        Raises CannotRunError, BuildError or ComponentError; nothing is left running then.
        """
        older = (OLDEST_KUBERNETES,) if self.settings.oldest_kubernetes else ()
        self._programs = programs(*CONTROL_PLANE_FAMILIES, *older)
        try:
            self._prepare()
            self._start_etcd()
            self._start_apiserver()
            self._start_controllers()
            self._wait_until_usable()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends every program at once; there is nothing in them worth a graceful end."""
        for component in reversed(self._components):
            component.stop(signal.SIGKILL)
        if self._own_folder and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    # ------------------------------------------------------------------ what callers use

    @property
    def kubeconfig(self) -> Path:
        """Of the administrator (system:masters)."""
        return self._folder / "admin.kubeconfig"

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def authority(self) -> bytes:
        """The certificate, PEM, that the API server's own and all client certificates lead to."""
        return self._authority.certificate

    @property
    def authority_file(self) -> Path:
        return self._pki / "ca.crt"

    @property
    def version(self) -> str:
        """What the running API server says of itself."""
        return str(self._api.get("/version")["gitVersion"])

    @property
    def kubectl(self) -> Path:
        return self._programs["kubectl"]

    @property
    def audit_log(self) -> Path:
        """Of the API server; `audit.requests` reads it. Only there when `audit_users` is set."""
        return self._folder / "audit.log"

    @property
    def pids(self) -> dict[str, int]:
        return {component.name: component.pid for component in self._components if component.pid is not None}

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(self._components)

    def kubeconfig_for(self, user: str, *groups: str, name: str | None = None) -> Path:
        """Writes (once more, if asked again) a kubeconfig for a user with a fresh client certificate."""
        path = self._folder / f"{name or user.replace(':', '-')}.kubeconfig"
        return write_kubeconfig(path, self.server, self.authority, self._authority.client(user, groups))

    def client_credential(self, user: str, *groups: str) -> Credential:
        """A fresh client certificate, for programs that take no kubeconfig."""
        return self._authority.client(user, groups)

    def server_credential(self, name: str, *hosts: str) -> Credential:
        """A server certificate of this cluster's authority, for stand-ins that serve TLS."""
        return self._authority.server(name, hosts)

    def restart_apiserver(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends the API server, abruptly by default, and returns when its successor on the same port is ready."""
        self.stop_apiserver(how)
        self.start_apiserver()

    def stop_apiserver(self, how: signal.Signals = signal.SIGKILL) -> None:
        """An outage that lasts until `start_apiserver()`; with SIGTERM it drains for ten seconds, as in an upgrade."""
        self._apiserver.stop(how, timeout=10)

    def start_apiserver(self) -> None:
        self._apiserver.start()
        wait_until("API server", self._apiserver_ready, [self._apiserver], self.settings.start_seconds)

    def restart_etcd(self) -> None:
        """Kills etcd and starts it again on its data; returns when the API server is ready again."""
        self._etcd.stop(signal.SIGKILL)
        self._etcd.start()
        wait_until("API server", self._apiserver_ready, [self._etcd, self._apiserver], self.settings.start_seconds)

    def raise_if_dead(self) -> None:
        """Raises ComponentError with the log's end when a program ended by itself."""
        for component in self._components:
            if component.exit_code is not None:
                raise ComponentError(f"{component.name} ended with {component.exit_code}\n{component.tail()}")

    # ------------------------------------------------------------------ how it comes up

    def _prepare(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hermetic-controlplane-")) if self.folder is None else self.folder
        self._folder = self.folder.resolve()
        self._pki = self._folder / "pki"
        self._pki.mkdir(parents=True, exist_ok=True)
        self._components = []
        self._port = free_port()
        self._authority = Authority("hermetic-testbed")
        self.authority_file.write_bytes(self.authority)
        self._signing_key, self._verifying_key = service_account_keys(self._pki)
        self.kubeconfig_for("admin", "system:masters", name="admin")
        self._api = Api(self.kubeconfig)

    def _start(self, name: str, command: list[str]) -> Component:
        component = Component(name, [self._programs[name], *command], self._folder / f"{name}.log", GO_ENVIRONMENT)
        self._components.append(component)
        component.start()
        return component

    def _start_etcd(self) -> None:
        self._etcd_url = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        self._etcd = self._start("etcd", [
            f"--data-dir={self._folder}/etcd",
            f"--listen-client-urls={self._etcd_url}", f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync", "--log-level=warn",
        ])  # fmt: skip

    def _start_apiserver(self) -> None:
        self._apiserver = self._start("kube-apiserver", self._apiserver_flags())
        wait_until("API server", self._apiserver_ready, self._components, self.settings.start_seconds)

    def _apiserver_flags(self) -> list[str]:
        hosts = (*API_NAMES, "127.0.0.1", API_SERVICE_ADDRESS, self.settings.advertise_address)
        certificate, key = self._authority.server("kube-apiserver", dict.fromkeys(hosts)).write(self._pki, "apiserver")
        return [
            f"--etcd-servers={self._etcd_url}",
            f"--bind-address={self.settings.bind_address}", f"--secure-port={self._port}",
            f"--advertise-address={self.settings.advertise_address}",
            f"--endpoint-reconciler-type={self.settings.endpoint_reconciler}",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority_file}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self._signing_key}",
            f"--service-account-key-file={self._verifying_key}",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--allow-privileged=true", "--profiling=false",
            *self._front_proxy_flags(), *self._admission_flags(), *self._kubelet_flags(), *self._audit_flags(),
            *self.settings.extra_apiserver_args,
        ]  # fmt: skip

    def _front_proxy_flags(self) -> list[str]:
        # there is no front proxy here, but without these its clients log an error every ten seconds
        return [
            f"--requestheader-client-ca-file={self.authority_file}", "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]  # fmt: skip

    def _admission_flags(self) -> list[str]:
        plugins = ",".join(self.settings.admission_plugins)
        return [f"--enable-admission-plugins={plugins}"] if plugins else []

    def _kubelet_flags(self) -> list[str]:
        if not self.settings.calls_kubelets:
            return []
        credential = self._authority.client("kube-apiserver-kubelet-client", ["system:masters"])
        certificate, key = credential.write(self._pki, "kubelet-client")
        return [
            f"--kubelet-client-certificate={certificate}", f"--kubelet-client-key={key}",
            "--kubelet-preferred-address-types=InternalIP",
        ]  # fmt: skip

    def _audit_flags(self) -> list[str]:
        if self.settings.audit_users is None:
            return []
        policy = audit.write_policy(self._folder / "audit-policy.yaml", self.settings.audit_users)
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}", "--audit-log-maxsize=4096"]

    def _start_controllers(self) -> None:
        self._start("kube-controller-manager", [
            *self._controller_flags("kube-controller-manager"),
            "--use-service-account-credentials=true", f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self.authority_file}", "--allocate-node-cidrs=false",
            "--kube-api-qps=200", "--kube-api-burst=400",
            *self.settings.extra_controller_manager_args,
        ])  # fmt: skip
        self._start("kube-scheduler", self._controller_flags("kube-scheduler"))
        if self.settings.fake_nodes:
            stages = kwok.write_stages(self._folder / "kwok.yaml")
            self._start("kwok", [f"--kubeconfig={self.kubeconfig}", f"--config={stages}", *kwok.FLAGS])

    def _controller_flags(self, name: str) -> list[str]:
        config = self.kubeconfig_for(f"system:{name}", name=name)
        return [
            f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
            "--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--leader-elect=false",
        ]  # fmt: skip

    def _wait_until_usable(self) -> None:
        # the first pod needs its namespace's service account, which the controller-manager makes once it runs
        wait_until("default service account", self._default_account_exists, self._components)

    def _apiserver_ready(self) -> bool:
        try:
            return self._api.text("/readyz") == "ok"
        except (OSError, ApiError):
            return False

    def _default_account_exists(self) -> bool:
        try:
            self._api.get("/api/v1/namespaces/default/serviceaccounts/default")
        except (OSError, ApiError):
            return False
        return True


def main(arguments: list[str]) -> int:
    """`python -m testbed controlplane`: one JSON line on stdout when it is up, then it runs until SIGTERM or SIGINT."""
    argparse.ArgumentParser(prog="python -m testbed controlplane", description=main.__doc__).parse_args(arguments)
    for asked_to_end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_end, _interrupt)
    try:
        with ControlPlane() as plane:
            line = {"kubeconfig": str(plane.kubeconfig), "version": plane.version, "pids": plane.pids}
            print(json.dumps(line), flush=True)
            say(f"running; export KUBECONFIG={plane.kubeconfig}")
            while True:
                plane.raise_if_dead()
                time.sleep(0.5)
    except KeyboardInterrupt:
        say("stopped")
        return 0


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    # a second signal must not cut the clean-up short
    for asked_to_end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_end, signal.SIG_IGN)
    raise KeyboardInterrupt

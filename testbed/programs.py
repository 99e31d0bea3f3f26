"""Builds the Go programs of the test bed, once per version of their sources.

The go.mod and go.sum of `modules/programs` pin every dependency of almost all of them: in one module graph a package
has one version, and is compiled once for every program that uses it (half of what a cold build takes, where each had
its own). `modules/oldest` pins the oldest supported release of Kubernetes, which needs a graph of its own.
A family is what is built together. Its programs land in `${XDG_CACHE_HOME:-~/.cache}/hermetic/<family>-<key>/`, where
the key is a hash of the pins, our own sources and the build flags: a changed pin builds anew, an unchanged one is never
built twice. Old keys may be deleted at will.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.console import say
from testbed.errors import BuildError, CannotRunError
from testbed.processes import bound_to_us

MODULES = Path(__file__).resolve().parent / "modules"
PROGRAMS = MODULES / "programs"
OLDEST = MODULES / "oldest"
KUBE_SCORE = MODULES / "kube-score"
IMAGE_POLICIES = MODULES / "image-policies"
MINIMUM_GO = (1, 26)
GO_ENVIRONMENT = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
PROGRESS_SECONDS = 15.0

KUBERNETES_VERSION = "v1.36.4"
OLDEST_KUBERNETES_VERSION = "v1.32.13"
OLDEST_KUBERNETES = "oldest-kubernetes"
CONTAINERD_VERSION = "v2.2.9"
HELM_VERSION = "v4.2.4"
REGISTRY_VERSION = "v3.1.2"


KWOK_MODULE = "sigs.k8s.io/kwok"
# kwok built as a module has no stages of its own; these come from its module folder
STOCK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


@dataclass(frozen=True)
class Family:
    """Programs that are built together: `packages` by the name of the program; `stamps` is what -X sets.

    `module`: the folder of the go.mod that pins them.
    """

    name: str
    packages: Mapping[str, str]
    tags: str = ""
    stamps: tuple[str, ...] = ()
    module: Path = PROGRAMS

    @property
    def flags(self) -> tuple[str, ...]:
        linker = " ".join(("-s", "-w", *(f"-X {stamp}" for stamp in self.stamps)))
        tags = ("-tags", self.tags) if self.tags else ()
        # -w leaves the debugging information out: not to make it saves the compiler a tenth of its time
        return ("-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", *tags, "-ldflags", linker)

    @property
    def key(self) -> str:
        """Changes when a pin, our own source or a flag does."""
        digest = hashlib.sha256("\0".join((*self.flags, *self.packages, *self.packages.values())).encode())
        ours = (source for package in self.packages.values() for source in (self.module / package).glob("*.go"))
        for source in (self.module / "go.mod", self.module / "go.sum", *sorted(ours)):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
        return digest.hexdigest()[:16]


def _kubernetes_stamps(version: str) -> tuple[str, ...]:
    """Without these /version says v0.0.0, and every version range and skew check above it breaks."""
    major, minor, _ = version.removeprefix("v").split(".")
    return (
        f"k8s.io/component-base/version.gitVersion={version}",
        f"k8s.io/component-base/version.gitMajor={major}",
        f"k8s.io/component-base/version.gitMinor={minor}",
        "k8s.io/component-base/version.gitTreeState=clean",
        "k8s.io/component-base/version.buildDate=2026-01-01T00:00:00Z",
        f"k8s.io/client-go/pkg/version.gitVersion={version}",
    )


def _named(parent: str, *programs: str) -> dict[str, str]:
    """Programs whose packages are named for them."""
    return {program: f"{parent}/{program}" for program in programs}


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "kubernetes",
            _named(
                "k8s.io/kubernetes/cmd",
                "kube-apiserver",
                "kube-controller-manager",
                "kube-scheduler",
                "kubectl",
                "kubelet",
                "kube-proxy",
            ),
            stamps=_kubernetes_stamps(KUBERNETES_VERSION),
        ),
        Family("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
        Family("kwok", _named("sigs.k8s.io/kwok/cmd", "kwok")),
        Family(
            "containerd",
            _named("github.com/containerd/containerd/v2/cmd", "containerd", "containerd-shim-runc-v2", "ctr"),
            tags="no_btrfs,no_devmapper,no_zfs",
            stamps=(f"github.com/containerd/containerd/v2/version.Version={CONTAINERD_VERSION}",),
        ),
        Family("coredns", _named(".", "coredns")),
        Family(
            "helm",
            _named("helm.sh/helm/v4/cmd", "helm"),
            stamps=(f"helm.sh/helm/v4/internal/version.version={HELM_VERSION}",),
        ),
        Family("flux", _named("github.com/fluxcd", "source-controller", "kustomize-controller", "helm-controller")),
        Family("oras", _named("oras.land/oras/cmd", "oras")),
        Family(
            "registry",
            _named(".", "registry"),
            stamps=(f"github.com/distribution/distribution/v3/version.version={REGISTRY_VERSION}",),
        ),
        Family("notation", _named("github.com/notaryproject/notation/cmd", "notation")),
        Family("cosign", _named("github.com/sigstore/cosign/v3/cmd", "cosign")),
        Family(
            OLDEST_KUBERNETES,
            _named("k8s.io/kubernetes/cmd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
            stamps=_kubernetes_stamps(OLDEST_KUBERNETES_VERSION),
            module=OLDEST,
        ),
        Family("celcheck", _named(".", "celcheck"), module=OLDEST),
        Family("kube-score", {"kube-score": "github.com/zegl/kube-score/cmd/kube-score"}, module=KUBE_SCORE),
        Family("ratify", _named(".", "ratify"), module=IMAGE_POLICIES),
    )
}

NEWEST_FAMILIES = tuple(name for name, family in FAMILIES.items() if family.module == PROGRAMS)
CONTROL_PLANE_FAMILIES = ("kubernetes", "etcd", "kwok")
NODE_FAMILIES = (*CONTROL_PLANE_FAMILIES, "containerd", "coredns")


def programs(*families: str) -> dict[str, Path]:
    """Builds what is not yet built and returns the path of every program of the families, by program name.

    Two releases of Kubernetes have programs of the same names: those of the family that is named last.
    """
    return {
        program: folder / program
        for family in map(FAMILIES.__getitem__, families or FAMILIES)
        for folder in (_built(family),)
        for program in family.packages
    }


def go_environment() -> dict[str, str]:
    """The environment for `go` here: this toolchain and these module files, whatever the caller's settings say."""
    return {**os.environ, **GO_ENVIRONMENT}


def cache_folder() -> Path:
    """Where built programs live, outside any checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hermetic"


def require_go() -> None:
    """Raises CannotRunError unless a Go that can build the programs is installed."""
    needed = ".".join(map(str, MINIMUM_GO))
    if shutil.which("go") is None:
        raise CannotRunError(f"Go is not installed: building Kubernetes for the test bed needs Go >= {needed}")
    answer = subprocess.run(
        ["go", "env", "GOVERSION"], env=go_environment(), capture_output=True, text=True, check=True
    )
    match = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    if match is None or (int(match[1]), int(match[2])) < MINIMUM_GO:
        raise CannotRunError(f"Go {answer.stdout.strip()} is too old: the test bed needs Go >= {needed}")


@functools.cache
def module_folder(module: str, pinned_in: str = PROGRAMS.name) -> Path:
    """The folder of a module that a go.mod under `modules/` pins, for its files. Raises CannotRunError without Go."""
    require_go()
    command = ["go", "-C", str(MODULES / pinned_in), "mod", "download", "-json", module]
    answer = subprocess.run(command, env=go_environment(), capture_output=True, text=True, check=False)
    if answer.returncode:
        raise BuildError(f"{module} cannot be downloaded: {answer.stdout.strip()} {answer.stderr.strip()}")
    return Path(json.loads(answer.stdout)["Dir"])


def stock_stages() -> Path:
    """The stages of kwok's module, kept beside the built programs: Go is needed only until they are."""
    sources = "\0".join(STOCK_STAGES).encode() + (PROGRAMS / "go.sum").read_bytes()
    pinned = hashlib.sha256(sources).hexdigest()[:16]
    folder = cache_folder() / f"kwok-stages-{pinned}"
    if not folder.is_dir():
        cache_folder().mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".kwok-stages-", dir=cache_folder()))
        for name in STOCK_STAGES:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(module_folder(KWOK_MODULE) / "kustomize" / "stage" / name, partial / name)
        partial.chmod(0o755)  # as the folders of the programs: a cache may be shared
        try:
            partial.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(partial)
    return folder


def _built(family: Family) -> Path:
    """The folder of a family's programs. Safe against other builders, in this and in other processes."""
    folder = cache_folder() / f"{family.name}-{family.key}"
    if folder.is_dir():
        return folder
    require_go()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with only_builder(family.name):
        if not folder.is_dir():
            for abandoned in folder.parent.glob(f".{family.name}-partial-*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            _build_into(folder, family)
    return folder


@contextlib.contextmanager
def only_builder(name: str) -> Iterator[None]:
    """Holds the right to put `name` into the cache folder; waits, and says so, while another process holds it."""
    with (cache_folder() / f".{name}.lock").open("w") as lock:
        started = time.monotonic()
        reported = started - PROGRESS_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() - reported >= PROGRESS_SECONDS:
                    reported = time.monotonic()
                    say(f"{name}: another process is building it, waiting ({reported - started:.0f} s)")
                time.sleep(0.2)
        yield


def _build_into(folder: Path, family: Family) -> None:
    """Builds beside the final place and renames, so that a half-built folder is never taken for a whole one."""
    partial = Path(tempfile.mkdtemp(prefix=f".{family.name}-partial-", dir=folder.parent))
    try:
        names = list(family.packages)
        output = f"{partial}/{names[0] if len(names) == 1 else ''}"
        packages = family.packages.values()
        _run_go(family, ["go", "build", "-C", str(family.module), *family.flags, "-o", output, *packages], partial)
        missing = [program for program in names if not (partial / program).is_file()]
        if missing:
            raise BuildError(f"{family.name}: go build made no {', '.join(missing)}")
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def run_logged(name: str, doing: str, command: list[str], log: Path, env: Mapping[str, str] | None = None) -> None:
    """Runs a long command to its end, says now and then that it still runs, and writes its output to `log`.

    Raises BuildError with the end of the log where the command fails. `doing`: "building" or the like.
    """
    started = time.monotonic()
    with log.open("wb") as output:
        # its own process group, so that an interrupt ends what it started too
        running = subprocess.Popen(bound_to_us(command), env=env, stdout=output, stderr=output, start_new_session=True)
    try:
        while True:
            try:
                code = running.wait(PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                say(f"{name}: still {doing} ({time.monotonic() - started:.0f} s)")
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, 9)
        running.wait()
        raise
    if code != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise BuildError(f"{name}: {doing} ended with {code}\n{end}")


def _run_go(family: Family, command: list[str], folder: Path) -> None:
    started = time.monotonic()
    say(f"{family.name}: building {', '.join(family.packages)} (a cold build takes minutes; it is kept for next time)")
    run_logged(family.name, "building", command, folder / "build.log", go_environment())
    say(f"{family.name}: built in {time.monotonic() - started:.0f} s")


def main(arguments: list[str]) -> int:
    """`python -m testbed programs [FAMILY ...]`: builds, then prints one `name path` line per program.

    The oldest Kubernetes is built only by name: five minutes of CPU that few runs need.
    """
    parser = argparse.ArgumentParser(prog="python -m testbed programs", description=programs.__doc__)
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; default: {', '.join(NEWEST_FAMILIES)}"
    )
    chosen = parser.parse_args(arguments).families or NEWEST_FAMILIES
    unknown = sorted(set(chosen) - set(FAMILIES))
    if unknown:
        parser.error(f"no such family: {', '.join(unknown)} (there are {', '.join(FAMILIES)})")
    for program, path in programs(*chosen).items():
        print(program, path)
    if "kwok" in chosen:
        stock_stages()  # kwok needs them to start; kept here, so that starting it needs no Go
    return 0

"""What a new user types first, and types wrong: one line that names what is the matter, one that names the fix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commandline import Ran, hermetic, hermetic_process
from tests.scenarios import a_baked_model, changed


@pytest.mark.parametrize("arguments", [(), ("attest",), ("bundle",)])
def test_a_bare_command_prints_its_help(arguments: tuple[str, ...]) -> None:
    ran = hermetic(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == hermetic(*arguments, "--help").out
    assert "..." not in ran.out.split("Commands:")[1], "a summary that is cut off"


def kubeconfig(folder: Path, user: dict[str, Any], server: str = "https://127.0.0.1:1") -> Path:
    path = folder / "config"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("here", "production")],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def plug_in(*command: str) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": command[0], "args": list(command[1:])}}


def ended(ran: Ran, code: int, error: str, fix: str) -> None:
    """This exit code, and nothing on standard error but one error and its fix."""
    assert (ran.code, ran.out) == (code, "")
    first_line, two = ran.err.splitlines()
    assert first_line.startswith("error: HRM-")
    assert error in first_line
    assert two.startswith("fix: ")
    assert fix in two


def test_a_missing_kubelogin_is_named(tmp_path: Path) -> None:
    ran = hermetic_process(
        "status",
        "--kubeconfig",
        kubeconfig(tmp_path, plug_in("kubelogin", "get-token")),
        environ={"PATH": str(tmp_path)},
    )
    ended(ran, 4, "from the program 'kubelogin', which is not installed here", "az aks install-cli")


def test_what_a_failing_plug_in_says_is_told_once(tmp_path: Path) -> None:
    says = "import sys; sys.exit('AADSTS70043: the refresh token has expired')"
    ran = hermetic_process("status", "--kubeconfig", kubeconfig(tmp_path, plug_in(sys.executable, "-c", says)))
    ended(ran, 4, "gave no login: exit code 1 AADSTS70043: the refresh token has expired", "az login")


def test_a_context_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    ran = hermetic("status", "--kubeconfig", kubeconfig(tmp_path, {"token": "t"}), "--context", "prodution")
    ended(ran, 2, "has no context 'prodution'; did you mean 'production'?", "one of: here, production")


def test_a_name_that_is_not_known_here_is_told_with_where_it_is(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t"}, "https://aks.privatelink.westeurope.azmk8s.invalid")
    ended(hermetic("status", "--kubeconfig", path), 4, "azmk8s.invalid is not known here", "inside its virtual network")


def test_a_namespace_that_cannot_be_is_bad_input() -> None:
    ended(hermetic("status", "-n", "Bad_NS"), 2, "'Bad_NS' cannot be the name of a namespace", "get namespaces")


def test_a_key_with_a_bad_date_is_not_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "good.pub").write_text("")
    ran = hermetic("attest", "verify", tmp_path / "a.yaml", "--public-key", f"{tmp_path}/good.pub@tomorrow")
    ended(ran, 2, "'tomorrow' is not a moment in UTC", "good.pub@2026-12-31T23:59:59Z")


@pytest.mark.parametrize("command", ["render", "images", "validate"])
def test_a_file_needs_no_option_before_its_name(tmp_path: Path, command: str) -> None:
    (tmp_path / "phi.yaml").write_text(yaml.safe_dump(a_baked_model()))
    with_option = hermetic(command, "-f", tmp_path / "phi.yaml")
    assert with_option.code == 0
    assert hermetic(command, tmp_path / "phi.yaml").out == with_option.out


def test_an_option_without_its_value_is_told_with_the_help_of_its_command() -> None:
    ended(hermetic("audit", "--azure"), 2, "'--azure' requires an argument", "'hermetic audit --help'")


def test_a_name_of_a_cluster_is_told_with_the_command_that_prints_its_id() -> None:
    ended(hermetic("audit", "--azure", "aks-gpu"), 2, "'aks-gpu' is not the ARM id of a cluster", "az aks show")


def test_a_tab_is_named() -> None:
    manifest = "apiVersion: hermetic.dev/v1alpha1\nkind: ModelDeployment\nmetadata:\n\tname: x\n"
    ran = hermetic("validate", "-f", "-", stdin=manifest)
    ended(ran, 2, "HRM-API-002: standard input:4:1: is not YAML: is indented with a tab", "correct the file there")


def test_a_file_of_another_kind_is_told_with_what_a_folder_does(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    ended(hermetic("validate", tmp_path / "a.yaml"), 2, "kind: ConfigMap: must be one of", "skipped in a folder")


# ------------------------------------------------------------------ did you mean


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("help", "--help"), ("versoin", "version"), ("get", "status"), ("statsu", "status"), ("lint", "validate")],
)
def test_a_command_of_another_name_is_told_with_the_one_that_was_meant(typed: str, meant: str) -> None:
    ended(hermetic(typed), 2, f"unknown command '{typed}'; did you mean 'hermetic {meant}'?", "--help")


def test_a_mistyped_kind_is_told_with_the_one_that_was_meant() -> None:
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump({**a_baked_model(), "kind": "ModelDeploymnt"}))
    ended(ran, 2, "did you mean 'ModelDeployment'?", "write `ModelDeployment` for `ModelDeploymnt`")


def test_a_field_is_explained_elsewhere() -> None:
    ended(hermetic("explain", "spec.replicas"), 2, "'spec.replicas'", "kubectl explain modeldeployment.spec.replicas")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("spec.replcias", "replicas"),
        ("spec.engine.vlm", "vllm"),
        ("spec.engine.vllm.versio", "version"),
        ("spec.weights.bakedImage.pth", "path"),
        ("spec.accelerator.tolerations[0].efect", "effect"),
        ("spec.no_such_thing_at_all", ""),
    ],
)
def test_a_mistyped_field_is_told_with_the_one_that_was_meant(path: str, meant: str) -> None:
    manifest = changed(a_baked_model(), accelerator={"count": 1, "tolerations": [{"key": "sku"}]})
    *around, name = path.split(".")
    inside: Any = manifest
    for step in around:
        inside = inside[step.removesuffix("[0]")]
        inside = inside[0] if step.endswith("[0]") else inside
    inside[name] = "x"
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(manifest))
    assert ran.code == 2
    (error,) = (error_line for error_line in ran.errors if f"{path}: " in error_line)
    assert error.endswith(f"; did you mean `{meant}`?" if meant else "is not a field of this object")
    assert f"fix: write `{meant}` for `{name}`" in ran.fixes or not meant


def test_a_mistyped_flag_of_the_engine_is_told_with_the_one_that_was_meant() -> None:
    manifest = a_baked_model()
    manifest["spec"]["engine"]["vllm"]["extraArgs"] = ["--enable-prefx-caching"]
    text = yaml.safe_dump(manifest, sort_keys=False)
    line = next(number for number, text_line in enumerate(text.splitlines(), 1) if "extraArgs" in text_line)
    ran = hermetic("validate", "-f", "-", stdin=text)
    assert ran.code == 2
    assert ran.errors[0].startswith(f"error: HRM-API-003: standard input:{line}:")
    assert ran.errors[0].endswith("; did you mean '--enable-prefix-caching'?")


def test_mistyped_keys_of_configuration_policy_and_exceptions_are_told_with_the_ones_that_were_meant(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file.yaml"
    for text, command, says in (
        (
            "registry: []\n",
            ("run", "--config"),
            "registry: []: is not a field of this object; did you mean `registries`?",
        ),
        ("shares: [{acount: a, share: b, namespaces: ['*']}]\n", ("run", "--config"), "did you mean `account`?"),
        ("allowedPeering: []\n", ("audit", "--azure", "x", "--policy"), "did you mean `allowedPeerings`?"),
        ("exceptions: [{expiri: x}]\n", ("audit", "--azure", "x", "--exceptions"), "did you mean `expiry`?"),
    ):
        file.write_text(text)
        ran = hermetic(*command, file)
        assert ran.code == 2
        assert says in ran.errors[0]
        assert f"{file}:1:" in ran.errors[0]


def test_a_policy_is_told_in_the_words_of_a_manifest(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("# ours\nownSubscriptions: x\n")
    (error,) = hermetic("audit", "--azure", "x", "--policy", file).errors
    assert f"{file}:2:1: `ownSubscriptions`: must be a list" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "DIR", "--public-key", "FILE"),
        ("verify", "DIR", "--certificate-root", "FILE"),
        ("sign", "DIR", "--key", "FILE"),
        ("plan", "--model-facts", "FILE"),
        ("plan", "--prices", "FILE"),
        ("bundle", "verify", "FILE"),
        ("run", "--config", "FILE"),
        ("validate", "-f", "FILE"),
        ("render", "-f", "FILE"),
        ("manifest", "FILE"),
        ("verify", "FILE"),
        ("stage", "FILE", "DIR"),
    ],
)
def test_a_file_that_is_not_there_is_bad_input_whatever_the_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    absent, model = tmp_path / "none.pem", tmp_path / "phi.yaml"
    model.write_text(yaml.safe_dump(a_baked_model()))
    paths = {"DIR": tmp_path, "FILE": absent}
    ran = hermetic(*(paths.get(word, word) for word in arguments), *(("-f", model) if arguments[0] == "plan" else ()))
    assert ran.errors[0] == f"error: HRM-INP-001: {absent}: No such file or directory"
    ended(ran, 2, "No such file or directory", "that exists")

"""GitOps end to end: the recipe of manifests/flux with the controllers of Flux, an OCI registry and a real API server.

No custom health expression anywhere: Flux reads ModelDeployment and EgressAudit by kstatus.
"""

from __future__ import annotations

import copy
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.api import Api
from testbed.cloud_provider import WITHHOLD
from testbed.errors import ApiError
from testbed.flux import CONTROLLERS, components
from testbed.installation import REPOSITORY
from testbed.programs import programs
from tests.controlplane.flux_cluster import RECIPE, RELEASES, FluxCluster, fluxed, recipe
from tests.controlplane.kstatus import kstatus
from tests.controlplane.sealed_cluster import ATTESTATIONS
from tests.install_page import commands
from tests.scenarios import VLLM_IMAGE, Manifest, a_baked_model, a_share_model, changed

__all__ = ["fluxed"]

pytestmark = pytest.mark.sampled(5, of="Flux")

PAGE = REPOSITORY / "docs" / "flux.md"
RECONCILES = 10
FAILS_FAST = "failed early due to stalled resources"
INFERENCE = "/api/v1/namespaces/inference"


def a_model(name: str = "llama", **spec: object) -> Manifest:
    return a_baked_model(name, **{"endpoint": {}, **spec})


def of_another_registry(model: Manifest) -> Manifest:
    elsewhere = VLLM_IMAGE.replace("contoso.azurecr.io", "registry.example.org")
    return changed(model, engine={"vllm": {"image": elsewhere, "version": "0.32.0"}})


@pytest.fixture
def proven(fluxed: FluxCluster) -> FluxCluster:
    """The proof is in the artifact and counts."""
    if not any(manifest["kind"] == "EgressAttestation" for manifest in fluxed.artifact["audit"]):
        fluxed.push(audit=[*fluxed.artifact["audit"], fluxed.sealed.attestation()])
    fluxed.sealed.until("Pass")
    return fluxed


@pytest.fixture
def serving(proven: FluxCluster) -> FluxCluster:
    """One model, `llama`, serves, and everything is at rest."""
    digest = proven.push(models=[a_model()])
    proven.until_ready("models", digest)
    return proven


def is_there(api: Api, path: str) -> bool:
    try:
        return bool(api.get(path))
    except ApiError as error:
        if error.status != 404:
            raise
        return False


# ---------------------------------------------------------------------- operator, then proof, then models


def test_the_operator_came_by_helm_release_with_its_crds(fluxed: FluxCluster) -> None:
    assert fluxed.get("hermetic", RELEASES)["status"]["history"][0]["status"] == "deployed"
    (crd,) = (
        definition
        for definition in fluxed.sealed.kubectl.json("get", "crds")["items"]
        if definition["spec"]["names"]["kind"] == "EgressAudit"
    )
    assert crd["metadata"]["annotations"]["meta.helm.sh/release-name"] == "hermetic"
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert is_there(fluxed.api, "/apis/apps/v1/namespaces/hermetic-system/deployments/hermetic-operator")


def test_models_wait_for_the_proof_and_the_proof_for_the_operator(fluxed: FluxCluster) -> None:
    fluxed.push(models=[a_model()])
    condition = fluxed.until_not_ready("hermetic-audit", "HealthCheckFailed", saying=FAILS_FAST)
    assert "EgressAudit/cluster" in condition
    assert fluxed.sealed.condition("Stalled")["reason"] == "AttestationMissing"
    fluxed.until_not_ready("models", "DependencyNotReady", saying="hermetic-audit")
    assert not is_there(fluxed.api, f"{fluxed.models.collection}/llama")

    digest = fluxed.push(audit=[*fluxed.artifact["audit"], fluxed.sealed.attestation()])

    fluxed.until_ready("models", digest)
    assert kstatus(fluxed.models.get("llama")) == "Current"
    assert fluxed.models.condition("llama")["reason"] == "Serving"


def test_a_newer_attestation_takes_the_place_of_the_old_one_in_one_revision(serving: FluxCluster) -> None:
    pods, (audit, old) = uids(serving), serving.artifact["audit"]
    new = serving.sealed.attestation()

    digest = serving.push(audit=[audit, new])

    serving.until_ready("models", digest)
    serving.sealed.until("Pass")
    attestation_names = [attestation["metadata"]["name"] for attestation in serving.api.get(ATTESTATIONS)["items"]]
    assert attestation_names == [new["metadata"]["name"]] != [old["metadata"]["name"]]
    assert uids(serving) == pods


def test_the_recipe_takes_every_image_by_digest_and_the_audit_finds_nothing_against_its_pods(
    proven: FluxCluster,
) -> None:
    pods = proven.api.get("/api/v1/namespaces/flux-system/pods")["items"]
    images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    assert len(images) == len(CONTROLLERS)
    assert all(re.fullmatch(r"contoso\.azurecr\.io/fluxcd/[a-z-]+@sha256:[0-9]{64}", image) for image in images)
    assert "flux-system" not in json.dumps(proven.sealed.status)


# ---------------------------------------------------------------------- ready, failed, recovered


def test_a_kustomization_is_ready_only_when_its_model_is(proven: FluxCluster) -> None:
    switch(proven, WITHHOLD, "true")
    digest = proven.push(models=[a_model(endpoint={"internalLoadBalancer": {}})])
    proven.models.until("llama", "LoadBalancerPending")
    proven.wait("the health check", lambda: proven.ready("models").get("status") == "Unknown")
    proven.request("models")
    proven.wait("another health check", lambda: proven.ready("models").get("status") == "Unknown")
    assert kstatus(proven.models.get("llama")) == "InProgress"

    switch(proven, WITHHOLD, None)

    proven.models.until("llama", "Serving")
    proven.until_ready("models", digest)


def switch(fluxed: FluxCluster, annotation: str, value: str | None) -> None:
    fluxed.api.merge(INFERENCE, {"metadata": {"annotations": {annotation: value}}})


def test_a_bad_model_fails_at_once_names_itself_and_a_correction_recovers(serving: FluxCluster) -> None:
    pods = uids(serving)
    serving.push(models=[a_model(), of_another_registry(a_model("stranger"))])
    condition = serving.until_not_ready("models", "HealthCheckFailed", saying=FAILS_FAST)
    assert "ModelDeployment/inference/stranger status: 'Failed'" in condition
    assert "ModelDeployment/inference/llama" not in condition
    assert serving.models.condition("stranger", "Stalled")["reason"] == "RegistryNotAllowed"

    digest = serving.push(models=[a_model(), a_model("stranger")])

    serving.until_ready("models", digest)
    assert uids(serving) == pods


def test_a_correction_is_applied_while_a_model_is_still_waited_for(serving: FluxCluster) -> None:
    """The wait may last for the whole timeout, which is that of the slowest model."""
    never = VLLM_IMAGE.replace("vllm-openai", "failure-never-ready")
    serving.push(models=[a_model("late", engine={"vllm": {"image": never, "version": "0.32.0"}})])
    serving.models.until("late", "Starting")
    serving.wait("the health check", lambda: serving.ready("models").get("status") == "Unknown")

    digest = serving.push(models=[a_model("late")])

    serving.until_ready("models", digest)


def test_broken_isolation_fails_the_proof_and_both_recover_by_themselves(serving: FluxCluster) -> None:
    pods = uids(serving)
    service = {"type": "LoadBalancer", "selector": {"app": "shop"}, "ports": [{"port": 443}]}
    serving.api.create(f"{INFERENCE}/services", {"metadata": {"name": "shop"}, "spec": service})
    serving.sealed.until("Fail", "IsolationBroken")
    serving.models.until("llama", "IsolationBroken")
    serving.request("hermetic-audit")
    assert "EgressAudit/cluster" in serving.until_not_ready("hermetic-audit", "HealthCheckFailed", saying=FAILS_FAST)
    serving.request("models")
    serving.until_not_ready("models", "DependencyNotReady", saying="hermetic-audit")

    serving.api.delete(f"{INFERENCE}/services/shop")

    serving.sealed.until("Pass")
    for name in ("hermetic-audit", "models"):
        serving.wait(f"{name} ready", lambda n=name: serving.ready(n).get("status") == "True")
    assert uids(serving) == pods


def uids(fluxed: FluxCluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in fluxed.models.pods("llama")}


# ---------------------------------------------------------------------- at rest, upgraded, pruned


def test_ten_reconciles_write_nothing_to_what_the_operator_has_in_hand(serving: FluxCluster) -> None:
    before = revisions(serving)
    for _ in range(RECONCILES):
        serving.until_handled("models")
    assert revisions(serving) == before
    owners = {
        field_entry["manager"]: field_entry for field_entry in serving.models.get("llama")["metadata"]["managedFields"]
    }
    assert set(owners) == {"kustomize-controller", "hermetic-status"}
    assert list(owners["hermetic-status"]["fieldsV1"]) == ["f:status"]


def revisions(fluxed: FluxCluster) -> dict[str, str]:
    """resourceVersion of the model and of what was made for it."""
    listing = fluxed.sealed.kubectl.within("inference").json(
        "get", "mdep,deployments,services,networkpolicies,pdb,pods"
    )
    return {
        f"{manifest['kind']}/{manifest['metadata']['name']}": manifest["metadata"]["resourceVersion"]
        for manifest in listing["items"]
    }


def test_what_kubectl_writes_into_a_model_is_taken_back(serving: FluxCluster) -> None:
    before = serving.models.get("llama")["spec"]
    serving.sealed.kubectl.within("inference")(
        "patch", "mdep", "llama", "--type=merge", '--patch={"spec":{"replicas":0}}'
    )
    serving.until_handled("models")
    assert serving.models.get("llama")["spec"] == before


def test_the_release_shows_no_drift_and_an_upgrade_replaces_no_pod_of_a_model(serving: FluxCluster) -> None:
    serving.until_handled("hermetic", RELEASES)
    assert [release_entry["version"] for release_entry in serving.get("hermetic", RELEASES)["status"]["history"]] == [
        1
    ], "drift"
    pods, model = uids(serving), serving.models.get("llama")["metadata"]["generation"]

    digest = serving.push(operator=json.loads(json.dumps(serving.artifact["operator"]).replace("1" * 64, "5" * 64)))

    serving.until_ready("models", digest)
    assert [release_entry["version"] for release_entry in serving.get("hermetic", RELEASES)["status"]["history"]] == [
        2,
        1,
    ]
    assert (uids(serving), serving.models.get("llama")["metadata"]["generation"]) == (pods, model)


def test_an_upgrade_that_fails_is_rolled_back_and_nothing_after_it_begins(serving: FluxCluster) -> None:
    pods, good = uids(serving), serving.artifact["operator"]
    serving.push(operator=upgraded_to_an_operator_that_never_gets_ready(good), models=[a_model(), a_model("next")])
    condition = serving.until_not_ready("hermetic", "HealthCheckFailed", saying=FAILS_FAST)
    assert "HelmRelease/flux-system/hermetic" in condition
    assert serving.get("hermetic", RELEASES)["status"]["history"][0]["status"] == "deployed"
    running = serving.api.get("/apis/apps/v1/namespaces/hermetic-system/deployments/hermetic-operator")
    assert "never-ready" not in running["spec"]["template"]["spec"]["containers"][0]["image"]
    serving.until_not_ready("models", "DependencyNotReady")
    assert not is_there(serving.api, f"{serving.models.collection}/next")

    digest = serving.push(operator=good)

    serving.until_ready("models", digest)
    assert uids(serving) == pods


def upgraded_to_an_operator_that_never_gets_ready(folder: list[Manifest]) -> list[Manifest]:
    """One attempt, and less patience than the recipe has."""
    folder = copy.deepcopy(folder)
    spec = next(manifest["spec"] for manifest in folder if manifest["kind"] == "HelmRelease")
    spec["timeout"] = "12s"
    spec["upgrade"]["remediation"]["retries"] = 0
    spec["values"]["image"]["repository"] = "hermetic/failure-never-ready"
    return folder


def test_what_leaves_the_artifact_leaves_the_cluster_with_its_volume(serving: FluxCluster) -> None:
    shared = a_share_model("shared")
    shared["spec"]["weights"]["integrity"] = {"digest": f"sha256:{'5e' * 32}"}
    digest = serving.push(models=[a_model(), shared])
    serving.until_ready("models", digest)
    child_names = children(serving, "shared")
    assert {"Deployment", "Service", "PersistentVolumeClaim", "PersistentVolume", "NetworkPolicy"} <= {
        child_name.partition("/")[0] for child_name in child_names
    }

    serving.until_ready("models", serving.push(models=[a_model()]))

    serving.wait("nothing left", lambda: not children(serving, "shared"))
    assert children(serving, "llama")


def children(fluxed: FluxCluster, name: str) -> set[str]:
    """Everything that carries the label of a model, and the model itself."""
    kinds = "deployments,services,persistentvolumeclaims,persistentvolumes,networkpolicies,serviceaccounts,pdb,pods"
    labelled = f"--selector=hermetic.dev/modeldeployment={name}"
    manifests = fluxed.sealed.kubectl.within("inference").json("get", kinds, labelled)["items"]
    models = [model for model in fluxed.api.get(fluxed.models.collection)["items"] if model["metadata"]["name"] == name]
    return {f"{manifest['kind']}/{manifest['metadata']['name']}" for manifest in (*manifests, *models)}


def test_the_folder_of_models_can_hold_nothing_but_models(serving: FluxCluster) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "more"}, "stringData": {"a": "b"}}
    serving.push(models=[a_model(), secret])
    assert "forbidden" in serving.until_not_ready("models", "ReconciliationFailed", saying="system:serviceaccount")
    serving.until_ready("models", serving.push(models=[a_model()]))


def test_the_commands_of_the_page_push_an_artifact_that_flux_applies(serving: FluxCluster, tmp_path: Path) -> None:
    for name, manifests in {**serving.artifact, "models": [a_model(), a_model("phi")]}.items():
        (tmp_path / "artifact" / name).mkdir(parents=True)
        (tmp_path / "artifact" / name / "all.yaml").write_text(yaml.safe_dump_all(manifests))
    script = "\n".join(commands("The artifact", PAGE)[:4]).replace("contoso.azurecr.io", serving.registry.host)
    script = script.replace("oras push", f"{programs('oras')['oras']} push --plain-http")
    done = subprocess.run(["bash", "-eu", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    serving.until_ready("models", re.search(r"sha256:[0-9a-f]{64}", done.stdout)[0])
    assert {model["metadata"]["name"] for model in serving.api.get(serving.models.collection)["items"]} == {
        "llama",
        "phi",
    }
    serving.until_ready("models", serving.push(models=[a_model()]))


def test_the_commands_of_the_page_apply_the_recipe(serving: FluxCluster, tmp_path: Path) -> None:
    """The API server takes what they apply; it is there already, with the registry of this machine, and stays so."""
    flux = tmp_path / "flux"
    shutil.copytree(RECIPE, flux)
    for file in flux.rglob("*.yaml"):
        file.write_text(recipe(file.relative_to(flux).as_posix()))
    (flux / "controllers" / "gotk-components.yaml").write_text(
        components(serving.sealed.kubectl, "contoso.azurecr.io/fluxcd")
    )
    environment = {"KUBECONFIG": str(serving.sealed.plane.kubeconfig), "HOME": str(tmp_path)}
    for heading in ("Flux", "The artifact", "A failing model"):
        for line in (command_text.removeprefix("$ ") for command_text in commands(heading, PAGE, "", "console")):
            if line.startswith("kubectl "):
                arguments = [str(serving.sealed.kubectl.program), *shlex.split(line)[1:]]
                arguments += [] if arguments[1] == "get" else ["--dry-run=server"]
                arguments += ["--force-conflicts"] if arguments[1] == "apply" else []
                subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, check=True)


def test_everything_goes_by_the_commands_of_the_page_but_namespaces_and_crds(serving: FluxCluster) -> None:
    """The last test of the file: nothing of Hermetic is left for others."""
    for command in commands("Uninstall", PAGE):
        program, *arguments = shlex.split(command)
        assert program == "kubectl"
        serving.sealed.kubectl(*arguments)
    assert serving.api.get(serving.models.collection)["items"] == []
    assert serving.api.get("/apis/hermetic.dev/v1alpha1/egressaudits")["items"] == []
    left = serving.sealed.kubectl("get", "clusterroles,validatingadmissionpolicies", "--output=name").split()
    assert [name for name in left if "/hermetic-" in name] == []
    assert {"hermetic-system", "inference"} <= {namespace["metadata"]["name"] for namespace in namespaces(serving)}


def namespaces(fluxed: FluxCluster) -> list[Manifest]:
    namespace_manifests: list[Manifest] = fluxed.api.get("/api/v1/namespaces")["items"]
    return namespace_manifests

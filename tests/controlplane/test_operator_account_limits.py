"""What a stolen token of the operator's account can do where its configuration limits it: no image, share or namespace
but those of the ConfigMap 'hermetic-allowed', and no probe but that of the EgressAudit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermetic.api.configuration import Configuration
from hermetic.cli.allowed import allowed
from hermetic.kinds import THE_EGRESS_AUDIT
from hermetic.objects.accelerator_checks import CHECKER
from hermetic.objects.names import Owner
from hermetic.objects.weights_verifier import Verifier
from hermetic.plan.allowed_sources import image_is_allowed, share_is_allowed
from hermetic.plan.gate_results import HOLDS
from testbed.api import Api
from testbed.errors import ApiError
from testbed.installation import operator_kubeconfig, wait_for
from tests.controlplane.deployments import module_namespace
from tests.controlplane.test_operator_account_policies import (
    AUDITS,
    IMAGE,
    a_probe,
    engine,
    in_template,
    pod,
    probe_container,
    refusal,
    rendered,
)
from tests.renderings import RENDERINGS, SHARES
from tests.scenarios import DIGEST, Manifest, a_share_model, an_egress_audit
from tests.snapshots import a_snapshot, spec_of

ALLOWED = "/api/v1/namespaces/hermetic-system/configmaps"
THEIRS = "theirs.azurecr.io"
VERIFIES = f"tools.azurecr.io/hermetic@sha256:{DIGEST}"
ALLOWED_IMAGE = f"contoso.azurecr.io/vllm/x@sha256:{DIGEST}"
Spoil = Callable[[Manifest], object]


@pytest.fixture(scope="module")
def home(installed: None, api: Api) -> Iterator[str]:  # noqa: ARG001
    with module_namespace(api, "allowed") as namespace:
        yield namespace


def the_configuration(home: str) -> Configuration:
    shares = [
        *({**share, "namespaces": [home]} for share in SHARES),
        {"account": "theirs", "share": "models", "namespaces": ["another"]},
        {"account": "everybodys", "share": "models", "namespaces": ["*"]},
        {"account": "parted", "share": "models", "folders": ["team-a", "shared/llama"], "namespaces": [home]},
        {"account": "parted", "share": "models", "folders": ["team-b"], "namespaces": ["another"]},
        {"account": "parted", "share": "aside", "server": "aside.example", "folders": ["x"], "namespaces": [home]},
        {"server": "nas.example", "path": "/parted", "folders": ["team-a"], "namespaces": [home]},
    ]
    return Configuration.model_validate(
        {
            "watchNamespaces": [home],
            "registries": [
                {"host": "contoso.azurecr.io", "repositories": ["vllm", "nim/"], "namespaces": [home]},
                {"host": THEIRS, "namespaces": ["another"]},
                {"host": "nvcr.io", "namespaces": ["*"]},
            ],
            "shares": shares,
            "integrity": {"verifiers": [VERIFIES]},
            "modelMetadata": {
                "labels": {"environment": "production"},
                "propagatedLabels": ["cost-centre"],
                "propagatedAnnotations": ["example.com/ticket"],
            },
        }
    )


def run_image(deployment: Manifest, image: str) -> None:
    """Run this image as the engine; GPUs are checked in the same one."""
    engine(deployment)["image"] = image
    for container in pod(deployment).get("initContainers", ()):
        if container["name"] == CHECKER:
            container["image"] = image


@pytest.fixture(scope="module")
def limited(api: Api, home: str, cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API server as whoever holds the operator's token meets it, once what is allowed is known."""
    account = Api(operator_kubeconfig(api, cluster, tmp_path_factory.mktemp("limited") / "kubeconfig"))
    api.create(ALLOWED, allowed(the_configuration(home)))
    api.create(AUDITS, an_egress_audit(probe={"image": IMAGE}))
    unlisted = rendered(home, a_share_model())["Deployment"]
    run_image(unlisted, IMAGE)
    wait_for("what is allowed known", lambda: refusal(account, unlisted, home))
    wait_for("the image of the probe known", lambda: not refusal(account, a_probe(), "hermetic-probe"))
    yield account
    api.delete(f"{ALLOWED}/hermetic-allowed")
    api.delete(f"{AUDITS}/{THE_EGRESS_AUDIT}")


@pytest.mark.parametrize("shape", RENDERINGS)
def test_what_is_rendered_of_what_is_allowed_is_admitted(limited: Api, home: str, shape: str) -> None:
    for child in rendered(home, RENDERINGS[shape]).values():
        if child["kind"] == "Deployment":
            for container in [engine(child), *pod(child).get("initContainers", ())]:
                container["image"] = ALLOWED_IMAGE
            for volume in pod(child)["volumes"]:
                if "image" in volume:
                    volume["image"]["reference"] = ALLOWED_IMAGE
        assert refusal(limited, child, home) == "", child["kind"]


@pytest.mark.parametrize(
    ("part", "key", "admitted"),
    [
        ("labels", "environment", True),
        ("labels", "cost-centre", True),
        ("labels", "cost-center", False),
        ("labels", "example.com/ticket", False),
        ("annotations", "example.com/ticket", True),
        ("annotations", "cost-centre", False),
        ("annotations", "example.com", False),
    ],
)
def test_pods_have_the_labels_and_annotations_that_the_configuration_names(
    limited: Api, home: str, part: str, key: str, admitted: bool
) -> None:
    deployment = rendered(home, a_share_model())["Deployment"]
    run_image(deployment, ALLOWED_IMAGE)
    in_template(part, key)(deployment)
    message = refusal(limited, deployment, home)
    assert (message == "") is admitted
    assert admitted or "`modelMetadata` of its configuration names" in message


@pytest.mark.parametrize(("image", "admitted"), [(VERIFIES, True), (f"{VERIFIES[:-1]}0", False)])
def test_the_image_that_verifies_weights_needs_no_registry_of_its_own(
    limited: Api, home: str, image: str, admitted: bool
) -> None:
    deployment = rendered(home, a_share_model(), Verifier(image, "Require"))["Deployment"]
    run_image(deployment, ALLOWED_IMAGE)
    assert (refusal(limited, deployment, home) == "") is admitted


@pytest.mark.parametrize(
    "image",
    [
        IMAGE,
        f"{THEIRS}/x@sha256:{DIGEST}",
        f"contoso.azurecr.io/other/x@sha256:{DIGEST}",
        f"contoso.azurecr.io.evil.example/vllm/x@sha256:{DIGEST}",
        f"evil.example/contoso.azurecr.io/vllm/x@sha256:{DIGEST}",
        f"x@sha256:{DIGEST}",
    ],
)
def test_no_image_of_another_registry_is_run(limited: Api, home: str, image: str) -> None:
    deployment = rendered(home, a_share_model())["Deployment"]
    run_image(deployment, image)
    assert "registries that its configuration allows" in refusal(limited, deployment, home)


# Beside those of the registry's namespace: what only begins like an allowed repository, and the repository itself.
REFERENCES = [
    f"contoso.azurecr.io/{repository}@sha256:{DIGEST}"
    for repository in (
        "vllm", "vllm/x", "vllm/x/y", "vllm:1", "vllm/x:1", "vllm-evil", "vllm-evil/x", "vllm.evil", "vllm_evil",
        "vllmx", "v", "xvllm", "x/vllm", "nim/x", "nim", "nim-evil/x", "nimx", "nim:1",
    )
] + [
    f"{host}/vllm/x@sha256:{DIGEST}"
    for host in (
        "contoso.azurecr.io:443", "contoso.azurecr.io-evil", "contoso.azurecr", "nvcr.io", "nvcr.io.evil",
        "nvcr.io:5000",
    )
]  # fmt: skip


@pytest.mark.parametrize("image", REFERENCES)
def test_an_image_is_run_where_the_operator_itself_would_run_it(limited: Api, home: str, image: str) -> None:
    """The policy and the question that the operator asks before it writes come to the same answer."""
    deployment = rendered(home, a_share_model())["Deployment"]
    run_image(deployment, image)
    snapshot = a_snapshot(Owner(home, "m", "u"), policy=the_configuration(home))
    assert (refusal(limited, deployment, home) == "") == image_is_allowed(snapshot, image)


FOLDERS = (None, "team-a", "team-a/llama", "team-ab", "team", "team-b", "x", "shared", "shared/llama", "shared/llama-2",
           "shared/llama/a/b", "payroll/team-a", "Team-a", "team-a#x", "team-a b")  # fmt: skip
PARTED: list[Manifest] = [
    {kind: {**share, **({} if folder is None else {"folder": folder})}}
    for named in (
        {"azureFiles": {"account": "parted", "share": "models"}},
        {"azureFiles": {"account": "parted", "share": "models", "server": "other.example"}},
        {"azureFiles": {"account": "parted", "share": "aside"}},
        {"azureFiles": {"account": "parted", "share": "aside", "server": "aside.example"}},
        {"azureFiles": {"account": "everybodys", "share": "models"}},
        {"nfs": {"server": "nas.example", "path": "/parted"}},
        {"nfs": {"server": "nas.example", "path": "/parted-2"}},
    )
    for kind, share in named.items()
    for folder in FOLDERS
]


@pytest.mark.parametrize("weights", PARTED, ids=str)
def test_a_folder_is_mounted_where_the_operator_itself_would_mount_it(
    limited: Api, home: str, weights: Manifest
) -> None:
    manifest = a_share_model(weights=weights)
    volume = rendered(home, manifest)["PersistentVolume"]
    snapshot = a_snapshot(Owner(home, "m", "u"), policy=the_configuration(home))
    assert (refusal(limited, volume, home) == "") == (share_is_allowed(spec_of(manifest), snapshot) is HOLDS)


def test_no_image_volume_of_another_registry_is_mounted(limited: Api, home: str) -> None:
    deployment = rendered(home, RENDERINGS["image-volume"])["Deployment"]
    (volume,) = (volume_fields for volume_fields in pod(deployment)["volumes"] if "image" in volume_fields)
    volume["image"]["reference"] = IMAGE
    assert "registries that its configuration allows" in refusal(limited, deployment, home)


def attributes(**changed: str) -> Spoil:
    return lambda manifest: manifest["spec"]["csi"]["volumeAttributes"].update(changed)


def from_parted(**changed: str) -> Spoil:
    return attributes(storageAccount="parted", **changed)


SHARES_OF_OTHERS: dict[str, tuple[str, Spoil]] = {
    "another account": ("share", attributes(storageAccount="evil")),
    "the account of another namespace": ("share", attributes(storageAccount="theirs")),
    "another share": ("share", attributes(shareName="payroll")),
    "another server": ("share", attributes(server="203.0.113.7")),
    "a folder of another team": ("share", from_parted(folderName="team-b/llama")),
    "a way up from a folder": ("share", from_parted(folderName="team-a/../team-b")),
    "a way up by the shell": ("share", from_parted(folderName="team-a/.\\./team-b")),
    "a folder in the name of the share": ("share", from_parted(shareName="models#team-a")),
    "a server in the name of the share": ("share", from_parted(shareName="aside aside.example", folderName="x")),
    "another export": ("nfs", attributes(share="/export/payroll")),
    "an export with the same beginning": ("nfs", attributes(share="/export/models-of-others")),
    "a way up": ("nfs", attributes(share="/export/models/../payroll")),
    "another file server": ("nfs", attributes(server="203.0.113.7")),
}


@pytest.mark.parametrize("share", SHARES_OF_OTHERS)
def test_no_volume_of_another_share_is_made(limited: Api, home: str, share: str) -> None:
    shape, spoil = SHARES_OF_OTHERS[share]
    volume = rendered(home, RENDERINGS[shape])["PersistentVolume"]
    spoil(volume)
    assert re.search(r"configuration allows|spec\.csi\.volumeAttributes", refusal(limited, volume, home))


def test_no_volume_is_made_for_a_namespace_that_is_not_watched(limited: Api, namespace: str) -> None:
    volume = rendered(namespace, RENDERINGS["share"])["PersistentVolume"]
    attributes(storageAccount="everybodys")(volume)
    assert "namespaces that it looks after" in refusal(limited, volume, namespace)


PROBES: dict[str, tuple[Spoil, str]] = {
    "another image": (
        lambda manifest: probe_container(manifest).update(image=ALLOWED_IMAGE),
        "spec.probe.image",
    ),
    "another program": (
        lambda manifest: probe_container(manifest)["command"].__setitem__(4, "import sys, types; import os; os.fork()"),
        "exact program",
    ),
    "another module": (
        lambda manifest: probe_container(manifest)["command"].__setitem__(7, "import os"), "exact program",
    ),
    "no EgressAudit": (
        lambda manifest: manifest["metadata"]["labels"].pop("hermetic.dev/egress-audit"), "metadata.labels",
    ),
    "another EgressAudit": (
        lambda manifest: manifest["metadata"]["labels"].update({"hermetic.dev/egress-audit": "mine"}),
        "metadata.labels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", PROBES)
def test_no_other_probe_is_run(limited: Api, attack: str) -> None:
    spoil, why = PROBES[attack]
    job = a_probe()
    spoil(job)
    assert why in refusal(limited, job, "hermetic-probe")


def test_an_image_that_ran_before_may_stay_when_its_registry_is_taken_off_the_list(
    limited: Api, api: Api, home: str
) -> None:
    """Or nothing but its image could be mended any more, its number of replicas for one."""
    deployment = rendered(home, RENDERINGS["baked-image"])["Deployment"]
    path = f"/apis/apps/v1/namespaces/{home}/deployments"
    run_image(deployment, IMAGE)
    # An owner that is there: the garbage collector would take the Deployment in the middle of the test.
    deployment["metadata"]["ownerReferences"][0]["uid"] = api.create(
        f"/apis/hermetic.dev/v1alpha1/namespaces/{home}/modeldeployments", RENDERINGS["baked-image"]
    )["metadata"]["uid"]
    api.create(path, deployment)
    live = f"{path}/{deployment['metadata']['name']}"
    limited.merge(live, {"spec": {"replicas": 0}})
    run_image(deployment, f"{THEIRS}/x@sha256:{DIGEST}")
    with pytest.raises(ApiError, match="registries that its configuration allows"):
        limited.apply(live, deployment, "hermetic")
    api.delete(live)

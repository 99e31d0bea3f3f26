"""Any deployment that a user could apply, and any snapshot that it could be met in."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from hermetic.api.configuration import Configuration
from hermetic.api.weights_reasons import WeightsReason
from hermetic.engines.vllm.tables import TABLES
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.objects.weights_verifier import Signers, Verifier
from hermetic.plan.snapshot import ClusterSnapshot, Warned
from hermetic.weights.findings import WeightsFinding, termination_message
from tests.attestations import a_p256_key, public_pem_of
from tests.scenarios import DIGEST, NIM_IMAGE, VLLM_IMAGE, Manifest
from tests.snapshots import NOW, POLICY, a_snapshot, addressed, an_a100_node, children_of, evidence, owner_of, serving

# Searched for afterwards in everything that is written: no such text may leave the place it was said in.
SECRET_NAMES = ("tls-secret-name", "key-secret-name")
HERMETIC_IMAGE, EARLIER_IMAGE = (f"contoso.azurecr.io/hermetic@sha256:{digit * 64}" for digit in "ab")
PUBLIC_KEY = public_pem_of(a_p256_key().key)
WRITTEN = POLICY.model_dump(by_alias=True, exclude_none=True)
VERIFYING = {"name": "verify-weights", "image": HERMETIC_IMAGE, "restartCount": 0}
VERIFIED = {"digest": f"sha256:{'5e' * 32}", "signedBy": "platform", "files": 9, "bytes": 7, "seconds": 1.0}
WRONG_KEY = WeightsFinding(WeightsReason.WRONG_KEY, "", "a", "b")
HANGING = WeightsFinding(WeightsReason.SHARE_HANGS, "model.safetensors", "an answer", "none for 120 s")

names = st.from_regex(r"[a-z]([-a-z0-9]{0,44}[a-z0-9])?", fullmatch=True)
relative_paths = st.lists(st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,12}", fullmatch=True), min_size=1, max_size=3).map(
    "/".join
)
share_folders = st.lists(
    st.from_regex(r"[a-z0-9]([a-z0-9_.-]{0,11}[a-z0-9_-])?", fullmatch=True), min_size=1, max_size=3
).map("/".join)
sizes = st.sampled_from(["Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5", "Standard_ND96isr_MI300X_v5"])
labels = st.dictionaries(
    st.sampled_from(["app", "team", "example.com/tier"]), st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True), max_size=2
)
cidrs = st.sampled_from(["10.0.0.0/8", "10.7.0.0/16", "192.168.3.0/24", "fd00::/8", "100.64.0.0/10"])


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=fields)


mount_options = st.lists(
    st.sampled_from(["nconnect=4", "nconnect=16", "noresvport", "actimeo=30", "nocto", "hard", "rsize=1048576"]),
    max_size=4,
)
azure_files = st.builds(
    lambda optional_parts: {"account": "contosomodels", "share": "models", **optional_parts},
    optional(
        folder=share_folders,
        resourceGroup=st.just("rg-models"),
        encryptInTransit=st.booleans(),
        mountOptions=mount_options,
        server=st.just("contosomodels.privatelink.file.core.windows.net"),
    ),
)
nfs = st.builds(
    lambda more: {"server": "nfs.contoso.internal", "path": "/export/models", **more},
    optional(folder=relative_paths, mountOptions=mount_options),
)
sources = st.one_of(
    st.fixed_dictionaries({"azureFiles": azure_files}),
    st.fixed_dictionaries({"nfs": nfs}),
    st.builds(
        lambda folder: {"persistentVolumeClaim": {"claimName": "staged", **folder}}, optional(folder=relative_paths)
    ),
    st.builds(lambda path: {"bakedImage": {"path": f"/{path}"}}, relative_paths),
    st.builds(
        lambda path: {"imageVolume": {"reference": f"contoso.azurecr.io/models/phi@sha256:{DIGEST}", **path}},
        optional(path=relative_paths),
    ),
)
# Require would need an image that verifies, which only some of the snapshots have.
pins = st.just({}) | st.builds(
    lambda integrity: {"integrity": integrity},
    optional(
        policy=st.sampled_from(["Warn", "Off"]),
        digest=st.just(f"sha256:{'5e' * 32}"),
        allow=st.just(["tokenization $(HOME).py"]),
    ).map(lambda integrity: {"policy": "Warn", **integrity}),
)
verifying = st.just({}) | st.builds(
    lambda verifiers, minimum: {"verifiers": verifiers, "publicKeys": [PUBLIC_KEY], "minimumPolicy": minimum},
    st.sampled_from([[HERMETIC_IMAGE], [HERMETIC_IMAGE, EARLIER_IMAGE], [EARLIER_IMAGE]]),
    st.sampled_from(["Require", "Warn", "Off"]),
)
variables = st.lists(
    st.builds(
        lambda name, value: {"name": name, "value": value},
        st.sampled_from(["TZ", "NCCL_DEBUG", "OMP_NUM_THREADS", "NCCL_SOCKET_IFNAME"]),
        # No path and no address: those have a gate of their own.
        st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="/:~."), max_size=20),
    ),
    max_size=3,
    unique_by=lambda variable: variable["name"],
)
vllm_arguments = st.lists(
    st.sampled_from(["--enable-prefix-caching", "--max-num-seqs=64", "--seed=-1", "--enforce-eager"]),
    max_size=3,
    unique=True,
)


@st.composite
def vllm_engines(draw: st.DrawFn, gpus: int) -> Manifest:
    pipeline = draw(st.sampled_from([stages for stages in (1, 2, 4) if gpus % stages == 0]))
    explicit = draw(st.booleans())
    return {
        "vllm": {
            "image": VLLM_IMAGE,
            "version": f"{draw(st.sampled_from(TABLES.supported))}.0",
            "pipelineParallelSize": pipeline,
            **({"tensorParallelSize": gpus // pipeline} if explicit else {}),
            **draw(
                optional(
                    maxModelLength=st.integers(1, 200_000),
                    gpuMemoryUtilizationPercent=st.integers(10, 98),
                    kvCacheDtype=st.sampled_from(["auto", "fp8"]),
                    extraArgs=vllm_arguments,
                    extraEnv=variables,
                )
            ),
        }
    }


@st.composite
def nim_engines(draw: st.DrawFn, *, baked: bool) -> Manifest:
    line = draw(st.sampled_from(["1.0", "1.15", "2.0", "2.1"]))
    model = st.just({}) | st.just({"modelPath": "/weights/model"})
    if not baked:
        model = model | st.just({"profile": "vllm-bf16-tp2"})
    arguments = {"extraArgs": ["--enable-prefix-caching"]} if line.startswith("2.") and draw(st.booleans()) else {}
    more = draw(optional(maxModelLength=st.integers(1, 200_000), extraEnv=variables))
    return {"nim": {"image": NIM_IMAGE, "line": line, **draw(model), **arguments, **more}}


@st.composite
def endpoints(draw: st.DrawFn, *, vllm: bool) -> Manifest:
    balancer = optional(
        subnet=st.just("ilb"),
        address=st.sampled_from(["10.13.76.40", "192.168.1.4"]),
        allowedSourceRanges=st.lists(cidrs, max_size=3, unique=True),
        idleTimeoutMinutes=st.integers(4, 30),
    )
    client = st.one_of(
        st.builds(lambda match_labels: {"namespaceSelector": {"matchLabels": match_labels}}, labels),
        st.builds(lambda match_labels: {"podSelector": {"matchLabels": match_labels}}, labels),
        st.just({"namespaceSelector": {}, "podSelector": {}}),
    )
    key = {"apiKey": st.just({"secretName": SECRET_NAMES[1], "key": "token"})} if vllm else {}
    return draw(
        optional(
            port=st.integers(1024, 65535),
            internalLoadBalancer=balancer,
            allowedClients=st.lists(client, max_size=3),
            tls=st.just({"secretName": SECRET_NAMES[0]}),
            **key,
        )
    )


tolerations = st.lists(
    st.sampled_from(
        [
            {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
            {"key": "example.com/x", "operator": "Exists"},
            {"operator": "Exists"},
        ]
    ),
    max_size=3,
)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Any ModelDeployment that every gate but that of isolation lets through."""
    gpus, vllm, weights = draw(st.sampled_from([1, 2, 4, 8])), draw(st.booleans()), draw(sources)
    engine = draw(vllm_engines(gpus) if vllm else nim_engines(baked="bakedImage" in weights))
    pinned = draw(pins) if not {"bakedImage", "imageVolume"} & {*weights} else {}
    slices = ["nvidia.com/mig-1g.10gb"] if gpus == 1 else []
    accelerator = {
        "count": gpus,
        **draw(
            optional(
                resource=st.sampled_from(["nvidia.com/gpu", "amd.com/gpu", *slices]),
                instanceTypes=st.lists(sizes, max_size=2, unique=True),
                tolerations=tolerations,
            )
        ),
    }
    resources = optional(
        cpu=st.sampled_from(["500m", "4", "16"]),
        memory=st.sampled_from(["96Gi", "400Gi", "137438953472"]),
        sharedMemory=st.sampled_from(["1Gi", "16Gi"]),
        scratch=st.sampled_from(["20Gi", "50G"]),
    )
    spec = {
        "model": {"name": "meta/llama", **({"aliases": ["llama"]} if vllm and draw(st.booleans()) else {})},
        "engine": engine,
        "weights": {**weights, **pinned},
        "accelerator": accelerator,
        "endpoint": draw(endpoints(vllm=vllm)),
        **draw(
            optional(
                resources=resources,
                replicas=st.integers(0, 5),
                startupBudgetSeconds=st.integers(60, 14400),
                drainSeconds=st.integers(0, 3600),
                rollout=st.sampled_from(["Replace", "Surge"]),
                isolation=optional(
                    enforcement=st.sampled_from(["Enforce", "Report", "Off"]),
                    maxEvidenceAgeSeconds=st.integers(300, 604800),
                ),
            )
        ),
    }
    return {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": draw(names)},
        "spec": spec,
    }


evidences = st.none() | st.builds(
    lambda verdict, hours, sources, left: evidence(
        verdict,
        age=timedelta(hours=hours),
        sources=frozenset(sources),
        expires_at=None if left is None else NOW + timedelta(minutes=left),
        message="what was found",
    ),
    st.sampled_from(["Pass", "Pass", "Fail", "Unknown", None]),
    st.integers(-1, 48),
    st.sets(st.sampled_from(["azure", "kubernetes", "probe"])) | st.just({"azure", "kubernetes", "probe"}),
    st.none() | st.integers(-60, 600),
)
states = st.sampled_from(
    [
        {"running": {}},
        {"waiting": {"reason": "ContainerCreating"}},
        {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}},
        {"waiting": {"reason": "CrashLoopBackOff"}},
        {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "x" not found'}},
        {"terminated": {"exitCode": 1, "message": "unrecognized arguments: --x"}},
    ]
)
verifications = st.sampled_from(
    [
        {"state": {"running": {}}},
        *(
            {"state": {"terminated": {"exitCode": 1 - (not findings), "message": message}}}
            for findings, verdict in (([], "Pass"), ([WRONG_KEY], "Fail"), ([HANGING], "Unknown"))
            for message in [termination_message(findings, {**VERIFIED, "verdict": verdict}).decode()]
        ),
        {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 2}}},
    ]
)
last_states = st.sampled_from(
    [
        {},
        {"terminated": {"exitCode": 1, "message": "ValueError: new"}},
        {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    ]
)
pod_conditions = st.sampled_from(
    [
        [],
        [{"type": "Ready", "status": "True"}],
        [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}],
    ]
)


@st.composite
def pods(draw: st.DrawFn, mark: str) -> Manifest:
    """A pod of the present template, or of an earlier one."""
    number = draw(st.integers(0, 99))
    container = {
        "name": "engine",
        "image": VLLM_IMAGE,
        "state": draw(states),
        "lastState": draw(last_states),
        "restartCount": draw(st.integers(0, 5)),
    }
    stamp = f"2026-11-24T11:00:{number % 60:02d}Z"
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "uid": f"pod-uid-{number}",
            "creationTimestamp": stamp,
            "labels": {TEMPLATE_LABEL: draw(st.sampled_from([mark, mark, "earlier"]))},
        },
        "status": {
            "conditions": draw(pod_conditions),
            "containerStatuses": draw(st.just([container]) | st.just([])),
            "initContainerStatuses": draw(
                st.just([]) | verifications.map(lambda status_fields: [{**VERIFYING, **status_fields}])
            ),
        },
    }


nodes = st.builds(
    lambda number, gpus, pool, runtime: an_a100_node(
        f"node-{number}", gpus=gpus, pool=pool, runtime_version=f"containerd://{runtime}"
    ),
    st.integers(0, 99),
    st.sampled_from([0, 1, 4]),
    st.sampled_from(["one", "two"]),
    st.sampled_from(["1.7.2", "2.0.1", "2.2.4"]),
)
warnings = st.dictionaries(
    st.integers(0, 99).map("pod-uid-{}".format),
    st.sampled_from([Warned("FailedMount", "mount.nfs: access denied"), Warned("BackOff", "restarting")]),
    max_size=3,
)
counts = st.builds(
    lambda generation, total, updated, available: {
        "observedGeneration": generation,
        "replicas": total,
        "updatedReplicas": updated,
        "availableReplicas": available,
    },
    st.sampled_from([0, 99]),
    *[st.integers(0, 5)] * 3,
)
addresses = st.lists(st.sampled_from(["10.0.0.4", "203.0.113.7"]), max_size=2)


@st.composite
def snapshots(draw: st.DrawFn, manifest: Manifest, *, public: bool = True) -> ClusterSnapshot:
    """A snapshot in which any of the children may exist, some changed by others, with pods and nodes in any state."""
    policy = Configuration.model_validate({**WRITTEN, "integrity": draw(verifying)})
    verifier = draw(st.none() | st.just(Verifier(EARLIER_IMAGE, "Require", Signers((PUBLIC_KEY,)))))
    everything = children_of(manifest, verifier)
    mark = everything["Deployment", manifest["metadata"]["name"]]["metadata"]["annotations"][TEMPLATE_LABEL]
    children = {key: child for key, child in everything.items() if draw(st.booleans())}
    for child in children.values():
        if draw(st.booleans()):
            _meddle_with(child)
    snapshot = a_snapshot(
        owner_of(manifest),
        policy=policy,
        children=children,
        evidence=draw(evidences),
        generation=draw(st.integers(1, 3)),
        pods=tuple(draw(st.lists(pods(mark), max_size=3, unique_by=lambda pod: pod["metadata"]["name"]))),
        nodes=tuple(draw(st.lists(nodes, max_size=3, unique_by=lambda node: node.name))),
        warnings=draw(warnings),
    )
    name = manifest["metadata"]["name"]
    if ("Deployment", name) in children:
        snapshot = serving(snapshot, 0, **draw(counts))
    if ("Service", name) in children:
        chosen_addresses = draw(addresses)
        snapshot = addressed(
            snapshot, *(chosen_addresses if public else [a for a in chosen_addresses if a.startswith("10.")])
        )
    return snapshot


def _meddle_with(child: Manifest) -> None:
    child["metadata"].setdefault("labels", {})["team"] = "somebody"
    match child["kind"]:
        case "Deployment":
            child["spec"]["template"]["spec"]["containers"][0]["image"] = "another"
        case "NetworkPolicy":
            child["spec"]["egress"] = [{}]
        case "Service":
            child["spec"]["ports"][0]["targetPort"] = 1


def shuffled(snapshot: ClusterSnapshot, random: Any) -> ClusterSnapshot:
    """The same snapshot, seen in another order."""

    def again(items: Any) -> list[Any]:
        copied = list(items)
        random.shuffle(copied)
        return copied

    return replace(
        snapshot,
        pods=tuple(again(snapshot.pods)),
        nodes=tuple(again(snapshot.nodes)),
        children=dict(again(copy.deepcopy(dict(snapshot.children)).items())),
        warnings=dict(again(snapshot.warnings.items())),
    )

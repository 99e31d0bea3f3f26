"""Replicas of several nodes that no engine could serve, or that Hermetic does not run."""

from __future__ import annotations

from typing import Any

from tests.corpus.cases import Invalid, case
from tests.corpus.manifests import (
    ABSENT,
    Manifest,
    changed,
    nim_on_azure_files,
    sglang_with_everything_said,
    vllm_on_azure_files,
)

NODES, ACCELERATOR = "spec.accelerator.nodes", "spec.accelerator"
SEVERAL = "must not be used with several `accelerator.nodes`: "
VLLM_SIZES = "times `accelerator.count` must equal `engine.vllm.tensorParallelSize` times `pipelineParallelSize`"
SGLANG_SIZES = "times `accelerator.count` must equal `engine.sglang.tensorParallelSize` times `pipelineParallelSize`"


def of_nodes(nodes: int = 2, count: int = 8, base: Manifest | None = None, **more: Any) -> Manifest:
    """A deployment whose replicas have several nodes; `more` by their path below spec, '__' for a dot."""
    changes = {f"spec.{path.replace('__', '.')}": value for path, value in more.items()}
    return changed(base or vllm_on_azure_files(), {ACCELERATOR: {"nodes": nodes, "count": count}, **changes})


def sglang_of_nodes(nodes: int = 2, count: int = 8, **sglang: Any) -> Manifest:
    """The same with SGLang; `sglang`: fields of the engine, snake case for a dash of the API."""
    fields = {"tensorParallelSize": ABSENT, **sglang}
    changes = {f"spec.engine.sglang.{name}": value for name, value in fields.items()}
    return changed(of_nodes(nodes, count, sglang_with_everything_said()), changes)


def _group(name: str, manifest: Manifest, path: str, says: str, **more: Any) -> Invalid:
    return Invalid(f"several nodes {name}", manifest, path, says, **more)


GROUPS: tuple[Invalid, ...] = (
    case("17 nodes", NODES, 17, "must be less than or equal to 16", server_says="should be less than or equal to 16"),
    case("no node", NODES, 0, "must be greater than or equal to 1", server_says="should be greater than or equal to 1"),
    _group("with half of the GPUs", of_nodes(engine__vllm__tensorParallelSize=4), NODES, VLLM_SIZES),
    _group(
        "with too many stages",
        of_nodes(engine__vllm__tensorParallelSize=8, engine__vllm__pipelineParallelSize=4),
        NODES,
        VLLM_SIZES,
    ),
    _group("with 3 stages of 16 GPUs", of_nodes(engine__vllm__pipelineParallelSize=3), NODES, VLLM_SIZES),
    _group("of SGLang with the GPUs of one", sglang_of_nodes(tensorParallelSize=8), NODES, SGLANG_SIZES),
    _group(
        "of SGLang with stages of half a node",
        sglang_of_nodes(3, 2, tensorParallelSize=3, pipelineParallelSize=2),
        "spec.engine.sglang.pipelineParallelSize",
        "must be a divisor or a multiple of `accelerator.nodes`",
    ),
    *(
        _group(
            f"with {argument}",
            of_nodes(engine__vllm__extraArgs=[argument]),
            "spec.engine.vllm.extraArgs",
            "must not be set with several `accelerator.nodes`",
        )
        for argument in (
            "--data-parallel-size=2",
            "--data_parallel_size=2",
            "-dp=2",
            "--prefill-context-parallel-size=2",
            "--api-server-count=2",
        )
    ),
    _group(
        "of a NIM", of_nodes(base=nim_on_azure_files()), "spec.engine.nim", SEVERAL + "a NIM starts its other nodes"
    ),
    _group(
        "with an autoscaler",
        of_nodes(autoscaling={"maxReplicas": 4}),
        "spec.autoscaling",
        SEVERAL + "each replica is an object of its own",
    ),
    _group("with a surge", of_nodes(rollout="Surge"), "spec.rollout", SEVERAL + "the pods of a replica stop"),
    _group(
        "with a cache in the memory of the node",
        of_nodes(kvCacheOffload={"memory": "64Gi"}),
        "spec.kvCacheOffload",
        SEVERAL + "engines divide that memory",
    ),
    *(
        _group(
            f"on port {port}", of_nodes(endpoint__port=port), "spec.endpoint.port", SEVERAL + "the pods of a replica"
        )
        for port in (20000, 20064, 29500, 29501)
    ),
    *(
        _group(
            f"of {resource}",
            changed(of_nodes(count=1), {"spec.accelerator.resource": resource}),
            "spec.accelerator.resource",
            "must be whole GPUs ('nvidia.com/gpu' or 'amd.com/gpu') with several `nodes`",
            value=resource,
        )
        for resource in ("nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "amd.com/cpx_nps4")
    ),
    _group("with 258 pods", of_nodes(3, replicas=86), "spec.replicas", "times `accelerator.nodes` must be at most 256"),
    _group(
        "under a name of 43 letters",
        changed(of_nodes(), {"metadata.name": "a" * 43}),
        "metadata.name",
        "must have at most 42 characters with several `spec.accelerator.nodes`",
        value="a" * 43,
    ),
    case(
        "a network for one node",
        ACCELERATOR,
        {"interconnect": {}},
        "needs several `nodes`: the GPUs of one node talk over its own links",
        blames="spec.accelerator.interconnect",
    ),
    case(
        "InfiniBand without a resource",
        ACCELERATOR,
        {"nodes": 2, "interconnect": {"type": "InfiniBand"}},
        "must be set with `type` 'InfiniBand', and only with it",
        blames="spec.accelerator.interconnect.resource",
    ),
    case(
        "Ethernet with a resource",
        ACCELERATOR,
        {"nodes": 2, "interconnect": {"resource": "rdma/ib"}},
        "must be set with `type` 'InfiniBand', and only with it",
        blames="spec.accelerator.interconnect.resource",
    ),
    case(
        "RoCE",
        ACCELERATOR,
        {"nodes": 2, "interconnect": {"type": "RoCE"}},
        "must be 'InfiniBand' or 'Ethernet'",
        server_says='supported values: "InfiniBand", "Ethernet"',
        blames="spec.accelerator.interconnect.type",
    ),
    case(
        "a device without a domain",
        ACCELERATOR,
        {"nodes": 2, "interconnect": {"type": "InfiniBand", "resource": "ib"}},
        "must be an extended resource such as 'rdma/ib'",
        blames="spec.accelerator.interconnect.resource",
        prints="ib",
    ),
)
VALID_GROUPS: tuple[tuple[str, Manifest], ...] = (
    ("two nodes", of_nodes()),
    ("sixteen nodes of sixteen GPUs", of_nodes(16, 16)),
    ("two nodes of one GPU", of_nodes(2, 1)),
    ("two nodes and 256 pods", of_nodes(replicas=128)),
    (
        "two nodes without stages",
        of_nodes(engine__vllm__tensorParallelSize=16, engine__vllm__pipelineParallelSize=1),
    ),
    ("two nodes with four stages", of_nodes(engine__vllm__pipelineParallelSize=4)),
    ("two nodes with experts", of_nodes(engine__vllm__extraArgs=["--enable-expert-parallel"])),
    ("two nodes on the port beside", of_nodes(endpoint__port=29502)),
    ("two nodes under a name of 42 letters", changed(of_nodes(), {"metadata.name": "a" * 42})),
    ("two nodes of SGLang", sglang_of_nodes()),
    ("four nodes of SGLang with two stages", sglang_of_nodes(4, 8, pipelineParallelSize=2)),
    (
        "two nodes of SGLang with data parallel attention",
        sglang_of_nodes(extraArgs=["--dp=2", "--enable-dp-attention"]),
    ),
    ("two nodes of AMD", changed(of_nodes(), {"spec.accelerator.resource": "amd.com/gpu"})),
    (
        "two nodes on InfiniBand",
        changed(
            of_nodes(), {"spec.accelerator.interconnect": {"type": "InfiniBand", "resource": "rdma/ib", "count": 8}}
        ),
    ),
    ("two nodes on Ethernet, as is said", changed(of_nodes(), {"spec.accelerator.interconnect": {"type": "Ethernet"}})),
)

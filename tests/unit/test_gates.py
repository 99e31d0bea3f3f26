"""What must hold before a pod may be created: each gate both ways, and the message that names the remedy."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hermetic.api.conditions import ConditionType
from hermetic.api.configuration import Configuration
from hermetic.api.reserved_flags import VLLM, VLLM_FLAGS
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.vllm.tables import TABLES
from hermetic.plan.gate_results import HOLDS, Blocks
from hermetic.plan.gates import GATES, engine_flags_are_known, first_block
from hermetic.plan.vm_sizes import vm_size_offers_the_pod
from tests.corpus.manifests import changed as with_fields
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, VLLM_IMAGE, a_baked_model, a_share_model, an_image_volume_model, changed
from tests.snapshots import POLICY, a_snapshot, an_a100_node, spec_of


def blocked(manifest: dict[str, Any], **facts: Any) -> Blocks:
    block = first_block(spec_of(manifest), a_snapshot(**facts))
    assert block is not None, "nothing blocks"
    return block


def allowing(**lists: Any) -> Configuration:
    return Configuration.model_validate({**POLICY.model_dump(by_alias=True, exclude_none=True), **lists})


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_every_sample_passes_every_gate(manifest):
    assert first_block(spec_of(manifest), a_snapshot(nodes=(an_a100_node(),))) is None


def test_first_gate_that_does_not_hold_is_the_one_that_is_told():
    unknown_everything = a_share_model(
        engine={"vllm": {"image": f"evil.example/x/y@sha256:{DIGEST}", "version": "0.1.0"}},
        weights={"azureFiles": {"account": "stranger", "share": "secrets"}},
    )
    spec, snapshot = spec_of(unknown_everything), a_snapshot()
    failing = [gate for gate in GATES if gate(spec, snapshot) != HOLDS]
    assert len(failing) == 3
    assert first_block(spec, snapshot) == failing[0](spec, snapshot)


# ---------------------------------------------------------------------- registries

ELSEWHERE = f"ghcr.io/vllm/vllm-openai@sha256:{DIGEST}"


def test_image_of_an_unlisted_registry_is_refused_with_the_line_to_add():
    block = blocked(a_share_model(engine={"vllm": {"image": ELSEWHERE, "version": "0.32.0"}}))
    assert (block.reason, block.condition) == (SpecReason.REGISTRY_NOT_ALLOWED, ConditionType.IMAGES_PINNED)
    assert "- {host: ghcr.io, namespaces: [inference]}" in block.message
    assert ELSEWHERE in block.message


def test_line_to_add_is_one_that_the_configuration_understands():
    import yaml

    block = blocked(a_share_model(engine={"vllm": {"image": ELSEWHERE, "version": "0.32.0"}}))
    line = block.message.split("`registries`: ")[1]
    policy = allowing(registries=yaml.safe_load(line))
    manifest = a_baked_model(engine={"vllm": {"image": ELSEWHERE, "version": "0.32.0"}})
    assert first_block(spec_of(manifest), a_snapshot(policy=policy)) is None


def test_registry_of_an_image_volume_counts_too():
    reference = f"docker.io/models/phi@sha256:{DIGEST}"
    block = blocked(changed(an_image_volume_model(), weights={"imageVolume": {"reference": reference}}))
    assert block.reason is SpecReason.REGISTRY_NOT_ALLOWED
    assert "docker.io" in block.message


@pytest.mark.parametrize(
    ("allowed", "holds"),
    [
        ({"namespaces": ["*"]}, True),
        ({"namespaces": ["inference"]}, True),
        ({"namespaces": ["other", "inference"]}, True),
        ({"namespaces": ["infer"]}, False),
        ({"namespaces": ["*"], "repositories": ["vllm/"]}, True),
        ({"namespaces": ["*"], "repositories": ["nim/"]}, False),
        ({"namespaces": ["*"], "repositories": ["vllm"]}, True),
        ({"namespaces": ["*"], "repositories": ["vllm/vllm-openai"]}, True),
        ({"namespaces": ["*"], "repositories": ["vllm/vllm-openai/"]}, False),
        ({"namespaces": ["*"], "repositories": ["vllm/vllm"]}, False),
        ({"namespaces": ["*"], "repositories": ["vll"]}, False),
    ],
    ids=str,
)
def test_registry_is_allowed_by_host_namespace_and_repository(allowed, holds):
    policy = allowing(registries=[{"host": "contoso.azurecr.io", **allowed}])
    assert (first_block(spec_of(a_share_model()), a_snapshot(policy=policy)) is None) == holds


@pytest.mark.parametrize(
    "host", ["contoso.azurecr.io.evil.example", "xcontoso.azurecr.io", "azurecr.io", "contoso.azurecr.io:443"]
)
def test_host_of_a_registry_is_compared_whole(host):
    image = f"{host}/vllm/vllm-openai@sha256:{DIGEST}"
    assert blocked(a_share_model(engine={"vllm": {"image": image, "version": "0.32.0"}})).reason is (
        SpecReason.REGISTRY_NOT_ALLOWED
    )


@pytest.mark.parametrize(
    ("repository", "holds"),
    [
        ("team", True),
        ("team/x", True),
        ("team/x/y", True),
        ("team-evil/x", False),
        ("teams", False),
        ("a/team/x", False),
    ],
)
def test_a_repository_ends_at_a_boundary(repository, holds):
    policy = allowing(registries=[{"host": "acr.io", "repositories": ["team"], "namespaces": ["*"]}])
    for tag in ("", ":v1"):
        image = f"acr.io/{repository}{tag}@sha256:{DIGEST}"
        model = a_share_model(engine={"vllm": {"image": image, "version": "0.32.0"}})
        assert (first_block(spec_of(model), a_snapshot(policy=policy)) is None) == holds


@pytest.mark.parametrize("repository", ["", "/", "Team", "team/../x", "*", "team//x"])
def test_a_repository_of_the_configuration_is_one(repository):
    with pytest.raises(ValueError, match="must be a repository"):
        allowing(registries=[{"host": "acr.io", "repositories": [repository], "namespaces": ["*"]}])


# ---------------------------------------------------------------------- shares


def a_model_of(**weights: Any) -> dict[str, Any]:
    return a_share_model(weights=weights)


@pytest.mark.parametrize(
    "weights",
    [
        {"azureFiles": {"account": "contosomodels", "share": "finance"}},
        {"azureFiles": {"account": "stranger", "share": "models"}},
        {"azureFiles": {"account": "contosomodels", "share": "models", "server": "evil.example"}},
        {"nfs": {"server": "nfs.contoso.internal", "path": "/export"}},
        {"nfs": {"server": "nfs.contoso.internal", "path": "/export/models/private"}},
        {"nfs": {"server": "10.0.0.4", "path": "/export/models"}},
    ],
    ids=str,
)
def test_share_that_is_not_listed_exactly_is_refused_with_the_line_to_add(weights):
    import yaml

    block = blocked(a_model_of(**weights))
    assert (block.reason, block.condition) == (SpecReason.SHARE_NOT_ALLOWED, ConditionType.WEIGHTS_VERIFIED)
    if "did you mean" in block.message:  # no line that allows what may be a typo
        assert "`shares`: " not in block.message
        return
    line = block.message.split("`shares`: ")[1]
    policy = allowing(shares=yaml.safe_load(line))
    assert first_block(spec_of(a_model_of(**weights)), a_snapshot(policy=policy)) is None
    other = allowing(shares=yaml.safe_load(line.replace("[inference]", "[other]")))
    assert blocked(a_model_of(**weights), policy=other).reason is SpecReason.SHARE_NOT_ALLOWED


@pytest.mark.parametrize(
    "source",
    [
        {"azureFiles": {"account": "contosomodels", "share": "models"}},
        {"nfs": {"server": "nfs.contoso.internal", "path": "/export/models"}},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("folder", "holds"),
    [
        ("team-a", True),
        ("team-a/llama/fp8", True),
        ("shared/phi", True),
        ("team-ab", False),
        ("team-a-evil/llama", False),
        ("team-b/llama", False),
        ("llama/team-a", False),
        (None, False),
    ],
)
def test_a_share_may_be_allowed_by_folder(source, folder, holds):
    ((kind, share),) = source.items()
    location = {"server": share["server"], "path": share["path"]} if kind == "nfs" else share
    lines = [
        {**location, "folders": ["team-a", "shared/"[:-1]], "namespaces": ["inference"]},
        {**location, "namespaces": ["other"]},
        {**location, "folders": ["team-b"], "namespaces": ["other"]},
    ]
    weights = {kind: {**share, **({"folder": folder} if folder else {})}}
    block = first_block(spec_of(a_model_of(**weights)), a_snapshot(policy=allowing(shares=lines)))
    assert (block is None) == holds
    if block is not None:
        assert (block.reason, block.condition) == (SpecReason.SHARE_NOT_ALLOWED, ConditionType.WEIGHTS_VERIFIED)
        assert "only below: shared, team-a; set `folder`" in block.message


def test_folder_below_an_allowed_share_is_allowed():
    weights = {"azureFiles": {"account": "contosomodels", "share": "models", "folder": "any/where"}}
    assert first_block(spec_of(a_model_of(**weights)), a_snapshot()) is None


def test_share_is_read_from_another_host_only_when_that_host_is_listed():
    server = "contosomodels.blob.contoso.internal"
    weights = {"azureFiles": {"account": "contosomodels", "share": "models", "server": server}}
    listed = {"account": "contosomodels", "share": "models", "server": server, "namespaces": ["*"]}
    assert blocked(a_model_of(**weights)).reason is SpecReason.SHARE_NOT_ALLOWED
    assert first_block(spec_of(a_model_of(**weights)), a_snapshot(policy=allowing(shares=[listed]))) is None


@pytest.mark.parametrize("source", ["baked-image", "image-volume", "claim"])
def test_source_that_needs_no_volume_of_ours_needs_no_share(source):
    policy = allowing(shares=[], volumes={"create": False})
    assert first_block(spec_of(RENDERINGS[source]), a_snapshot(policy=policy)) is None


@pytest.mark.parametrize("source", ["share", "nfs"])
def test_operator_that_may_not_make_volumes_says_what_to_do_instead(source):
    block = blocked(RENDERINGS[source], policy=allowing(volumes={"create": False}))
    assert block.reason is SpecReason.VOLUME_CREATION_OFF
    assert "persistentVolumeClaim" in block.message
    assert "hermetic render --volumes" in block.message


# ---------------------------------------------------------------------- engine flags


def with_arguments(*extra_args: str, version: str = "0.32.0") -> dict[str, Any]:
    return a_baked_model(engine={"vllm": {"image": VLLM_IMAGE, "version": version, "extraArgs": list(extra_args)}})


def test_version_without_a_table_is_refused_with_those_that_have_one():
    block = blocked(with_arguments(version="0.9.2"))
    assert block.reason is SpecReason.ENGINE_VERSION_UNSUPPORTED
    assert "0.24" in block.message
    assert "0.33" in block.message


def test_unknown_argument_is_refused_with_its_name_and_the_version():
    block = blocked(with_arguments("--enable-prefix-caching", "--no-such-flag=3"))
    assert block.reason is SpecReason.ENGINE_FLAG_UNKNOWN
    assert "'--no-such-flag=3'" in block.message
    assert "vLLM 0.32" in block.message


def test_argument_that_a_younger_version_knows_is_unknown_to_an_older():
    assert (
        blocked(with_arguments("--max-num-queued-reqs", "8", version="0.28.0")).reason is SpecReason.ENGINE_FLAG_UNKNOWN
    )
    assert first_block(spec_of(with_arguments("--max-num-queued-reqs", "8", version="0.29.0")), a_snapshot()) is None


@pytest.mark.parametrize("minor", TABLES.supported)
def test_nothing_that_a_version_takes_for_a_reserved_flag_gets_through(minor):
    """Every spelling and abbreviation by which vLLM's own parser reaches a reserved flag."""
    table = TABLES.table_for(minor)
    for prefix in _ways_to_reach_reserved_flags(table):
        if VLLM.reached(prefix) or prefix in VLLM.except_for:
            continue  # the API server refuses it; what it lets through is judged with the weights and the configuration
        verdict = engine_flags_are_known(spec_of(with_arguments(prefix, version=f"{minor}.0")), a_snapshot())
        assert isinstance(verdict, Blocks), f"vLLM {table.version} takes {prefix} for a reserved flag"


def _ways_to_reach_reserved_flags(table: Any) -> set[str]:
    spellings = {s for name in VLLM_FLAGS.keys() & table.flags.keys() for s in table.flags[name].spellings}
    prefixes = {spelling[:length] for spelling in spellings for length in range(2, len(spelling) + 1)}
    reaching = {p for p in prefixes if any(flag.name in VLLM_FLAGS for flag in table.understood_as(p))}
    return reaching | {p.replace("-", "_").replace("__", "--", 1) for p in reaching if p.startswith("--")}


@pytest.mark.parametrize("word", ["-p", "-pp", "-p2"])
def test_short_forms_of_reserved_flags_are_refused_by_the_version_s_own_reading(word):
    if VLLM.reached(word):
        return
    assert blocked(with_arguments(word)).reason in {SpecReason.ENGINE_FLAG_RESERVED, SpecReason.ENGINE_FLAG_UNKNOWN}


@pytest.mark.parametrize(
    "arguments",
    [
        ["/other/model"],
        ["--enforce-eager", "true"],
        ["--seed=1", "2"],
        ["--seed", "1", "2"],
        ["--speculative-config.method", "ngram", "x"],
        ["--seed", "1", "$(HOME)"],
    ],
    ids=" ".join,
)
def test_word_that_belongs_to_no_flag_is_refused_for_vllm_would_take_it_for_a_model(arguments):
    block = blocked(with_arguments(*arguments))
    assert block.reason is SpecReason.ENGINE_FLAG_UNKNOWN
    assert f"'{arguments[-1]}'" in block.message
    assert "belongs to no flag" in block.message


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", "-1"],
        ["--speculative-config.method", "ngram", "--seed=1"],
        ["--allowed-origins", "[]", "--enforce-eager"],
        ["--seed", "7"],
        ["-q", "fp8"],
        ["-qfp8"],
        ["-O3"],
        ["-O", "3"],
        ["--dtype", "auto"],
        ["--dtype=bfloat16"],
        ["--lora-target-modules", "q_proj", "k_proj"],
    ],
    ids=" ".join,
)
def test_values_stay_with_their_flags(arguments):
    assert first_block(spec_of(with_arguments(*arguments)), a_snapshot()) is None


@pytest.mark.parametrize("arguments", [["--dtype", "float7"], ["--dtype=float7"], ["--dty", "float7"]], ids=" ".join)
def test_value_that_is_no_choice_of_the_version_is_refused_with_its_choices(arguments):
    block = blocked(with_arguments(*arguments))
    assert block.reason is SpecReason.ENGINE_FLAG_UNKNOWN
    assert "'float7' for --dtype" in block.message
    assert "bfloat16" in block.message


KNOWN_FORMATS = {minor: TABLES.table_for(minor).flags["--kv-cache-dtype"].choices for minor in TABLES.supported}


@pytest.mark.parametrize("minor", [minor for minor, formats in KNOWN_FORMATS.items() if formats])
def test_number_format_of_the_cache_is_one_of_the_version(minor):
    def of(dtype: str) -> dict[str, Any]:
        return a_baked_model(engine={"vllm": {"image": VLLM_IMAGE, "version": f"{minor}.0", "kvCacheDtype": dtype}})

    block = blocked(of("nonsense"))
    assert block.reason is SpecReason.ENGINE_FLAG_UNKNOWN
    assert "`engine.vllm.kvCacheDtype` has 'nonsense'" in block.message
    for choice in KNOWN_FORMATS[minor]:
        assert first_block(spec_of(of(choice)), a_snapshot()) is None


def test_values_that_look_like_flags_are_left_to_the_engine():
    assert first_block(spec_of(with_arguments("--seed", "-1", "--max-num-seqs", "64")), a_snapshot()) is None


# ---------------------------------------------------------------------- image volumes, memory, address


@pytest.mark.parametrize(("version", "holds"), [((1, 34), False), ((1, 35), True), ((1, 36), True), ((2, 0), True)])
def test_image_volumes_need_a_young_api_server(version, holds):
    block = first_block(spec_of(an_image_volume_model()), a_snapshot(server_version=version))
    assert (block is None) == holds
    if block is not None:
        assert block.reason is SpecReason.IMAGE_VOLUME_UNSUPPORTED
        assert "1.34" in block.message
        assert "bakedImage" in block.message


@pytest.mark.parametrize(
    ("runtime", "holds"),
    [
        ("containerd://2.1.0", True),
        ("containerd://2.2.4", True),
        ("containerd://3.0.0-rc.1", True),
        ("containerd://2.0.7", False),
        ("containerd://1.7.28", False),
        ("cri-o://1.33.0", True),
        ("docker://28.0", False),
        ("containerd://unknown", False),
        ("", False),
    ],
)
def test_image_volumes_need_a_young_runtime_on_a_node_with_the_gpus(runtime, holds):
    nodes = (an_a100_node(runtime_version=runtime),)
    assert (first_block(spec_of(an_image_volume_model()), a_snapshot(nodes=nodes)) is None) == holds


def test_one_node_that_mounts_images_is_enough_and_no_node_is_no_obstacle():
    old, young = an_a100_node("old", runtime_version="containerd://1.7.2"), an_a100_node("young")
    without_gpu = an_a100_node("cpu", gpus=0)
    spec = spec_of(an_image_volume_model())
    assert first_block(spec, a_snapshot(nodes=(old, young))) is None
    assert first_block(spec, a_snapshot(nodes=())) is None
    assert first_block(spec, a_snapshot(nodes=(old, without_gpu))) is not None


def test_node_that_the_pod_may_not_run_on_mounts_nothing_for_it():
    old = an_a100_node("old", runtime_version="containerd://2.0.1")
    young = an_a100_node("young", instance_type="Standard_ND96isr_H100_v5")
    here = {"count": 1, "instanceTypes": ["Standard_NC24ads_A100_v4"]}
    spec = spec_of(an_image_volume_model(accelerator=here))
    block = first_block(spec, a_snapshot(nodes=(old, young)))
    assert block is not None
    assert "containerd://2.0.1" in block.message
    assert "2.2.4" not in block.message


@pytest.mark.parametrize(
    ("kubelet", "holds"),
    [
        ("v1.34.8", False),
        ("v1.32.13", False),
        ("v1.35.0", True),
        ("v1.36.4-aks", True),
        ("v2.0.1", True),
        ("", False),
        ("unknown", False),
    ],
)
def test_image_volumes_need_a_young_kubelet_on_every_node_of_the_model(kubelet, holds):
    """A kubelet may be three releases older than its API server, and the scheduler looks at no kubelet."""
    nodes = (an_a100_node("young"), an_a100_node("other", kubelet_version=kubelet, pool="gpu2"))
    block = first_block(spec_of(an_image_volume_model()), a_snapshot(nodes=nodes))
    assert (block is None) == holds
    if block is not None:
        assert block.reason is SpecReason.IMAGE_VOLUME_UNSUPPORTED
        assert f"pool 'gpu2' run {kubelet or 'no reported version'}" in block.message
        assert "'gpu'" not in block.message


def test_kubelets_of_nodes_that_the_model_may_not_use_count_for_no_image_volume():
    nodes = (
        an_a100_node("young"),
        an_a100_node("cpu", gpus=0, kubelet_version="v1.34.1"),
        an_a100_node("other", instance_type="Standard_ND96isr_H100_v5", kubelet_version="v1.34.1"),
    )
    here = {"count": 1, "instanceTypes": ["Standard_NC24ads_A100_v4"]}
    spec = spec_of(an_image_volume_model(accelerator=here))
    assert first_block(spec, a_snapshot(nodes=nodes)) is None
    assert first_block(spec_of(a_baked_model()), a_snapshot(nodes=nodes)) is None


def test_what_is_said_about_runtimes_does_not_depend_on_the_order_of_nodes():
    nodes = tuple(an_a100_node(str(n), runtime_version=f"containerd://1.{n}.0") for n in range(3))
    assert blocked(an_image_volume_model(), nodes=nodes) == blocked(an_image_volume_model(), nodes=nodes[::-1])


@pytest.mark.parametrize(
    ("memory", "shared", "gpus", "holds"),
    [
        (None, None, 1, True),
        ("96Gi", None, 1, True),
        ("2Gi", None, 1, False),
        ("3Gi", None, 1, True),
        ("8Gi", None, 8, False),
        ("16Gi", "16Gi", 1, False),
        ("17179869185", "16Gi", 1, True),
        ("17G", "16Gi", 1, False),
    ],
)
def test_memory_must_exceed_the_shared_memory_that_counts_against_it(memory, shared, gpus, holds):
    resources = {k: v for k, v in {"memory": memory, "sharedMemory": shared}.items() if v}
    block = first_block(spec_of(a_baked_model(resources=resources, accelerator={"count": gpus})), a_snapshot())
    assert (block is None) == holds
    if block is not None:
        assert block.reason is SpecReason.MEMORY_TOO_SMALL
        assert f"'{memory}'" in block.message


def test_address_that_an_older_deployment_asks_for_is_not_asked_for_again():
    endpoint = {"internalLoadBalancer": {"address": "10.13.76.40"}}
    block = blocked(a_baked_model(endpoint=endpoint), address_holder="team-a/older")
    assert (block.reason, block.condition) == (SpecReason.ENDPOINT_CONFLICT, ConditionType.ENDPOINT_PRIVATE)
    assert "'team-a/older'" in block.message
    assert "'10.13.76.40'" in block.message


@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        ([], True),
        ([{"ranges": ["10.13.76.32/28"], "namespaces": ["inference"]}], True),
        ([{"ranges": ["10.13.76.40/32"], "namespaces": ["*"]}], True),
        ([{"ranges": ["10.13.76.0/30", "10.13.76.40/32"], "namespaces": ["other", "inference"]}], True),
        ([{"ranges": ["10.13.76.32/28"], "namespaces": ["other"]}], False),
        ([{"ranges": ["10.13.76.48/28"], "namespaces": ["inference"]}], False),
        ([{"ranges": ["fd00::/8"], "namespaces": ["inference"]}], False),
    ],
    ids=str,
)
def test_addresses_are_allowed_by_namespace(lines, holds):
    model = a_baked_model(endpoint={"internalLoadBalancer": {"address": "10.13.76.40"}})
    block = first_block(spec_of(model), a_snapshot(policy=allowing(addresses=lines)))
    assert (block is None) == holds
    if block is not None:
        assert (block.reason, block.condition) == (SpecReason.ADDRESS_NOT_ALLOWED, ConditionType.ENDPOINT_PRIVATE)
        document = yaml.safe_load(block.message.split("`addresses`: ")[1])
        assert first_block(spec_of(model), a_snapshot(policy=allowing(addresses=[*lines, *document]))) is None
    free = a_baked_model(endpoint={"internalLoadBalancer": {}})
    assert first_block(spec_of(free), a_snapshot(policy=allowing(addresses=lines))) is None


GPU = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
TEAM_KEY = {"key": "dedicated"}
TEAM = {"key": "dedicated", "value": "team-a"}
ANY_GPU = {"key": "sku", "namespaces": ["*"]}


@pytest.mark.parametrize(
    ("tolerations", "lines", "refused"),
    [
        ([{"operator": "Exists"}], [], None),
        ([GPU], [ANY_GPU], None),
        ([GPU, TEAM], [ANY_GPU, {"key": "dedicated", "values": ["team-a"], "namespaces": ["inference"]}], None),
        ([{"key": "sku", "operator": "Exists"}], [ANY_GPU], None),
        ([{"key": "sku"}], [{"key": "sku", "values": [""], "namespaces": ["*"]}], None),
        ([GPU, {"operator": "Exists"}], [ANY_GPU], 1),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [ANY_GPU], 0),
        ([TEAM], [ANY_GPU], 0),
        ([GPU], [{**ANY_GPU, "namespaces": ["other"]}], 0),
        ([TEAM], [{"key": "dedicated", "values": ["team-b"], "namespaces": ["inference"]}], 0),
        (
            [{"key": "dedicated", "operator": "Exists"}],
            [{"key": "dedicated", "values": ["team-a"], "namespaces": ["*"]}],
            0,
        ),
        ([{"key": "sku"}], [{"key": "sku", "values": ["gpu"], "namespaces": ["*"]}], 0),
    ],
    ids=str,
)
def test_taints_are_accepted_by_namespace(tolerations, lines, refused):
    model = a_baked_model(accelerator={"tolerations": tolerations})
    block = first_block(spec_of(model), a_snapshot(policy=allowing(tolerations=lines)))
    assert (block is None) == (refused is None)
    if block is None:
        return
    assert (block.reason, block.condition) == (SpecReason.TOLERATION_NOT_ALLOWED, None)
    assert f"`accelerator.tolerations[{refused}]`" in block.message
    _, needs_line, line = block.message.partition("`tolerations`: ")
    assert bool(needs_line) == ("key" in tolerations[refused]), "no line allows every taint"
    if needs_line:
        after = allowing(tolerations=[*lines, *yaml.safe_load(line)])
        assert first_block(spec_of(model), a_snapshot(policy=after)) is None


def test_the_default_toleration_must_be_listed_like_every_other():
    policy = allowing(tolerations=[{"key": "dedicated", "namespaces": ["*"]}])
    assert blocked(a_baked_model(), policy=policy).reason is SpecReason.TOLERATION_NOT_ALLOWED


def test_every_block_of_a_gate_needs_a_human():
    """A gate that passes by itself would be a wait, not a gate."""
    reasons = {
        SpecReason.REGISTRY_NOT_ALLOWED,
        SpecReason.SHARE_NOT_ALLOWED,
        SpecReason.VOLUME_CREATION_OFF,
        SpecReason.ENGINE_VERSION_UNSUPPORTED,
        SpecReason.ENGINE_FLAG_UNKNOWN,
        SpecReason.ENGINE_FLAG_RESERVED,
        SpecReason.IMAGE_VOLUME_UNSUPPORTED,
        SpecReason.MEMORY_TOO_SMALL,
        SpecReason.ENDPOINT_CONFLICT,
        SpecReason.ADDRESS_NOT_ALLOWED,
        SpecReason.TOLERATION_NOT_ALLOWED,
        SpecReason.ENGINE_SETTING_NOT_ALLOWED,
    }
    assert all(reason.needs_human for reason in reasons)


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({"accelerator.count": 8}, "it has 1 GPUs, and the deployment asks for 8"),
        ({"accelerator.resource": "amd.com/gpu"}, "it has GPUs of"),
        ({"resources.cpu": "96"}, "it has 24 vCPUs, and `resources.cpu` asks for 96"),
        ({"resources.memory": "400Gi", "resources.sharedMemory": "8Gi"}, "it has 220 GiB"),
        ({"accelerator.instanceTypes": ["standard_nc24ads_a100_v4"]}, "Azure writes Standard_NC24ads_A100_v4"),
    ],
)
def test_vm_size_that_cannot_run_the_pod_blocks_without_facts(changes, clause):
    size = {"accelerator.instanceTypes": ["Standard_NC24ads_A100_v4"]}
    manifest = with_fields(a_share_model(), {f"spec.{path}": value for path, value in {**size, **changes}.items()})
    verdict = vm_size_offers_the_pod(spec_of(manifest), a_snapshot())
    assert isinstance(verdict, Blocks)
    assert verdict.reason is SpecReason.VM_SIZE_UNSUITABLE
    assert clause in verdict.message


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["Standard_NC24ads_A100_v4"],
        ["Standard_NC24ads_A100_v4", "Standard_ND96asr_v4"],
        ["Standard_Future_v9"],
        ["standard_nc24ads_a100_v4", "Standard_NC24ads_A100_v4"],
    ],
)
def test_vm_sizes_hold_where_one_may_run_the_pod(names):
    manifest = with_fields(a_share_model(), {"spec.accelerator.instanceTypes": names})
    assert vm_size_offers_the_pod(spec_of(manifest), a_snapshot()) is HOLDS

"""`hermetic render` prints what the operator would apply, and nothing else: no cluster, no surprise for other readers.

tests/controlplane/test_cli_render.py holds it against live objects, field by field.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path

import pytest
import yaml

from hermetic.api.configuration import Configuration
from hermetic.api.modeldeployment import ModelDeployment
from hermetic.engines.allow_list import COMMON
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import Owner
from hermetic.plan.preflight import accelerator_checks
from tests.commandline import hermetic
from tests.renderings import OWNER_UID, RENDERINGS
from tests.scenarios import Manifest, a_baked_model, a_share_model, an_egress_audit, changed

NO_UID = "00000000-0000-0000-0000-000000000000"
every_rendering = pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=RENDERINGS.keys())


def live(manifest: Manifest, namespace: str = "inference") -> Manifest:
    """As `kubectl get -o yaml` prints it."""
    metadata = {**manifest["metadata"], "namespace": namespace, "uid": OWNER_UID, "generation": 1}
    return {**manifest, "metadata": metadata, "status": {"observedGeneration": 1, "unknownToThisRelease": True}}


def text(*manifests: Manifest) -> str:
    return yaml.safe_dump_all(manifests, sort_keys=False, allow_unicode=True)


@every_rendering
def test_every_object_of_the_operator_is_printed_in_its_order(manifest: Manifest) -> None:
    ran = hermetic("render", "-f", "-", stdin=text(live(manifest)))
    assert ran.code == 0
    spec = ModelDeployment.model_validate(manifest).spec
    assert ("needs Kubernetes 1.35" in ran.err) == (spec.weights.image_volume is not None)
    assert ran.err.count("\n") == (spec.weights.image_volume is not None)
    owner = Owner("inference", manifest["metadata"]["name"], OWNER_UID)
    platform = PlatformSettings(accelerator_checks=accelerator_checks(spec, Configuration()))
    assert list(yaml.safe_load_all(ran.out)) == list(render(owner, spec, platform))


@every_rendering
def test_nothing_is_abbreviated_and_keys_keep_the_order_of_the_builders(manifest: Manifest) -> None:
    printed = hermetic("render", "-f", "-", stdin=text(live(manifest))).out
    assert not any(isinstance(token, yaml.AnchorToken | yaml.AliasToken) for token in yaml.scan(printed))
    for document in printed.split("---\n"):
        assert re.match(r"apiVersion: \S+\nkind: \w+\nmetadata:\n  name: ", document)


def test_the_volumes_of_the_platform_team_are_printed_where_the_operator_may_make_none(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("volumes: {create: false}\n")
    options = ("-f", "-", "--config", tmp_path / "config.yaml")
    assert "VolumeCreationOff" in hermetic("render", *options, stdin=text(a_share_model())).err
    printed = hermetic("render", "--volumes", *options, stdin=text(a_share_model()))
    assert [manifest["kind"] for manifest in yaml.safe_load_all(printed.out)] == [
        "PersistentVolume",
        "PersistentVolumeClaim",
    ]


def test_the_same_input_gives_the_same_bytes() -> None:
    typed = text(*RENDERINGS.values())
    assert len({hermetic("render", "-f", "-", stdin=typed).out for _ in range(3)}) == 1


def test_without_a_uid_zeros_are_printed_and_a_comment_says_so_beside_the_data() -> None:
    ran = hermetic("render", "-f", "-", stdin=text(a_share_model()))
    assert NO_UID in ran.out
    assert ran.err.startswith(
        f"# no metadata.uid in llama: owner references contain {NO_UID}, and the names of volumes"
    )
    assert not re.search(r"^\s*#", ran.out, re.MULTILINE)
    assert list(yaml.safe_load_all(ran.err + ran.out)) == list(yaml.safe_load_all(ran.out))


def test_the_namespace_is_that_of_the_manifest_else_the_one_asked_for() -> None:
    named, nameless = live(a_baked_model(), "prod"), a_baked_model("other")
    ran = hermetic("render", "-f", "-", "-n", "dev", stdin=text(named, nameless))
    spaces = {
        (manifest["metadata"]["name"], manifest["metadata"]["namespace"]) for manifest in yaml.safe_load_all(ran.out)
    }
    assert spaces == {("phi", "prod"), ("other", "dev")}
    default = hermetic("render", "-f", "-", stdin=text(nameless))
    assert {manifest["metadata"]["namespace"] for manifest in yaml.safe_load_all(default.out)} == {"default"}


def test_a_list_and_several_files_are_rendered_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text({"apiVersion": "v1", "kind": "List", "items": [a_baked_model("one")]}))
    (tmp_path / "b.json").write_text(json.dumps(a_baked_model("two")))
    ran = hermetic("render", "-f", tmp_path / "a.yaml", "-f", tmp_path / "b.json")
    names = [manifest["metadata"]["name"] for manifest in yaml.safe_load_all(ran.out)]
    assert [name for name, _ in groupby(names)] == ["one", "two"]


def test_nothing_is_printed_unless_everything_is_valid() -> None:
    ran = hermetic("render", "-f", "-", stdin=text(a_baked_model(), changed(a_baked_model("b"), replicas=-1)))
    assert (ran.code, ran.out) == (2, "")
    assert "spec.replicas: -1: must be greater than or equal to 0" in ran.err


def test_a_release_without_a_table_is_refused_in_words() -> None:
    manifest = a_baked_model()
    manifest["spec"]["engine"]["vllm"]["version"] = "0.1.0"
    ran = hermetic("render", "-f", "-", stdin=text(manifest))
    assert ran.code == 2
    assert "EngineVersionUnsupported: `engine.vllm.version` '0.1.0' is not supported; use a release of 0.24," in ran.err


def test_an_object_without_a_name_cannot_be_rendered() -> None:
    ran = hermetic("render", "-f", "-", stdin=text({**a_baked_model(), "metadata": {"generateName": "phi-"}}))
    assert ran.code == 2
    assert "metadata.name: is required" in ran.err


def test_of_evidence_nothing_is_rendered_and_that_is_said() -> None:
    ran = hermetic("render", "-f", "-", stdin=text(an_egress_audit()))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "# standard input:1:1: EgressAudit: nothing is rendered of it\n"


def test_foreign_characters_are_printed_as_they_are() -> None:
    manifest = a_share_model(weights={"azureFiles": {"account": "abc", "share": "models", "folder": "modèles/🦙"}})
    assert "folderName: modèles/🦙\n" in hermetic("render", "-f", "-", stdin=text(manifest)).out


def test_text_that_looks_like_something_else_is_quoted_for_every_reader() -> None:
    manifest = a_baked_model()
    values = ["yes", "y", "1e3", "0o17", "16:30", "null", "2026-01-31", "0x1F"]
    names = sorted(COMMON.variables.allowed)
    environment = [{"name": name, "value": value} for name, value in zip(names, values, strict=False)]
    manifest["spec"]["engine"]["vllm"]["extraEnv"] = environment
    printed = hermetic("render", "-f", "-", stdin=json.dumps(manifest)).out
    for value in values:
        assert f"value: '{value}'\n" in printed


def test_json_is_a_list_that_kubectl_applies() -> None:
    ran = hermetic("render", "-f", "-", "-o", "json", stdin=text(live(a_baked_model())))
    listed = json.loads(ran.out)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == list(
        yaml.safe_load_all(hermetic("render", "-f", "-", stdin=text(live(a_baked_model()))).out)
    )


def test_volumes_are_the_platform_teams_own_and_name_the_claim_to_use() -> None:
    ran = hermetic("render", "--volumes", "-f", "-", "-n", "inference", stdin=text(a_share_model(), a_baked_model()))
    volume, claim = yaml.safe_load_all(ran.out)
    assert volume["metadata"].keys() == {"name"}
    assert claim["metadata"].keys() == {"name", "namespace"}
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"]
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert f"claimName: {claim['metadata']['name']}" in ran.err
    assert "phi reads from no share, and needs no volume" in ran.err


def test_volume_of_a_model_with_adapters_names_the_folders_below_it() -> None:
    adapters = [{"name": "de", "folder": "llama-3-1-8b/adapters/de", "rank": 16}]
    ran = hermetic("render", "--volumes", "-f", "-", stdin=text(a_share_model(adapters=adapters)))
    volume, claim = yaml.safe_load_all(ran.out)
    assert volume["spec"]["csi"]["volumeAttributes"]["folderName"] == "llama-3-1-8b"
    assert f"claimName: {claim['metadata']['name']}, folder: fp8}}" in ran.err
    assert "its adapter 'de' has 'folder: adapters/de' then" in ran.err


def test_volumes_hold_what_the_operators_own_would_hold() -> None:
    _, _, ours, our_claim, *_ = yaml.safe_load_all(hermetic("render", "-f", "-", stdin=text(a_share_model())).out)
    theirs, their_claim = yaml.safe_load_all(
        hermetic("render", "-f", "-", "--volumes", stdin=text(a_share_model())).out
    )
    renamed = json.dumps([ours["spec"], our_claim["spec"]])
    renamed = renamed.replace(ours["metadata"]["name"], theirs["metadata"]["name"])
    renamed = renamed.replace(our_claim["metadata"]["name"], their_claim["metadata"]["name"])
    assert json.loads(renamed) == [theirs["spec"], their_claim["spec"]]


def test_volumes_of_two_deployments_never_share_a_name() -> None:
    names = set()
    for namespace, name in (("team-a", "b"), ("team", "a-b")):
        ran = hermetic("render", "-f", "-", "--volumes", "-n", namespace, stdin=text(a_share_model(name)))
        volume, _ = yaml.safe_load_all(ran.out)
        names.add(volume["metadata"]["name"])
    assert len(names) == 2


def test_volumes_keep_their_names_when_the_object_is_made_anew() -> None:
    before = hermetic("render", "-f", "-", "--volumes", stdin=text(a_share_model())).out
    assert (
        hermetic("render", "-f", "-", "--volumes", "-n", "inference", stdin=text(live(a_share_model(), "default"))).out
        == before
    )

"""What belongs to a model: leftovers and credentials are left out and named, and so is what --exclude names."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from hermetic.weights.names import names_from
from hermetic.weights.selection import Selection, is_credential, why_not_of_a_model
from hermetic.weights.streamed_json import NotJsonError
from tests.commandline import hermetic
from tests.weights import contents

LEFTOVERS = [
    ".git/config", ".git/lfs/objects/aa/bb", ".hg/store", ".svn/entries", "sub/.git", ".gitattributes", ".github/x.yml",
    ".cache/huggingface/download/a.metadata", ".huggingface/x", ".msc", ".mdl", ".mv", "._____temp/x.safetensors",
    "config.json.incomplete", "tokenizer.json.crdownload",
    "deep/er/.DS_Store", "._config.json", "Thumbs.db", "__pycache__/x.pyc",
    ".ipynb_checkpoints/a.ipynb", ".config.json.swp", "config.json~", ".nfs00000000deadbeef0001", "lost+found/x",
    ".azDownload-1234-model.safetensors", "wget-log.1", ".model.hermetic-partial/journal",
]  # fmt: skip
CREDENTIALS = [
    ".netrc", "_netrc", ".NETRC", "sub/.netrc", ".git-credentials", ".env", ".env.production", "prod.env", "token",
    "stored_tokens", ".aws/credentials", ".azure/msal_token_cache.json", ".ssh/id_rsa", "id_ed25519", "server.key",
    "platform.pem", "cert.pfx", ".docker/config.json", ".kube/config", "kubeconfig", "kaggle.json", ".npmrc", ".pypirc",
    "application_default_credentials.json", "terraform.tfstate", ".ngc/config", ".config/gcloud/x.db", "rclone.conf",
    ".bash_history", "hf_token.txt", "credentials.json",
]  # fmt: skip
OF_A_MODEL = [
    "config.json", "tokenizer.json", "tokenizer.model", "tokens.txt", "added_tokens.json", "model.safetensors",
    "extra/empty.txt", "LICENSE", "README.md", "keys.json", "token_list.json", "vocab.bpe", "merges.txt", ".hermetic/x",
    "ngc/hub/models--nim/blobs/abc", "cache/x", ".cache/vllm/torch_compile_cache/x", "environment.json", "a~b",
    ".hermetic/caches/k/linked/triton/x.lock", "1_Pooling/config.json", "git/config", "snapshots/x",
]  # fmt: skip


def files_of(model: Path, *names: str) -> None:
    for name in names:
        (model / name).parent.mkdir(parents=True, exist_ok=True)
        (model / name).write_text("{}")


@pytest.mark.parametrize("path", [*LEFTOVERS, *CREDENTIALS])
def test_selection_leftover_or_credential_is_left_out(path: str) -> None:
    assert Selection().hides(path, is_folder=False)
    assert is_credential(path) == (path in CREDENTIALS)


@pytest.mark.parametrize("path", OF_A_MODEL)
def test_selection_file_of_a_model_is_kept(path: str) -> None:
    assert not Selection().hides(path, is_folder=False)
    assert why_not_of_a_model(path) is None


def test_stage_leftovers_and_credentials_are_named_and_not_copied(model: Path, share: Path) -> None:
    before = contents(model)
    files_of(model, *LEFTOVERS, *CREDENTIALS)
    ran = hermetic("stage", model, share / "llama", "-o", "json")
    assert ran.code == 0, ran.err
    event = json.loads(ran.out.splitlines()[-1])
    copied = contents(share / "llama")
    assert {path: content for path, content in copied.items() if not path.startswith(".hermetic/")} == before
    left_out = {entry["path"]: entry["reason"] for entry in event["leftOut"]}
    assert left_out[".git/"] == "version control"
    assert left_out[".cache/huggingface/"] == "download tool"
    assert {path for path, reason in left_out.items() if reason == "may hold credentials"} >= {
        ".netrc",
        ".ssh/",
        "token",
    }
    assert any(".netrc" in line for line in event["advice"])
    assert hermetic("verify", share / "llama", "--digest", event["digest"]).code == 0


def test_manifest_lists_what_stage_would_copy(model: Path, share: Path) -> None:
    """A clone of a repository holds the token of its owner in `.git/config`, and its objects twice the bytes."""
    staged = json.loads(hermetic("stage", model, share / "llama", "-o", "json").out.splitlines()[-1])
    files_of(model, *LEFTOVERS, *CREDENTIALS)
    listed = hermetic("manifest", model, "-o", "json")
    assert listed.code == 0, listed.err
    result = json.loads(listed.out)
    assert result["digest"] == staged["digest"]
    manifest = (model / ".hermetic/manifest.json").read_text()
    assert ".git/" not in manifest
    assert ".netrc" not in manifest
    left_out = {entry["path"]: entry["reason"] for entry in result["leftOut"]}
    assert left_out[".git/"] == "version control"
    assert left_out["token"] == "may hold credentials"
    assert "left out (version control): .git/" in listed.err
    assert "remove what was left out" in listed.err


def test_verify_refuses_what_manifest_left_out_until_it_is_removed(model: Path) -> None:
    files_of(model, ".git/config")
    digest = json.loads(hermetic("manifest", model, "-o", "json").out)["digest"]
    refused = hermetic("verify", model, "--digest", digest)
    assert refused.code == 1
    assert "FileNotListed" in refused.out + refused.err
    shutil.rmtree(model / ".git")
    assert hermetic("verify", model, "--digest", digest).code == 0


def test_manifest_of_a_clean_folder_leaves_out_nothing(model: Path) -> None:
    ran = hermetic("manifest", model, "-o", "json")
    assert json.loads(ran.out)["leftOut"] == []
    assert "left out" not in ran.err


def test_stage_same_files_with_other_leftovers_have_the_same_digest(model: Path, share: Path) -> None:
    def digest(name: str) -> str:
        ran = hermetic("stage", model, share / name, "-o", "json")
        return str(json.loads(ran.out.splitlines()[-1])["digest"])

    before = digest("a")
    files_of(model, ".git/config", ".DS_Store", ".netrc")
    assert digest("b") == before


def test_stage_excluded_files_are_left_out_recorded_and_verified(model: Path, share: Path) -> None:
    files_of(model, "pytorch_model.bin", "original/params.json", "original/a.pth", "onnx/model.onnx", "x.py")
    patterns = ("--exclude", "*.bin", "--exclude", "original/", "--exclude", "onnx/*", "--exclude", "./x.py")
    ran = hermetic("stage", model, share / "llama", *patterns, "--exclude", "nothing", "-o", "json")
    assert ran.code == 0, ran.err
    event = json.loads(ran.out.splitlines()[-1])
    assert not {path.split("/")[0] for path in contents(share / "llama")} & {
        "pytorch_model.bin",
        "original",
        "onnx",
        "x.py",
    }
    assert "--exclude nothing: no file or folder of the source matches" in event["advice"]
    names = (share / "llama" / ".hermetic" / "names.json").read_bytes()
    assert names_from(names).excluded == ("*.bin", "onnx/*", "original", "x.py")
    assert hermetic("verify", share / "llama", "--digest", event["digest"]).code == 0
    again = hermetic("manifest", share / "llama", "-o", "json")
    assert json.loads(again.out)["digest"] == event["digest"]
    with pytest.raises(NotJsonError):
        names_from(names.replace(b'"onnx/*"', b"1"))


@pytest.mark.parametrize("pattern", ["", "/etc", "/", "a\nb"])
def test_stage_pattern_that_is_none_is_refused(model: Path, share: Path, pattern: str) -> None:
    ran = hermetic("stage", model, share / "llama", "--exclude", pattern)
    assert (ran.code, "--exclude" in ran.err) == (2, True)


def test_stage_shard_that_is_excluded_is_missing(model: Path, share: Path) -> None:
    ran = hermetic("stage", model, share / "llama", "--exclude", "*00002*")
    assert (ran.code, "ShardMissing: model-00002-of-00003.safetensors" in ran.err) == (1, True)


def test_stage_pickle_beside_safetensors_is_refused_with_the_command_that_leaves_it_out(
    model: Path, share: Path
) -> None:
    files_of(model, "pytorch_model.bin", "original/a.pth", "modeling_x.py", "lib.so.1")
    ran = hermetic("stage", model, share / "llama", "--threads", "2")
    assert ran.code == 1
    command = ran.err.split("leave them out: ")[1].strip()
    assert command.startswith(f"hermetic stage {model} {share}/llama --threads 2 --exclude ")
    for pattern in ("'*.bin'", "'*.pth'", "'*.py'", "lib.so.1"):
        assert pattern in command
    assert hermetic(*shlex.split(command)[1:]).code == 0


def test_stage_pickle_that_is_the_only_weights_is_not_said_to_be_needless(model: Path, share: Path) -> None:
    for path in model.glob("*.safetensors*"):
        path.unlink()
    files_of(model, "pytorch_model.bin")
    ran = hermetic("stage", model, share / "llama")
    assert (ran.code, "No engine needs" in ran.err) == (1, False)


def test_verify_refuses_credentials_that_lie_beside_the_listed_files(model: Path) -> None:
    files_of(model, ".netrc")
    assert hermetic("manifest", model).code == 0
    ran = hermetic("verify", model)
    assert (ran.code, ".netrc" in ran.err) == (1, True), ran.err


def test_stage_link_to_what_is_left_out_is_refused(model: Path, share: Path) -> None:
    files_of(model, ".git/lfs/objects/abc")
    (model / "more.safetensors").symlink_to(".git/lfs/objects/abc")
    ran = hermetic("stage", model, share / "llama")
    assert (ran.code, "LinkRefused: more.safetensors" in ran.err) == (1, True)


def test_stage_odd_things_in_what_is_left_out_do_not_matter(model: Path, share: Path) -> None:
    """A pipe, a name that is not UTF-8, a line break and an unreadable folder inside of `.git`."""
    (model / ".git").mkdir()
    git = os.fsencode(model / ".git")
    os.mkfifo(git + b"/pipe")
    Path(os.fsdecode(git + b"/\xff\xfe")).write_text("x")
    (model / ".git" / "a\nb").write_text("x")
    ran = hermetic("stage", model, share / "llama")
    assert ran.code == 0, ran.err


def test_stage_facts_do_not_count_what_is_excluded(model: Path, share: Path) -> None:
    from tests.model_configs import LLAMA_8B
    from tests.weights import a_shard

    (model / "config.json").write_text(json.dumps(LLAMA_8B))
    (model / "model.safetensors.index.json").unlink()
    a_shard(model / "other.safetensors", tensors=1, size=4096, seed=9)

    def parameter_bytes(name: str, *options: str) -> int:
        ran = hermetic("stage", model, share / name, "-o", "json", *options)
        return int(json.loads(ran.out.splitlines()[-1])["weights"]["facts"]["parameterBytes"])

    assert parameter_bytes("a") - parameter_bytes("b", "--exclude", "other.*") == 4096

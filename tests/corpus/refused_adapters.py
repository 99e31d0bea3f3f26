"""Adapters that no engine loads: names, folders, ranks and sources."""

from __future__ import annotations

from typing import Any

from tests.corpus.cases import RELATIVE, Invalid, case
from tests.corpus.manifests import DIGEST, changed, nim_on_azure_files, vllm_on_azure_files, vllm_with_everything_said

_ADAPTERS = "spec.adapters"
_NAMES = "must have names other than `model.name` and `model.aliases`"
_FOR_THE_DRIVER = "must be a folder that the Azure Files driver takes"
_COVERED = "must have no `integrity` where the weights are an image or the adapter lies in the folder of the model"
_HOLDS_MODEL = "must have folders that do not hold the model"
_WHOLE_SHARE = changed(vllm_on_azure_files(), {"spec.weights.azureFiles.folder": None})
_IN_AN_IMAGE = changed(vllm_on_azure_files(), {"spec.weights": {"bakedImage": {"path": "/models/phi-4"}}})


def an_adapter(**fields: Any) -> dict[str, Any]:
    """A valid adapter beside the model."""
    return {"name": "sql", "folder": "adapters/sql", "rank": 16, **fields}


def _adapter(what: str, fields: dict[str, Any], field: str, says: str, **more: Any) -> Invalid:
    adapters = [an_adapter(), an_adapter(**{"name": "de", **fields})]
    return case(f"adapter {what}", _ADAPTERS, adapters, says, blames=f"{_ADAPTERS}[1].{field}", **more)


def _list(what: str, adapters: list[dict[str, Any]], says: str, **more: Any) -> Invalid:
    return case(f"adapters {what}", _ADAPTERS, adapters, says, **more)


ADAPTERS = (
    _adapter("named with a colon", {"name": "a:b"}, "name", "must be letters, digits", prints="a:b"),
    _adapter("named with a slash", {"name": "a/b"}, "name", "must be letters, digits", prints="a/b"),
    _adapter("named with an equals sign", {"name": "a=b"}, "name", "must be letters, digits", prints="a=b"),
    _adapter("named upwards", {"name": ".."}, "name", "must be letters, digits", prints=".."),
    _adapter("in a folder upwards", {"folder": "../sql"}, "folder", RELATIVE, prints="../sql"),
    _adapter("in an absolute folder", {"folder": "/sql"}, "folder", RELATIVE, prints="/sql"),
    _adapter(
        "in a folder with a backslash",
        {"folder": "a\\b"},
        "folder",
        _FOR_THE_DRIVER,
    ),
    *(
        _adapter(f"of rank {rank}", {"rank": rank}, "rank", "must be", server_says="Unsupported value")
        for rank in (0, 1, 12, 320, 1024)
    ),
    _adapter(
        "with a digest of another form",
        {"integrity": {"digest": "sha512:00"}},
        "integrity.digest",
        "must be a root digest as 'hermetic stage' prints it",
        prints="sha512:00",
    ),
    case(
        "adapter twice",
        _ADAPTERS,
        [an_adapter(), an_adapter(folder="other")],
        "must not stand here twice",
        server_says="Duplicate value",
        blames=f"{_ADAPTERS}[1]",
        prints="sql",
    ),
    _list(
        "of whom one is named as the model",
        [an_adapter(name="phi-4")],
        _NAMES,
        base=changed(vllm_on_azure_files(), {"spec.model.name": "phi-4"}),
    ),
    _list("of whom one is named as an alias", [an_adapter(name="llama-70b")], _NAMES, base=vllm_with_everything_said()),
    _list("of a NIM", [an_adapter()], "needs engine `vllm` or `sglang`", base=nim_on_azure_files()),
    _list("whose folder is the model's", [an_adapter(folder="llama-3-1-8b/fp8")], _HOLDS_MODEL),
    _list("whose folder holds the model", [an_adapter(folder="llama-3-1-8b")], _HOLDS_MODEL),
    _list(
        "below the model with a digest",
        [an_adapter(folder="llama-3-1-8b/fp8/sql", integrity={"digest": DIGEST})],
        _COVERED,
    ),
    _list("of a whole share with a digest", [an_adapter(integrity={"digest": DIGEST})], _COVERED, base=_WHOLE_SHARE),
    _list("of an image with a digest", [an_adapter(integrity={"digest": DIGEST})], _COVERED, base=_IN_AN_IMAGE),
    _list(
        "of which there are 17",
        [an_adapter(name=f"a{number}") for number in range(17)],
        "must have at most 16",
        server_says="must have at most 16 items",
    ),
)

"""What must be refused, by `hermetic validate` and by the API server, and how it is said.

A rule has one message: both contain `says`. Where the schema itself refuses (type, bound, enum,
required), the API server has words of its own: `server_says`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.corpus.manifests import Manifest, changed, vllm_on_azure_files

VLLM = "spec.engine.vllm"
SHARE = "spec.weights.azureFiles"
ENDPOINT = "spec.endpoint"
BALANCER = "spec.endpoint.internalLoadBalancer"


@dataclass(frozen=True)
class Invalid:
    """One manifest, the field that is at fault, and what the message holds."""

    name: str
    manifest: Manifest
    path: str
    says: str
    server_says: str = ""
    rows: tuple[int, ...] = ()
    value: str | None = None
    """The value as the message prints it, or None where a value is missing or an object is at fault."""

    @property
    def words_of_the_server(self) -> str:
        return self.server_says or self.says


def case(name: str, path: str, value: Any, says: str, **more: Any) -> Invalid:
    """The shortest deployment with one wrong value, which the message must print if it is a string or number."""
    base: Manifest = more.pop("base", None) or vllm_on_azure_files()
    blamed = more.pop("blames", path)
    shown = isinstance(value, str | int | float) and len(str(value)) < 60 and str(value).isprintable()
    printed = more.pop("prints", str(value) if shown and blamed == path and not isinstance(value, bool) else None)
    return Invalid(name, changed(base, {path: value}), blamed, says, value=printed, **more)


PINNED = "must be an image pinned by digest: registry/repository@sha256:<64 lower-case hex digits>"
RESERVED_FLAG = "must not be a reserved flag or an abbreviation of one: "
RESERVED_KEY = "must not set a key that loads code or calls out"
RESERVED_VARIABLE = "must not be a reserved variable: "
RELATIVE = "must be a relative path without empty, '.' or '..' parts, control characters or outer spaces"
ABSOLUTE = "must be an absolute path without empty, '.' or '..' parts, control characters or outer spaces"
OBJECT_NAME = "must be the name of an object in the same namespace"
PRIVATE = "must be a private IPv4 address (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10)"
CIDR = "must be a CIDR without host bits, such as '10.0.0.0/8'; the whole internet ('/0') is not accepted"
NAME = "must be 1 to 46 lower-case letters, digits or '-', starting with a letter"
GPUS = "must equal `engine.vllm.tensorParallelSize` times `pipelineParallelSize` times the data parallel size"
ONE_SOURCE = "must set exactly one of `azureFiles`, `nfs`, `persistentVolumeClaim`, `bakedImage`, `imageVolume`"
ONE_ENGINE = "must set exactly one of `vllm`, `nim`, `sglang`"
UNKNOWN = {"says": "is not a field of this object", "server_says": "unknown field"}
REQUIRED = {"says": "is required", "server_says": "Required value"}

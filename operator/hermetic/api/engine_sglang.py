"""`spec.engine.sglang`: the settings of SGLang, and its reserved flags."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.engine_variables import Environment
from hermetic.api.field_types import PinnedImage, list_of, matches
from hermetic.api.reserved_flags import (
    ADAPTERS,
    CODE,
    NO_CONTROL_CHARACTER,
    NO_RESERVED_KEY,
    NO_URL,
    NODES,
    OPEN,
    OUT,
    REMOTE_CODE,
    RUNS_REMOTE_CODE,
    UNCHECKED,
)
from hermetic.api.reserved_flags import ReservedFlags as _ReservedFlags
from hermetic.api.rules import ApiModel

_FILES = "would write requests or tensors to files"
_GROUP = "is for servers of several pods that find each other in another way"

# argparse accepts any unambiguous prefix, so prefixes of these are refused as well.
SGLANG_FLAGS: dict[str, str] = {
    **dict.fromkeys(("--model-path", "--model"), "set spec.weights"),
    "--served-model-name": "set spec.model.name",
    "--host": "Hermetic lets the engine listen on every address of the pod",
    "--port": "set spec.endpoint.port",
    "--context-length": "set spec.engine.sglang.maxModelLength",
    "--mem-fraction-static": "set spec.engine.sglang.memFractionStaticPercent",
    "--kv-cache-dtype": "set spec.engine.sglang.kvCacheDtype",
    **dict.fromkeys(("--tp-size", "--tensor-parallel-size"), "set spec.engine.sglang.tensorParallelSize"),
    **dict.fromkeys(("--pp-size", "--pipeline-parallel-size"), "set spec.engine.sglang.pipelineParallelSize"),
    "--api-key": "set spec.endpoint.apiKey",
    "--admin-api-key": "is a random value of each pod: what changes weights, adapters and caches is closed to clients",
    **dict.fromkeys(
        ("--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--ssl-keyfile-password", "--enable-ssl-refresh"),
        "set spec.endpoint.tls",
    ),
    "--allowed-media-domains": "media from URLs is refused in a sealed cluster; send data: URLs",
    "--tokenizer-worker-num": "the server checks no API key with more than one tokenizer worker",
    "--fastapi-root-path": "would stand before every path: with '/health' each of them would answer without the key",
    "--config": UNCHECKED,
    **dict.fromkeys(("--decrypted-config-file", "--decrypted-draft-config-file"), OUT),
    **dict.fromkeys(
        ("--tokenizer-path", "--revision", "--download-dir", "--tool-server", "--modelexpress-config"), OUT
    ),
    **dict.fromkeys(("--speculative-draft-model-revision", "--speculative-token-map"), OUT),
    **dict.fromkeys(("--lora-paths", "--enable-lora", "--max-lora-rank"), ADAPTERS),
    "--uno-lora-path": OUT,
    **dict.fromkeys(("--otlp-traces-endpoint", "--enable-trace", "--kv-events-config", "--load-publish-endpoint"), OUT),
    **dict.fromkeys(("--encoder-urls", "--encoder-register-urls"), OUT),
    REMOTE_CODE: RUNS_REMOTE_CODE,
    **dict.fromkeys(("--model-impl", "--model-config-parser", "--custom-weight-loader"), CODE),
    **dict.fromkeys(("--forward-hooks", "--warmups", "--load-format", "--speculative-draft-load-format"), CODE),
    **dict.fromkeys(("--json-model-override-args", "--model-loader-extra-config", "--sidecar", "--sidecar-args"), CODE),
    **dict.fromkeys(("--enable-custom-logit-processor", "--radix-cache-backend"), CODE),
    **dict.fromkeys(("--trust-request-chat-template", "--trust-mm-content-hashes"), OPEN),
    **dict.fromkeys(("--grpc-mode", "--grpc-port", "--smg-grpc-mode", "--smg-http-sidecar-port"), OPEN),
    "--grpc-http-sidecar-port": OPEN,
    **dict.fromkeys(("--dist-init-addr", "--nnodes", "--node-rank"), NODES),
    **dict.fromkeys(("--nccl-init-addr", "--nccl-port"), _GROUP),
    **dict.fromkeys(("--use-ray", "--encoder-only", "--encoder-bootstrap-port", "--encoder-transfer-backend"), _GROUP),
    **dict.fromkeys(("--disaggregation-mode", "--disaggregation-bootstrap-port", "--disaggregation-ib-device"), _GROUP),
    **dict.fromkeys(("--disaggregation-transfer-backend", "--enable-pd-role-switch", "--mooncake-ib-device"), _GROUP),
    **dict.fromkeys(("--decoupled-spec-bind-endpoint", "--decoupled-spec-connect-endpoints"), _GROUP),
    **dict.fromkeys(("--decoupled-spec-role", "--elastic-ep-backend", "--engine-info-bootstrap-port"), _GROUP),
    **dict.fromkeys(("--remote-instance-weight-loader-seed-instance-ip", "--gated-launch-port"), OPEN),
    **dict.fromkeys(("--remote-instance-weight-loader-seed-instance-service-port",), OPEN),
    **dict.fromkeys(("--remote-instance-weight-loader-send-weights-group-ports",), OPEN),
    **dict.fromkeys(("--remote-instance-weight-loader-backend",), OPEN),
    **dict.fromkeys(("--remote-instance-weight-loader-start-seed-via-transfer-engine",), OPEN),
    **dict.fromkeys(
        ("--weight-cache-mode", "--weight-cache-socket", "--checkpoint-engine-wait-weights-before-ready"), OPEN
    ),
    **dict.fromkeys(("--hicache-storage-backend", "--hicache-storage-backend-extra-config"), OUT),
    **dict.fromkeys(("--enable-lmcache", "--lmcache-config-file", "--enable-flexkv", "--flexkv-config-file"), OUT),
    **dict.fromkeys(("--enable-mm-global-cache", "--enable-unified-cache-external-linker"), OUT),
    **dict.fromkeys(("--unified-cache-external-linker-config",), OUT),
    **dict.fromkeys(("--export-metrics-to-file", "--export-metrics-to-file-dir", "--crash-dump-folder"), _FILES),
    **dict.fromkeys(
        ("--debug-tensor-dump-output-folder", "--debug-tensor-dump-input-file", "--spec-trace-dir"), _FILES
    ),
    **dict.fromkeys(("--log-requests-target", "--msprobe-dump-config", "--file-storage-path"), _FILES),
    "--delete-ckpt-after-loading": "the weights are read-only, and other pods read them",
}
RESERVED_OF_SGLANG = _ReservedFlags(
    SGLANG_FLAGS,
    # Whole flags that are a prefix of a reserved one. Compared with the derived tables by a test.
    whole=("--ep", "--log-requests", "--speculative-draft-model"),
    except_for=(REMOTE_CODE,),
)

Argument = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1024),
    *RESERVED_OF_SGLANG.rules(),
    NO_RESERVED_KEY,
    NO_URL,
    NO_CONTROL_CHARACTER,
]


class Sglang(ApiModel):
    """SGLang's OpenAI-compatible server, started as `sglang serve`."""

    image: PinnedImage
    """Serving image by digest, from a registry on the operator's allow list, for example
    'contoso.azurecr.io/lmsysorg/sglang@sha256:…'."""
    version: Annotated[
        str,
        StringConstraints(max_length=32),
        matches(r"^[0-9]+\.[0-9]+\.[0-9]+(\.post[0-9]+)?$", "must be an SGLang release such as '0.5.23'"),
    ]
    """SGLang release inside the image, for example '0.5.23'. It decides which flags may be rendered: an unknown flag
    ends the engine at once."""
    max_model_length: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Longest context in tokens (prompt and answer together), 1 to 10,000,000. Default: the value in the model's
    config.json."""
    mem_fraction_static_percent: Annotated[int, Field(ge=10, le=98)] | None = None
    """Share of each GPU's memory that weights and key-value cache may take, in percent, 10 to 98. Default: what SGLang
    derives from GPU and model."""
    kv_cache_dtype: (
        Annotated[
            str,
            StringConstraints(max_length=32),
            matches(r"^[a-z0-9_]+$", "must be a number format of SGLang, such as 'auto' or 'fp8_e4m3'"),
        ]
        | None
    ) = None
    """Number format of the key-value cache, for example 'fp8_e4m3'. Default: 'auto', the model's own."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=256)] | None = None
    """GPUs that share each layer, 1 to 256. Default: all GPUs of a replica divided by `pipelineParallelSize`."""
    pipeline_parallel_size: Annotated[int, Field(ge=1, le=16)] = 1
    """Stages that the layers are split into, 1 to 16; with several `accelerator.nodes` a divisor or a multiple of
    them. Default: 1."""
    extra_args: Annotated[list[Argument], Field(max_length=64), list_of("atomic")] = []
    """Further arguments of `sglang serve`, passed as they are, never through a shell. Flags that the version does not
    know, that are reserved or that are not on the reviewed list are refused, and values that are addresses. Default:
    none."""
    extra_env: Environment = []
    """Further environment variables, for example '{name: SGLANG_LOG_MS, value: "1"}': those of the reviewed list and
    those that the operator's configuration allows. Default: none."""

"""What a user may not pass to an engine, and why: flags and variables that are Hermetic's own or open a way out."""

from __future__ import annotations

import re

from hermetic.api.field_types import CONTROL_CHARACTER
from hermetic.api.rules import Rule

_OURS = "rendered by Hermetic from the spec"
_OUT = "would let the pod fetch from outside or run code from outside the image"
_CODE = "would run code that lies beside the weights; code comes in the image"
_OPEN = "would open a second way into the pod"

# vLLM flags. argparse accepts any unambiguous prefix, so prefixes of these are refused as well.
VLLM_FLAGS: dict[str, str] = {
    "--model": _OURS,
    "--served-model-name": _OURS,
    "--host": _OURS,
    "--port": _OURS,
    "--max-model-len": "set spec.engine.vllm.maxModelLength",
    "--gpu-memory-utilization": "set spec.engine.vllm.gpuMemoryUtilizationPercent",
    "--device-memory-utilization": "set spec.engine.vllm.gpuMemoryUtilizationPercent",
    "--kv-cache-dtype": "set spec.engine.vllm.kvCacheDtype",
    "--tensor-parallel-size": "set spec.engine.vllm.tensorParallelSize",
    "--pipeline-parallel-size": "set spec.engine.vllm.pipelineParallelSize",
    "--shutdown-timeout": "set spec.drainSeconds",
    "--api-key": "set spec.endpoint.apiKey",
    "--ssl-keyfile": "set spec.endpoint.tls",
    "--ssl-certfile": "set spec.endpoint.tls",
    "--ssl-ca-certs": "set spec.endpoint.tls",
    "--ssl-cert-reqs": "set spec.endpoint.tls",
    "--ssl-ciphers": "set spec.endpoint.tls",
    "--enable-ssl-refresh": _OURS,
    "--disable-ssl-refresh": _OURS,
    "--no-enable-ssl-refresh": _OURS,
    "--allowed-media-domains": "media from URLs is refused in a sealed cluster; send data: URLs",
    "--allowed-local-media-path": _OUT,
    "--enable-offline-docs": _OURS,
    "--disable-offline-docs": _OURS,
    "--no-enable-offline-docs": _OURS,
    "--config": "would bring in flags that nobody checked",
    "--config-format": _OUT,
    "--download-dir": _OUT,
    "--hf-token": _OUT,
    "--hf-config-path": _OUT,
    "--revision": _OUT,
    "--code-revision": _OUT,
    "--tokenizer-revision": _OUT,
    "--trust-remote-code": "code comes in the image, never with the weights",
    "--tool-server": _OUT,
    "--middleware": _OUT,
    "--worker-cls": _OUT,
    "--worker-extension-cls": _OUT,
    "--scheduler-cls": _OUT,
    "--model-class-overrides": _OUT,
    "--log-config-file": "a logging configuration may name any code to run; set VLLM_LOGGING_LEVEL in extraEnv",
    "--logging-config": "a logging configuration may name any code to run; set VLLM_LOGGING_LEVEL in extraEnv",
    "--logits-processors": _OUT,
    "--tool-parser-plugin": _OUT,
    "--reasoning-parser-plugin": _OUT,
    "--io-processor-plugin": _OUT,
    "--otlp-traces-endpoint": _OUT,
    "--collect-detailed-traces": _OUT,
    "--grpc": _OPEN,
    "--uds": _OPEN,
    "--headless": _OPEN,
    "--nnodes": _OPEN,
    "--node-rank": _OPEN,
    "--master-addr": _OPEN,
    "--master-port": _OPEN,
    "--data-parallel-address": _OPEN,
    "--kv-transfer-config": _OPEN,
    "--ec-transfer-config": _OPEN,
    "--kv-events-config": _OPEN,
}
# Keys of JSON values that load code or call out, for `--flag '{"key": ...}'` and for `--flag.key ...`.
_KEYS = r"(plugin|code[-_]revision|trust[-_]remote[-_]code|otlp[-_]traces[-_]endpoint)"
_JSON_KEY = rf'"[^"]*{_KEYS}"\s*:'
# For CEL, whose RE2 takes linear time for any pattern. `_sets_reserved_key` is the same in Python, whose `re` does not.
_RESERVED_KEY = (
    rf"^-[^=]*\.[^=]*{_KEYS}",
    _JSON_KEY,
    r"\{.*\\u",  # a key could be spelled in escapes, and nothing that is worth saying needs them
)

# A value may stick to a short flag, and "-t" is understood as "-tp": whatever starts like one of these is refused.
SHORT_FLAGS: dict[str, str] = {
    "-t": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-dpa": "--data-parallel-address",
}

# vLLM lower-cases the host of a URL before it looks for it in the list: no host is ever this one, and none is resolved.
# A name in lower case would be, and `media.invalid` could even be a Service of the cluster.
NOWHERE = "NOWHERE.invalid"
# Reserved, and still accepted when written out exactly like this: it closes what Hermetic cannot close itself in a NIM
# that may be of either engine. One word, so that no further domain can follow it.
MEDIA_FROM_NOWHERE = f"--allowed-media-domains={NOWHERE}"

# Whole flags of vLLM that happen to be a prefix of a reserved one and are harmless themselves. Held against the
# derived tables by a test.
NOT_AN_ABBREVIATION: tuple[str, ...] = ("--reasoning-parser", "--tokenizer")

ENVIRONMENT: dict[str, str] = {
    **dict.fromkeys(
        ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "NGC_API_KEY", "NGC_CLI_API_KEY", "MODELSCOPE_API_TOKEN"), _OUT
    ),
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"), _OUT),
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "no_proxy"), _OUT),
    **dict.fromkeys(("HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"), _OURS),
    **dict.fromkeys(("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET", "HF_HOME", "HF_HUB_CACHE"), _OURS),
    **dict.fromkeys(("HF_MODULES_CACHE", "TRANSFORMERS_CACHE"), _OURS),
    **dict.fromkeys(("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK", "VLLM_USAGE_STATS_SERVER"), _OURS),
    **dict.fromkeys(("FLASHINFER_NO_DOWNLOAD", "VLLM_MEDIA_URL_ALLOW_REDIRECTS", "VLLM_HOST_IP", "VLLM_PORT"), _OURS),
    **dict.fromkeys(("VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "VLLM_API_KEY"), _OURS),
    **dict.fromkeys(("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PATH"), _OURS),
    **dict.fromkeys(("TRITON_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "DG_JIT_CACHE_DIR", "CUDA_CACHE_PATH"), _OURS),
    **dict.fromkeys(("NUMBA_CACHE_DIR", "OUTLINES_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"), _OURS),
    **dict.fromkeys(("VLLM_SERVER_DEV_MODE", "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_PLUGINS"), _OPEN),
    **dict.fromkeys(("VLLM_ALLOW_INSECURE_SERIALIZATION", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"), _OPEN),
    **dict.fromkeys(("VLLM_USE_MODELSCOPE", "VLLM_LORA_RESOLVER_HF_REPO_LIST", "VLLM_RPC_BASE_PATH"), _OUT),
    "FLASHINFER_CUBINS_REPOSITORY": _OURS,
    **dict.fromkeys(("SAGEMAKER_MODEL_PATH", "CUSTOM_SCRIPT_FILENAME", "VLLM_LOGGING_CONFIG_PATH"), _CODE),
    **dict.fromkeys(("CUSTOM_FASTAPI_PING_HANDLER", "CUSTOM_FASTAPI_INVOCATION_HANDLER"), _CODE),
    **dict.fromkeys(("CUSTOM_FASTAPI_MIDDLEWARE_THROTTLE", "CUSTOM_FASTAPI_MIDDLEWARE_PRE_POST_PROCESS"), _CODE),
    **dict.fromkeys(("CUSTOM_PRE_PROCESS", "CUSTOM_POST_PROCESS", "NIM_MIDDLEWARE_CONFIG_PATH"), _CODE),
    **dict.fromkeys(("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME"), _OUT),
    **dict.fromkeys(("PYTHONUSERBASE", "LD_AUDIT", "GCONV_PATH", "BASH_ENV", "ENV"), _OUT),
    **dict.fromkeys(("CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "TRITON_PTXAS_PATH"), _OUT),
    **dict.fromkeys(("VLLM_LOGGING_CONFIG_PATH", "VLLM_RUST_FRONTEND_PATH"), _OUT),
    **dict.fromkeys(("VLLM_NCCL_SO_PATH", "VLLM_CUDART_SO_PATH"), _OUT),
    **dict.fromkeys(("NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"), _OUT),
    **dict.fromkeys(("NIM_CACHE_PATH", "NIM_SERVER_PORT", "NIM_HTTP_API_PORT", "NIM_MODEL_NAME"), _OURS),
    **dict.fromkeys(("NIM_MODEL_PATH", "NIM_MODEL_PROFILE", "NIM_SERVED_MODEL_NAME", "NIM_MAX_MODEL_LEN"), _OURS),
    **dict.fromkeys(("NIM_DISABLE_MODEL_DOWNLOAD", "NIM_TELEMETRY_MODE", "NIM_TENSOR_PARALLEL_SIZE"), _OURS),
    **dict.fromkeys(("NIM_SSL_MODE", "NIM_SSL_KEY_PATH", "NIM_SSL_CERTS_PATH", "NIM_SSL_CA_CERTS_PATH"), _OURS),
    **dict.fromkeys(("NIM_PASSTHROUGH_ARGS", "NIM_HEALTH_PORT", "NIM_SAGEMAKER_MODE"), _OPEN),
    **dict.fromkeys(("NIM_REPOSITORY_OVERRIDE", "NIM_PROXY_CONNECTIVITY_TARGETS", "NIM_ENABLE_OTEL"), _OUT),
    **dict.fromkeys(("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), _OUT),
    **dict.fromkeys(("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "NIM_OTEL_EXPORTER_OTLP_ENDPOINT"), _OUT),
}
# Whatever ends like this, in any case, is a proxy or a credential.
RESERVED_ENDINGS: tuple[str, ...] = ("_PROXY", "TOKEN", "SECRET", "PASSWORD", "_KEY")
_RESERVED_ENDING = f"(?i)({'|'.join(RESERVED_ENDINGS)})$"


def reserved_variable(name: str) -> bool:
    """Whether the variable is one that a user may not set, by its name or by its kind."""
    return name in ENVIRONMENT or re.search(_RESERVED_ENDING, name) is not None


def _sets_reserved_key(argument: str) -> bool:
    """Linear in the length of the argument: every tenant may write 64 of 1,024 characters into one object."""
    dotted = argument.partition("=")[0].partition(".")[2] if argument.startswith("-") else ""
    return (
        re.search(_KEYS, dotted) is not None
        or re.search(_JSON_KEY, argument) is not None
        or _has_escape_in_object(argument)
    )


def _has_escape_in_object(argument: str) -> bool:
    """A backslash and "u" after an opening brace in the same line."""
    return any("\\u" in line.partition("{")[2] for line in argument.split("\n"))


def reserved_flag(argument: str) -> str:
    """The reserved flag that this argument names, in full or abbreviated; "" when it names none.

    vLLM reads `--flag=value`, `--flag.key value` (one key of a JSON value) and '_' for '-'.
    """
    if argument == MEDIA_FROM_NOWHERE:
        return ""
    if not argument.startswith("--"):
        return next((flag for short, flag in SHORT_FLAGS.items() if argument.startswith(short)), "")
    name = argument.split("=", 1)[0].split(".", 1)[0].replace("_", "-")
    if name == "--" or name in NOT_AN_ABBREVIATION:
        return ""
    return next((flag for flag in VLLM_FLAGS if flag.startswith(name)), "")


def _words(names: tuple[str, ...] | dict[str, str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _looks_like_url(argument: str) -> bool:
    return "://" in argument


NO_RESERVED_FLAG = Rule(
    cel=(
        f"self == '{MEDIA_FROM_NOWHERE}' || "
        "!(self.startsWith('--') && [self.split('=')[0].split('.')[0].replace('_', '-')].exists(name, name != '--' && "
        f"!(name in {_words(NOT_AN_ABBREVIATION)}) && {_words(VLLM_FLAGS)}.exists(flag, flag.startsWith(name))))"
        f" && !{_words(SHORT_FLAGS)}.exists(flag, self.startsWith(flag))"
    ),
    message=(
        "must not be a reserved flag or an abbreviation of one: Hermetic renders it from the spec, or it would open a "
        "way out; set the field of the spec instead (`hermetic explain HRM-API-001` lists the reserved flags)"
    ),
    holds=lambda argument: not reserved_flag(argument),
)
NO_RESERVED_KEY = Rule(
    cel=" && ".join(f"!self.matches(r'{pattern}')" for pattern in _RESERVED_KEY),
    message=(
        "must not set a key that loads code or calls out ('…plugin', 'code_revision', 'trust_remote_code', "
        "'otlp_traces_endpoint'), dotted, in JSON or behind '\\u': code comes in the image; leave the key out"
    ),
    holds=lambda argument: not _sets_reserved_key(argument),
)
NO_URL = Rule(
    cel="!self.contains('://')",
    message="must not hold a URL: nothing may be fetched in a sealed cluster; stage the file and give its path",
    holds=lambda argument: not _looks_like_url(argument),
)
NO_CONTROL_CHARACTER = Rule(
    cel=r"self.matches(r'^[^\x00-\x1f\x7f]*$')",
    message="must not hold control characters (newline, tab, NUL)",
    holds=lambda text: CONTROL_CHARACTER.search(text) is None,
)
NO_RESERVED_VARIABLE = Rule(
    cel=f"!(self in {_words(ENVIRONMENT)}) && !self.matches('{_RESERVED_ENDING}')",
    message=(
        "must not be a reserved variable: it would open a way out, or Hermetic sets it; credentials and proxies are "
        "accepted in no form (`hermetic explain HRM-API-001` lists the reserved ones)"
    ),
    holds=lambda name: not reserved_variable(name),
)

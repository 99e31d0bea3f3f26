"""Flags and variables that users may not set: Hermetic sets them itself, or they would weaken isolation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hermetic.api.field_types import CONTROL_CHARACTER
from hermetic.api.rules import Rule

OURS = "rendered by Hermetic from the spec"
FIELD = "set spec."  # how the reason of a flag begins that has a field of its own
IMPORTS = "names a class to import, and code comes in the image only"
REMOTE_CODE = "--trust-remote-code"
RUNS_REMOTE_CODE = (
    "runs the code that lies beside the weights: it is possible, written out in full and without a value, with weights "
    "in an image (`weights.bakedImage` or `weights.imageVolume`), where the platform team allows it with `remoteCode` "
    "in the operator's configuration"
)
OUT = "would let the pod fetch from outside or run code from outside the image"
CODE = "would run code that lies beside the weights; code comes in the image"
OPEN = "would open a second way into the pod"
UNCHECKED = "would bring in flags that are not checked"
ADAPTERS = "set spec.adapters"
NODES = "set spec.accelerator.nodes"

# vLLM flags. argparse accepts any unambiguous prefix, so prefixes of these are refused as well.
VLLM_FLAGS: dict[str, str] = {
    "--model": "set spec.weights",
    "--served-model-name": "set spec.model.name and spec.model.aliases",
    "--host": "Hermetic lets the engine listen on every address of the pod",
    "--port": "set spec.endpoint.port",
    "--max-model-len": "set spec.engine.vllm.maxModelLength, or give '--max-model-len=auto' as one item",
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
    "--enable-ssl-refresh": "set spec.endpoint.tls",
    "--disable-ssl-refresh": "set spec.endpoint.tls",
    "--no-enable-ssl-refresh": "set spec.endpoint.tls",
    **dict.fromkeys(("--enable-lora", "--disable-lora", "--no-enable-lora"), ADAPTERS),
    **dict.fromkeys(("--lora-modules", "--max-lora-rank"), ADAPTERS),
    "--allowed-media-domains": "media from URLs is refused in a sealed cluster; send data: URLs",
    "--allowed-local-media-path": "would let requests read files of the pod; send data: URLs",
    "--enable-offline-docs": OURS,
    "--disable-offline-docs": OURS,
    "--no-enable-offline-docs": OURS,
    "--config": UNCHECKED,
    "--download-dir": OUT,
    "--hf-token": OUT,
    "--hf-config-path": OUT,
    "--revision": OUT,
    "--code-revision": OUT,
    "--tokenizer-revision": OUT,
    REMOTE_CODE: RUNS_REMOTE_CODE,
    "--tool-server": OUT,
    "--middleware": IMPORTS,
    "--worker-cls": IMPORTS,
    "--worker-extension-cls": IMPORTS,
    "--scheduler-cls": IMPORTS,
    "--model-class-overrides": IMPORTS,
    "--log-config-file": "a logging configuration may name any code to run; set VLLM_LOGGING_LEVEL in extraEnv",
    "--logging-config": "a logging configuration may name any code to run; set VLLM_LOGGING_LEVEL in extraEnv",
    "--tool-parser-plugin": IMPORTS,
    "--reasoning-parser-plugin": IMPORTS,
    "--io-processor-plugin": IMPORTS,
    "--otlp-traces-endpoint": OUT,
    "--collect-detailed-traces": OUT,
    "--grpc": OPEN,
    "--uds": OPEN,
    **dict.fromkeys(("--headless", "--nnodes", "--node-rank", "--master-addr", "--master-port"), NODES),
    "--data-parallel-address": OPEN,
    "--kv-transfer-config": OPEN,
    "--ec-transfer-config": OPEN,
    "--kv-events-config": OPEN,
}
# Keys of JSON values that load code or call out, for `--flag '{"key": ...}'` and for `--flag.key ...`.
_KEYS = r"(plugin|code[-_]revision|trust[-_]remote[-_]code|otlp[-_]traces[-_]endpoint)"
_JSON_KEY = rf'"[^"]*{_KEYS}"\s*:'
# For CEL, whose RE2 takes linear time for any pattern. `_sets_reserved_key` is the same in Python, whose `re` does not.
_RESERVED_KEY = (
    rf"^-[^=]*\.[^=]*{_KEYS}",
    _JSON_KEY,
    r"\{.*\\u",  # escapes could spell a key, and no useful value needs them
)

# It leaves out an adapter that it cannot read, and loads adapter_model.bin, a pickle (docs.nvidia.com, NIM for LLMs,
# "Fine-Tuning with LoRA").
NO_ADAPTERS = "a NIM serves no adapters here; engine `vllm` or `sglang` does, with spec.adapters"
# A NIM of line 2 holds vLLM, or from 2.1 on SGLang, and has other fields.
NIM_FLAGS: dict[str, str] = {
    **{flag: reason for flag, reason in VLLM_FLAGS.items() if not reason.startswith("set spec.engine.vllm.")},
    **{flag: NO_ADAPTERS for flag, reason in VLLM_FLAGS.items() if reason == ADAPTERS},
    **{flag: OPEN for flag, reason in VLLM_FLAGS.items() if reason == NODES},
    "--max-model-len": "set spec.engine.nim.maxModelLength",
    "--tensor-parallel-size": "set spec.accelerator.count: a NIM uses all GPUs of its pod, or those of its profile",
    "--pipeline-parallel-size": "set the variable NIM_PIPELINE_PARALLEL_SIZE in spec.engine.nim.extraEnv",
    REMOTE_CODE: "runs the code that lies beside the weights, and what a NIM then fetches could not be verified",
    "--shutdown-timeout": "a NIM ends by itself; spec.drainSeconds says how long it serves on",
    "--api-key": "a NIM checks no API keys",
}

# A value may be appended to a short flag, and "-t" is parsed as "-tp": every argument with such a prefix is refused.
SHORT_FLAGS: dict[str, str] = {
    "-t": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-n": "--nnodes",
    "-r": "--node-rank",
    "-dpa": "--data-parallel-address",
}

# vLLM lower-cases the host of a URL before it compares it with the list: no host equals this one, and none is resolved.
# A lower-case name could match, and `media.invalid` could even be a Service of the cluster.
NOWHERE = "NOWHERE.invalid"
# Reserved, but accepted in exactly this form: it blocks media URLs in a NIM that may contain either engine, which
# Hermetic cannot do itself. One argument, so that no further domain can follow it.
MEDIA_FROM_NOWHERE = f"--allowed-media-domains={NOWHERE}"

# vLLM takes the longest context for which the GPUs have memory (`human_readable_int_or_auto` of vllm/utils). The field
# takes numbers only.
LONGEST_CONTEXT = "--max-model-len=auto"

# Whole flags of vLLM that are a prefix of a reserved one and are harmless themselves. Compared with the derived tables
# by a test.
NOT_AN_ABBREVIATION: tuple[str, ...] = ("--reasoning-parser", "--tokenizer")

ENVIRONMENT: dict[str, str] = {
    **dict.fromkeys(
        ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "NGC_API_KEY", "NGC_CLI_API_KEY", "MODELSCOPE_API_TOKEN"), OUT
    ),
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"), OUT),
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "no_proxy"), OUT),
    **dict.fromkeys(("HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"), OURS),
    **dict.fromkeys(("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_XET", "HF_HOME", "HF_HUB_CACHE"), OURS),
    **dict.fromkeys(("HF_MODULES_CACHE", "TRANSFORMERS_CACHE"), OURS),
    **dict.fromkeys(("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK", "VLLM_USAGE_STATS_SERVER"), OURS),
    **dict.fromkeys(("FLASHINFER_NO_DOWNLOAD", "VLLM_MEDIA_URL_ALLOW_REDIRECTS", "VLLM_HOST_IP", "VLLM_PORT"), OURS),
    "VLLM_ENGINE_READY_TIMEOUT_S": "set spec.startupBudgetSeconds",
    "VLLM_API_KEY": "set spec.endpoint.apiKey",
    **dict.fromkeys(("VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT"), OURS),
    **dict.fromkeys(("HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PATH"), OURS),
    **dict.fromkeys(("TRITON_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE", "DG_JIT_CACHE_DIR", "CUDA_CACHE_PATH"), OURS),
    **dict.fromkeys(("NUMBA_CACHE_DIR", "OUTLINES_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"), OURS),
    **dict.fromkeys(("VLLM_SERVER_DEV_MODE", "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_PLUGINS"), OPEN),
    **dict.fromkeys(("VLLM_ALLOW_INSECURE_SERIALIZATION", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"), OPEN),
    **dict.fromkeys(("VLLM_USE_MODELSCOPE", "VLLM_LORA_RESOLVER_HF_REPO_LIST", "VLLM_RPC_BASE_PATH"), OUT),
    "FLASHINFER_CUBINS_REPOSITORY": OURS,
    **dict.fromkeys(("SAGEMAKER_MODEL_PATH", "CUSTOM_SCRIPT_FILENAME", "VLLM_LOGGING_CONFIG_PATH"), CODE),
    **dict.fromkeys(("CUSTOM_FASTAPI_PING_HANDLER", "CUSTOM_FASTAPI_INVOCATION_HANDLER"), CODE),
    **dict.fromkeys(("CUSTOM_FASTAPI_MIDDLEWARE_THROTTLE", "CUSTOM_FASTAPI_MIDDLEWARE_PRE_POST_PROCESS"), CODE),
    **dict.fromkeys(("CUSTOM_PRE_PROCESS", "CUSTOM_POST_PROCESS", "NIM_MIDDLEWARE_CONFIG_PATH"), CODE),
    **dict.fromkeys(("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME"), OUT),
    **dict.fromkeys(("PYTHONUSERBASE", "LD_AUDIT", "GCONV_PATH", "BASH_ENV", "ENV"), OUT),
    **dict.fromkeys(("CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "TRITON_PTXAS_PATH"), OUT),
    **dict.fromkeys(("VLLM_LOGGING_CONFIG_PATH", "VLLM_RUST_FRONTEND_PATH"), OUT),
    **dict.fromkeys(("VLLM_NCCL_SO_PATH", "VLLM_CUDART_SO_PATH"), OUT),
    **dict.fromkeys(("NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"), OUT),
    **dict.fromkeys(("NIM_CACHE_PATH", "NIM_SERVER_PORT", "NIM_HTTP_API_PORT", "NIM_MODEL_NAME"), OURS),
    **dict.fromkeys(("NIM_MODEL_PATH", "NIM_MODEL_PROFILE", "NIM_SERVED_MODEL_NAME", "NIM_MAX_MODEL_LEN"), OURS),
    **dict.fromkeys(("NIM_DISABLE_MODEL_DOWNLOAD", "NIM_TELEMETRY_MODE", "NIM_TENSOR_PARALLEL_SIZE"), OURS),
    **dict.fromkeys(("NIM_SSL_MODE", "NIM_SSL_KEY_PATH", "NIM_SSL_CERTS_PATH", "NIM_SSL_CA_CERTS_PATH"), OURS),
    **dict.fromkeys(("NIM_PASSTHROUGH_ARGS", "NIM_HEALTH_PORT", "NIM_SAGEMAKER_MODE"), OPEN),
    **dict.fromkeys(("NIM_REPOSITORY_OVERRIDE", "NIM_PROXY_CONNECTIVITY_TARGETS", "NIM_ENABLE_OTEL"), OUT),
    **dict.fromkeys(("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), OUT),
    **dict.fromkeys(("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "NIM_OTEL_EXPORTER_OTLP_ENDPOINT"), OUT),
    **dict.fromkeys(("SGLANG_HOST_IP", "HOST_IP", "SGLANG_PORT", "SGLANG_CACHE_DIR", "SGLANG_WARMUP_TIMEOUT"), OURS),
    **dict.fromkeys(("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "SGLANG_USE_MODELSCOPE"), OURS),
    **dict.fromkeys(("SGLANG_GRPC_PORT", "SGLANG_RUST_SERVER", "SGLANG_USE_PICKLE_IPC"), OPEN),
    **dict.fromkeys(("SGLANG_PLUGINS", "SGLANG_EXTERNAL_MODEL_PACKAGE", "SGLANG_HTTP_SERVER_APP_PATH"), OUT),
    **dict.fromkeys(("SGLANG_EXTERNAL_MM_MODEL_ARCH", "SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE"), OUT),
    **dict.fromkeys(("HERMETIC_GROUP_RANK", "HERMETIC_HEAD_ADDRESS", "HERMETIC_POD_ADDRESS"), OURS),
    **dict.fromkeys(("HERMETIC_ADDRESS_PORT", "HERMETIC_ENDPOINT_PORT", "HERMETIC_ENDPOINT_TLS"), OURS),
    **dict.fromkeys(("HERMETIC_HEALTH_PATH", "HERMETIC_INTERCONNECT", "NCCL_NET"), OURS),
}
# SGLang rewrites 'SGL_X' to 'SGLANG_X' at its start (srt/environ.py): the old name sets a reserved variable as well.
OLD_SGLANG_PREFIX, SGLANG_PREFIX = "SGL_", "SGLANG_"
ENVIRONMENT |= {
    OLD_SGLANG_PREFIX + name.removeprefix(SGLANG_PREFIX): reason
    for name, reason in ENVIRONMENT.items()
    if name.startswith(SGLANG_PREFIX)
}
# Any variable with such an ending, in any case, is a proxy or a credential.
RESERVED_ENDINGS: tuple[str, ...] = ("_PROXY", "TOKEN", "SECRET", "PASSWORD", "_KEY")
RESERVED_NAME = "must not be a reserved variable: "
CREDENTIAL = "its ending is that of a proxy or a credential, which are accepted in no form"
_RESERVED_ENDING = f"(?i)({'|'.join(RESERVED_ENDINGS)})$"


def present_name(name: str) -> str:
    """The name by which SGLang reads a variable with its old prefix; any other name as it is."""
    return SGLANG_PREFIX + name.removeprefix(OLD_SGLANG_PREFIX) if name.startswith(OLD_SGLANG_PREFIX) else name


def reserved_variable(name: str) -> bool:
    """Whether a user may not set the variable, because of its name or its ending."""
    return name in ENVIRONMENT or re.search(_RESERVED_ENDING, name) is not None


def _sets_reserved_key(argument: str) -> bool:
    """Linear in the length of the argument: a tenant may write 64 arguments of 1,024 characters into one object."""
    dotted = argument.partition("=")[0].partition(".")[2] if argument.startswith("-") else ""
    return (
        re.search(_KEYS, dotted) is not None
        or re.search(_JSON_KEY, argument) is not None
        or _has_escape_in_object(argument)
    )


def _has_escape_in_object(argument: str) -> bool:
    """A backslash and "u" after an opening brace in the same line."""
    return any("\\u" in line.partition("{")[2] for line in argument.split("\n"))


def _words(names: Iterable[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


@dataclass(frozen=True)
class ReservedFlags:
    """The flags of one engine that a user may not say, with the reason of each.

    `short`: one letter and the flag that it stands for; whatever starts like it is refused. `whole`: flags that happen
    to be a prefix of a reserved one. `except_for`: arguments that are accepted when they are written exactly like this.
    """

    flags: Mapping[str, str]
    whole: tuple[str, ...]
    short: Mapping[str, str] = field(default_factory=dict)
    except_for: tuple[str, ...] = ()

    def reached(self, argument: str) -> str:
        """The reserved flag that this argument names, in full or abbreviated; "" when it names none.

        Engines read `--flag=value`, `--flag.key value` (one key of a JSON value) and '_' for '-'.
        """
        if argument in self.except_for:
            return ""
        if not argument.startswith("--"):
            return next((flag for short, flag in self.short.items() if argument.startswith(short)), "")
        name = argument.split("=", 1)[0].split(".", 1)[0].replace("_", "-")
        if name == "--" or name in self.whole:
            return ""
        return next((flag for flag in self.flags if flag.startswith(name)), "")

    def rules(self) -> tuple[Rule, Rule]:
        """The same as rules about one argument, for the API server and for Python: flags with a field, then others."""
        fields = {flag: reason for flag, reason in self.flags.items() if reason.startswith(FIELD)}
        named = "; ".join(
            f"{', '.join(flag for flag, other in fields.items() if other == reason)}: {reason.removeprefix('set ')}"
            for reason in dict.fromkeys(fields.values())
        )
        flags_without_field = [flag for flag in self.flags if flag not in fields]
        return (
            self._rule(list(fields), f"Hermetic renders it; set the field instead. {named}"),
            self._rule(
                flags_without_field,
                "it would open an egress path or a second way into the pod, or run code from outside the image; leave "
                "it out (`hermetic explain FLAG` says why)",
            ),
        )

    def _rule(self, flags: list[str], message: str) -> Rule:
        exceptions = "".join(f"self == '{argument}' || " for argument in self.except_for)
        shorts = [short for short, flag in self.short.items() if flag in flags]
        short = f" && !{_words(shorts)}.exists(flag, self.startsWith(flag))" if shorts else ""
        return Rule(
            cel=(
                f"{exceptions}!(self.startsWith('--') && "
                "[self.split('=')[0].split('.')[0].replace('_', '-')].exists(name, name != '--' && "
                f"!(name in {_words(self.whole)}) && {_words(flags)}.exists(flag, flag.startsWith(name)))){short}"
            ),
            message=f"{RESERVED}{message}",
            holds=lambda argument: self.reached(argument) not in flags,
            explain=self._explain,
        )

    def _explain(self, argument: str) -> str:
        flag = self.reached(argument)
        return f"{RESERVED}{flag}: {self.flags[flag]}"


RESERVED = "must not be a reserved flag or an abbreviation of one: "
VLLM = ReservedFlags(
    VLLM_FLAGS,
    whole=NOT_AN_ABBREVIATION,
    short=SHORT_FLAGS,
    except_for=(MEDIA_FROM_NOWHERE, REMOTE_CODE, LONGEST_CONTEXT),
)
NIM = ReservedFlags(NIM_FLAGS, whole=NOT_AN_ABBREVIATION, short=SHORT_FLAGS, except_for=(MEDIA_FROM_NOWHERE,))


def _looks_like_url(argument: str) -> bool:
    return "://" in argument


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
        f"{RESERVED_NAME}it would open an egress path, or Hermetic sets it; credentials and proxies are accepted in no "
        "form (`hermetic explain HRM-API-001` lists the reserved ones)"
    ),
    holds=lambda name: not reserved_variable(name),
    explain=lambda name: f"{RESERVED_NAME}{name}: {ENVIRONMENT.get(name, CREDENTIAL)}",
)
NO_RENAMED_VARIABLE = Rule(
    cel=f"!self.startsWith('{OLD_SGLANG_PREFIX}')",
    message=f"must not begin with '{OLD_SGLANG_PREFIX}': SGLang reads such a variable by the prefix '{SGLANG_PREFIX}'",
    holds=lambda name: present_name(name) == name,
    explain=lambda name: f"SGLang reads '{name}' by another name: write '{present_name(name)}'",
)

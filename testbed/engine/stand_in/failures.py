"""How vLLM fails to start: the words of every failure that an operator is expected to recognise, and how they come out.

A failure of the API server ends in its own words. One of the engine core is printed by that process first; what comes
last is the API server's long traceback with a generic line, as in vLLM.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

LIBRARY = "/usr/local/lib/python3.12/dist-packages"
PYTHON = "/usr/lib/python3.12"
ENTRY = f"{LIBRARY}/vllm/entrypoints/launchers/api_server/entry.py"
GENERIC = (
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}"
)

COMMAND_FRAMES = (
    ("/usr/local/bin/vllm", "<module>", "sys.exit(main())"),
    (f"{LIBRARY}/vllm/entrypoints/cli/main.py", "main", "args.dispatch_function(args)"),
    (f"{LIBRARY}/vllm/entrypoints/cli/serve.py", "cmd", "uvloop.run(run_server(args))"),
    (f"{LIBRARY}/uvloop/__init__.py", "run", "return __asyncio.run("),
    (f"{PYTHON}/asyncio/runners.py", "run", "return runner.run(main)"),
    (f"{PYTHON}/asyncio/runners.py", "run", "return self._loop.run_until_complete(task)"),
    (f"{LIBRARY}/uvloop/__init__.py", "wrapper", "return await main"),
    (ENTRY, "run_server", "await run_server_worker(listen_address, sock, args, **uvicorn_kwargs)"),
    (ENTRY, "run_server_worker", "async with build_async_engine_client("),
    (f"{PYTHON}/contextlib.py", "__aenter__", "return await anext(self.gen)"),
)
CLIENT_FRAMES = (
    (ENTRY, "build_async_engine_client", "async with build_async_engine_client_from_engine_args("),
    (f"{PYTHON}/contextlib.py", "__aenter__", "return await anext(self.gen)"),
    (ENTRY, "build_async_engine_client_from_engine_args", "async_llm = AsyncLLM.from_vllm_config("),
    (f"{LIBRARY}/vllm/v1/engine/async_llm.py", "from_vllm_config", "return cls("),
    (f"{LIBRARY}/vllm/v1/engine/async_llm.py", "__init__", "EngineCoreClient.make_async_mp_client("),
    (f"{LIBRARY}/vllm/v1/engine/core_client.py", "make_async_mp_client", "return AsyncMPClient(*client_args)"),
    (f"{LIBRARY}/vllm/v1/engine/core_client.py", "__init__", "super().__init__("),
    (f"{LIBRARY}/vllm/v1/engine/core_client.py", "__init__", "with launch_core_engines("),
    (f"{PYTHON}/contextlib.py", "__exit__", "next(self.gen)"),
    (f"{LIBRARY}/vllm/v1/engine/utils.py", "launch_core_engines", "wait_for_engine_startup("),
    (f"{LIBRARY}/vllm/v1/engine/utils.py", "wait_for_engine_startup", "raise RuntimeError("),
)
CORE_FRAMES = (
    (f"{LIBRARY}/vllm/v1/engine/core.py", "run_engine_core", "engine_core = EngineCoreProc(*args, **kwargs)"),
    (f"{LIBRARY}/vllm/v1/engine/core.py", "__init__", "self.model_executor = executor_class(vllm_config)"),
)


@dataclass(frozen=True)
class Failure:
    """`words` as the exception's last line or lines; `in_core` when a worker says it, not the API server."""

    words: str
    in_core: bool = False


class StartFailure(Exception):
    """The engine cannot start; the process ends with 1."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words)
        self.failure = failure


def path_missing(path: str) -> Failure:
    """What is no folder is taken for the name of a repository."""
    rule = (
        "Repo id must be in the form 'repo_name' or 'namespace/repo_name'"
        if path.count("/") > 1
        else "Repo id must use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or '.' "
        "and the maximum length is 96"
    )
    hint = " Use `repo_type` argument if needed." if path.count("/") > 1 else ""
    return Failure(f"huggingface_hub.errors.HFValidationError: {rule}: '{path}'.{hint}")


def fetch_attempted() -> Failure:
    return Failure(
        "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and "
        "outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to "
        "False."
    )


def config_missing(path: str) -> Failure:
    return Failure(
        f"ValueError: Invalid repository ID or local directory specified: '{path}'.\n"
        "Please verify the following requirements:\n"
        "1. Provide a valid Hugging Face repository ID.\n"
        "2. Specify a local directory that contains a recognized configuration file."
    )


def weights_missing(path: str) -> Failure:
    return Failure(f"RuntimeError: Cannot find any model weights with `{path}`", in_core=True)


def weights_unreadable(file: str) -> Failure:
    """Also what vLLM says of a file that is there but closed to it."""
    return Failure(f"FileNotFoundError: No such file or directory: {file}", in_core=True)


def shard_truncated() -> Failure:
    return Failure(
        "safetensors_rust.SafetensorError: Error while deserializing header: "
        "incomplete metadata, file not fully covered",
        in_core=True,
    )


def tokenizer_missing() -> Failure:
    return Failure(
        "ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library serialization "
        "file, (2) a slow tokenizer instance to convert or (3) an equivalent slow tokenizer class to instantiate and "
        "convert."
    )


def custom_code(path: str) -> Failure:
    return Failure(
        f"ValueError: The repository {path} contains custom code which must be executed to correctly load the model. "
        "Please pass the argument `trust_remote_code=True` to allow custom code to be run."
    )


def context_too_long(asked: int, derived: int) -> Failure:
    return Failure(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        f"  Value error, User-specified max_model_len ({asked}) is greater than the derived max_model_len "
        f"(max_position_embeddings={derived} or model_max_length=None in model's config.json). To allow overriding "
        "this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1."
    )


def tensor_parallel_mismatch(heads: int, size: int) -> Failure:
    return Failure(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
        f"  Value error, Total number of attention heads ({heads}) must be divisible by tensor parallel size ({size})."
    )


def cache_unwritable(error: OSError) -> Failure:
    return Failure(f"{type(error).__name__}: {error}", in_core=True)


def shm_too_small(needed: int, free: int) -> Failure:
    mib = 1 << 20
    return Failure(
        f"RuntimeError: Insufficient space in /dev/shm for the shared memory broadcast ring buffer: "
        f"{needed / mib:.0f} MiB required, {free / mib:.0f} MiB free. Increase /dev/shm "
        "(e.g. --shm-size or --ipc=host).",
        in_core=True,
    )


def service_link(port: str) -> Failure:
    return Failure(
        f"ValueError: VLLM_PORT '{port}' appears to be a URI. "
        "This may be caused by a Kubernetes service discovery issue"
    )


def plain(text: str) -> Failure:
    return Failure(text)


# What a test can order by name, where the model folder or the machine alone would not bring it about.
ORDERED: dict[str, Failure] = {
    "path-missing": path_missing("/models/not-there"),
    "fetch-attempted": fetch_attempted(),
    "config-missing": config_missing("/models/empty"),
    "weights-missing": weights_missing("/models/empty"),
    "weights-unreadable": weights_unreadable("/models/closed/model.safetensors"),
    "shard-truncated": shard_truncated(),
    "tokenizer-missing": tokenizer_missing(),
    "custom-code": custom_code("/models/custom"),
    "context-too-long": context_too_long(131072, 8192),
    "tensor-parallel-mismatch": tensor_parallel_mismatch(14, 4),
    "kv-memory": Failure(
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (2.40 GiB). Based on the available memory, the "
        "estimated maximum model length is 19648. Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine.",
        in_core=True,
    ),
    "no-kv-memory": Failure(
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.",
        in_core=True,
    ),
    "gpu-busy": Failure(
        "ValueError: Free memory on device cuda:0 (3.10/79.25 GiB) on startup is less than desired GPU memory "
        "utilization (0.92, 72.91 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        in_core=True,
    ),
    "out-of-memory": Failure(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of "
        "21.99 GiB of which 112.44 MiB is free.",
        in_core=True,
    ),
    "cache-unwritable": cache_unwritable(
        PermissionError(13, "Permission denied", "/root/.cache/vllm/torch_compile_cache")
    ),
    "shm-too-small": shm_too_small(400 << 20, 64 << 20),
    "service-link": service_link("tcp://10.0.12.7:8000"),
    "driver-too-old": Failure(
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / "
        "cuda driver combination",
        in_core=True,
    ),
}


def report(failure: Failure, *, full: bool) -> None:
    """Prints the failure to stderr as vLLM would: root cause first, the generic line last."""
    lines: list[str] = []
    if failure.in_core:
        stamp = time.strftime("%m-%d %H:%M:%S")
        core = f"(EngineCore pid={os.getpid() + 1}) ERROR {stamp} [core.py]"
        lines += [f"{core} EngineCore failed to start.", f"{core} Traceback (most recent call last):"]
        lines += [f"{core} {line}" for line in _frames(CORE_FRAMES)]
        lines += [f"{core} {line}" for line in failure.words.splitlines()]
    frames = COMMAND_FRAMES + CLIENT_FRAMES if failure.in_core else COMMAND_FRAMES
    last_words = GENERIC if failure.in_core else failure.words
    final = ["Traceback (most recent call last):", *_frames(frames if full else frames[-1:]), *last_words.splitlines()]
    lines += [f"(APIServer pid={os.getpid()}) {line}" for line in final]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _frames(frames: tuple[tuple[str, str, str], ...]) -> list[str]:
    return [text for file, function, code in frames for text in (f'  File "{file}", in {function}', f"    {code}")]

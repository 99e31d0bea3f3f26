"""An engine's last words, as collected from real failures, become one reason each."""

from __future__ import annotations

import pytest

from hermetic.api.engine_reasons import EngineReason
from hermetic.engines.failure_signatures import SIGNATURES, diagnose, telling_line
from testbed.failure_modes import CRASHES, WRAPPER

LAST_WORDS = {
    "Error: network IB not found.\nRuntimeError: NCCL error: invalid usage": EngineReason.INTERCONNECT_DEGRADED,
    "hermetic: error: RLIMIT_MEMLOCK is 65536 bytes, and InfiniBand locks the memory that it sends from\n"
    "RuntimeError: NCCL error: unhandled system error": EngineReason.INTERCONNECT_MEMLOCK,
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ParallelConfig: Value error, World size (64) "
    "is larger than the number of available GPUs (8) in this node.": EngineReason.GPU_COUNT_MISMATCH,
    "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
    "'/weights'. Use `repo_type` argument if needed.": EngineReason.MODEL_PATH_MISSING,
    "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing "
    "traffic has been disabled. To enable hf.co look-ups and downloads online, set 'local_files_only' to False.": (
        EngineReason.FETCH_ATTEMPTED
    ),
    "ValueError: Invalid repository ID or local directory specified: '/weights'.": EngineReason.MODEL_INCOMPLETE,
    "RuntimeError: Cannot find any model weights with `/weights`": EngineReason.MODEL_INCOMPLETE,
    "FileNotFoundError: No such file or directory: /weights/"
    "model-00001-of-00002.safetensors": EngineReason.MODEL_UNREADABLE,
    "PermissionError: [Errno 13] Permission denied: '/weights/config.json'": EngineReason.MODEL_UNREADABLE,
    "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered": (
        EngineReason.MODEL_INCOMPLETE
    ),
    "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: header too small": (
        EngineReason.MODEL_INCOMPLETE
    ),
    "FileNotFoundError: Weight files referenced in index but missing: {'/weights/model-00002-of-00002.safetensors'}": (
        EngineReason.MODEL_INCOMPLETE
    ),
    "OSError: It looks like the config file at '/weights/config.json' is not a valid JSON file.": (
        EngineReason.MODEL_INCOMPLETE
    ),
    "  Value error, Model architectures ['NewForCausalLM'] are not supported for now. Supported architectures: ...": (
        EngineReason.MODEL_UNSUPPORTED
    ),
    "  Value error, Invalid repository ID or local directory specified: "
    "'meta-llama/draft'.": EngineReason.FETCH_ATTEMPTED,
    "openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or load vocab file": (
        EngineReason.FETCH_ATTEMPTED
    ),
    "openai_harmony.HarmonyError: invalid tiktoken vocab file: No such file or directory (os error 2)": (
        EngineReason.MODEL_INCOMPLETE
    ),
    "vllm serve: error: argument --max-num-seqs: invalid int value: 'many'": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "ValueError: Couldn't instantiate the backend tokenizer from one of: ...": EngineReason.MODEL_INCOMPLETE,
    "ValueError: The repository /weights contains custom code which must be executed to correctly load the model.": (
        EngineReason.REMOTE_CODE_REQUIRED
    ),
    "ValueError: User-specified max_model_len (300000) is greater than the derived max_model_len "
    "(max_position_embeddings=131072).": EngineReason.CONTEXT_TOO_LONG,
    "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).": (
        EngineReason.TENSOR_PARALLEL_INVALID
    ),
    "ValueError: To serve at least one request with the model's max seq len (131072), 16.0 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (9.31 GiB). Based on the available memory, the estimated "
    "maximum model length is 76272.": EngineReason.GPU_MEMORY_TOO_SMALL,
    "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.": (
        EngineReason.GPU_MEMORY_TOO_SMALL
    ),
    "torch.OutOfMemoryError: CUDA out of memory. Case to allocate 2.00 GiB.": EngineReason.GPU_MEMORY_TOO_SMALL,
    "ValueError: Free memory on device cuda:0 (3.1/79.2 GiB) on startup is less than desired GPU memory utilization "
    "(0.92, 72.9 GiB).": EngineReason.GPU_BUSY,
    "PermissionError: [Errno 13] Permission denied: '/home/hermetic/.cache/vllm/torch_compile_cache/x'": (
        EngineReason.CACHE_UNWRITABLE
    ),
    "OSError: [Errno 30] Read-only file system: '/root/.cache/vllm/torch_compile_cache'": EngineReason.CACHE_UNWRITABLE,
    "RuntimeError: Insufficient space in /dev/shm: 160 MiB required": EngineReason.SHARED_MEMORY_TOO_SMALL,
    "RuntimeError: CUDA driver version is insufficient for CUDA runtime version": EngineReason.DRIVER_TOO_OLD,
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver": (
        EngineReason.DRIVER_TOO_OLD
    ),
    # Texts of vLLM 0.33.0: entrypoints/common/cli_args.py, renderers/chat_utils/chat_template.py, config/model.py,
    # v1/worker/lora_model_runner_mixin.py, exceptions.py, model_loader/default_loader.py, fp8_utils.py, config/vllm.py,
    # platforms/cuda.py, config/device.py.
    "KeyError: 'invalid tool call parser: hermez "
    "(chose from { apertus,hermes })'": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "KeyError: 'invalid reasoning parser: qwen33 (chose from { qwen3 })'": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "ValueError: The supplied chat template (/weights/x.jinja) looks like a file path, but it failed to be opened. "
    "Tried: /weights/x.jinja": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "  Value error, Quantization method specified in the model config (fp8) does not match the quantization method "
    "specified in the `quantization` argument (awq).": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "ValueError: MambaForCausalLM does not support LoRA yet.": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "NotImplementedError: Pipeline parallelism is not supported for this model. Supported models implement the "
    "`SupportsPP` interface.": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "vllm.exceptions.LoRAAdapterNotFoundError: Loading lora sql failed: No adapter found for org/sql": (
        EngineReason.ADAPTER_MISSING
    ),
    "ValueError: Following weights were not initialized from checkpoint: "
    "{'lm_head.weight'}": EngineReason.MODEL_INCOMPLETE,
    "ValueError: Weight output_partition_size = 192 is not divisible by weight quantization block_n = 128.": (
        EngineReason.TENSOR_PARALLEL_INVALID
    ),
    "  Value error, The quantization method fp8 is not supported for the current GPU. Minimum capability: 75. Current "
    "capability: 70.": EngineReason.GPU_UNSUPPORTED,
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has "
    "compute capability 7.5.": EngineReason.GPU_UNSUPPORTED,
    "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG`": (
        EngineReason.GPU_NOT_VISIBLE
    ),
    # Issue 48 of BELLE: tokenizer.json is a Git LFS pointer.
    "Exception: expected value at line 1 column 1": EngineReason.MODEL_INCOMPLETE,
    "Exception: EOF while parsing a string at line 5 column 12": EngineReason.MODEL_INCOMPLETE,
    # vllm-project/vllm, issues 4604 and 6732; ROCm/ROCm-docker, issue 116.
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": EngineReason.GPU_UNSUPPORTED,
    "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)": (
        EngineReason.GPU_COMMUNICATION_FAILED
    ),
    "Unable to open /dev/kfd read-write: Permission denied": EngineReason.GPU_NOT_VISIBLE,
    "RuntimeError: No HIP GPUs are available": EngineReason.GPU_NOT_VISIBLE,
    # ai-dynamo/dynamo, pull request 12770; with a read-only root the number of the error is another.
    "PermissionError: [Errno 13] Permission denied: '/usr/lib/python3.12/dist-packages/flashinfer_cubin/cubins'": (
        EngineReason.IMAGE_NOT_WRITABLE
    ),
    "OSError: [Errno 30] Read-only file system: '/usr/lib/python3.12/dist-packages/flashinfer_cubin/cubins/x'": (
        EngineReason.IMAGE_NOT_WRITABLE
    ),
    # NVIDIA/Megatron-LM, issue 878.
    "OSError: [Errno 28] No space left on device": EngineReason.DISK_FULL,
    "OSError: [Errno 28] No space left on device: '/dev/shm/psm_a8573fdd'": EngineReason.SHARED_MEMORY_TOO_SMALL,
    "vllm: error: unrecognized arguments: --no-such-flag": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'x' (choose from auto, fp8)": (
        EngineReason.ENGINE_ARGUMENTS_REFUSED
    ),
}


@pytest.mark.parametrize(("last_words", "reason"), LAST_WORDS.items(), ids=[line.split(":")[0] for line in LAST_WORDS])
def test_last_words_become_their_reason(last_words, reason):
    assert diagnose(last_words) is reason
    assert reason.needs_human, "nothing of this passes by itself"


@pytest.mark.parametrize(("last_words", "reason"), LAST_WORDS.items(), ids=[line.split(":")[0] for line in LAST_WORDS])
def test_cause_is_found_under_the_wrapper_that_says_nothing(last_words, reason):
    log = f'Traceback (most recent call last):\n  File "x.py", line 1, in main\n{last_words}\n{WRAPPER}\n'
    assert diagnose(log) is reason
    assert telling_line(log) == last_words.strip().splitlines()[0][:300]


def test_every_signature_is_shown_by_a_line():
    assert {reason for _, reason in SIGNATURES} == set(LAST_WORDS.values())
    for pattern, reason in SIGNATURES:
        assert any(pattern.search(last_line) for last_line in LAST_WORDS if LAST_WORDS[last_line] is reason), (
            pattern.pattern
        )


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", EngineReason.GPU_MEMORY_TOO_SMALL),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            EngineReason.GPU_UNSUPPORTED,
        ),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'", EngineReason.SHARED_MEMORY_TOO_SMALL),
    ],
)
def test_an_error_of_the_other_workers_does_not_hide_the_cause(first, reason):
    other = "(Worker_TP1 pid=9) RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
    assert diagnose(f"{other}\n{first}\n") is reason
    assert telling_line(f"{other}\n{first}\n") == first


HARMLESS = "PermissionError: [Errno 13] Permission denied: '/proc/self/x'\nINFO: GPU KV cache size: 81,920 tokens"


@pytest.mark.parametrize(
    "last_words", ["", "\n\n", WRAPPER, "AssertionError: something new", "INFO: Started server", HARMLESS]
)
def test_unknown_words_are_not_explained_away(last_words):
    assert diagnose(last_words) is None


@pytest.mark.parametrize(
    ("last_words", "line"),
    [
        ("", ""),
        (f"ValueError: new\n{WRAPPER}", "ValueError: new"),
        ('Traceback (most recent call last):\n  File "a.py", line 3\n    raise X\nKeyError: 3\n', "KeyError: 3"),
        (WRAPPER, WRAPPER),
        (f"begin{'x' * 1000}end", f"begin{'x' * 94}…{'x' * 197}end"),
    ],
    ids=["nothing", "wrapper last", "traceback", "wrapper only", "long"],
)
def test_telling_line_is_the_last_that_says_something(last_words, line):
    assert telling_line(last_words) == line


@pytest.mark.parametrize("mode", [mode for mode in CRASHES if mode not in {"crash-loop", "oom-killed"}])
def test_failure_modes_of_the_test_bed_are_diagnosed(mode):
    assert diagnose(CRASHES[mode].message) is not None

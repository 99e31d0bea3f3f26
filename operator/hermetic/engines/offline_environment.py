"""The variables that keep an engine from connecting out. Values are exact: several switches accept nothing but '1'."""

from __future__ import annotations

from typing import Any

from hermetic.engines.launch import literal

OFFLINE: tuple[dict[str, Any], ...] = (
    literal("HF_HUB_OFFLINE", "1"),
    literal("TRANSFORMERS_OFFLINE", "1"),
    literal("HF_DATASETS_OFFLINE", "1"),
    literal("HF_HUB_DISABLE_TELEMETRY", "1"),
    literal("HF_HUB_DISABLE_XET", "1"),
    literal("DO_NOT_TRACK", "1"),
    literal("VLLM_DO_NOT_TRACK", "1"),
    literal("VLLM_NO_USAGE_STATS", "1"),
    literal("FLASHINFER_NO_DOWNLOAD", "1"),
    # vLLM checks whether the host of this URL answers, even with FLASHINFER_NO_DOWNLOAD. This value is no URL.
    literal("FLASHINFER_CUBINS_REPOSITORY", "/nonexistent"),
    literal("VLLM_MEDIA_URL_ALLOW_REDIRECTS", "0"),
)


def cache_folders(home: str) -> tuple[dict[str, Any], ...]:
    """Every cache that vLLM and its libraries would otherwise write below an unwritable home."""
    return (
        literal("HOME", home),
        literal("USER", "hermetic"),
        literal("LOGNAME", "hermetic"),
        literal("TMPDIR", "/tmp"),  # noqa: S108 - an emptyDir of the pod's own
        literal("XDG_CACHE_HOME", f"{home}/.cache"),
        literal("XDG_CONFIG_HOME", f"{home}/.config"),
        literal("HF_HOME", f"{home}/hf"),
        literal("VLLM_CACHE_ROOT", f"{home}/.cache/vllm"),
        literal("VLLM_CONFIG_ROOT", f"{home}/.config/vllm"),
        literal("TRITON_CACHE_DIR", f"{home}/.cache/triton"),
        literal("FLASHINFER_WORKSPACE_BASE", home),
        literal("DG_JIT_CACHE_DIR", f"{home}/.cache/deep_gemm"),
        literal("CUDA_CACHE_PATH", f"{home}/.cache/cuda"),
        literal("NUMBA_CACHE_DIR", f"{home}/.cache/numba"),
        literal("OUTLINES_CACHE_DIR", f"{home}/.cache/outlines"),
    )

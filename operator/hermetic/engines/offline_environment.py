"""The variables that keep an engine from connecting out. Values are exact: several switches accept nothing but '1'."""

from __future__ import annotations

from typing import Any

from hermetic.engines.launch import literal

HOME = "/home/hermetic"

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

CACHE_FOLDERS: tuple[dict[str, Any], ...] = (
    literal("HOME", HOME),
    literal("USER", "hermetic"),
    literal("LOGNAME", "hermetic"),
    literal("TMPDIR", "/tmp"),  # noqa: S108 - an emptyDir of the pod's own
    literal("XDG_CACHE_HOME", f"{HOME}/.cache"),
    literal("XDG_CONFIG_HOME", f"{HOME}/.config"),
    literal("HF_HOME", f"{HOME}/hf"),
    literal("VLLM_CACHE_ROOT", f"{HOME}/.cache/vllm"),
    literal("VLLM_CONFIG_ROOT", f"{HOME}/.config/vllm"),
    literal("TRITON_CACHE_DIR", f"{HOME}/.cache/triton"),
    # What torch.compile compiles outside of vLLM's own cache; its default is below /tmp.
    literal("TORCHINDUCTOR_CACHE_DIR", f"{HOME}/.cache/torchinductor"),
    literal("FLASHINFER_WORKSPACE_BASE", HOME),
    literal("DG_JIT_CACHE_DIR", f"{HOME}/.cache/deep_gemm"),
    literal("CUDA_CACHE_PATH", f"{HOME}/.cache/cuda"),
    literal("NUMBA_CACHE_DIR", f"{HOME}/.cache/numba"),
    literal("OUTLINES_CACHE_DIR", f"{HOME}/.cache/outlines"),
)
"""Every cache that vLLM and its libraries would otherwise write below an unwritable home."""

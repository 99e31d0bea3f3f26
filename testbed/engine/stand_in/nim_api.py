"""The API of a NIM: configured by NIM_* variables, health under /v1/health, metrics under /v1/metrics.

Line 1 answers nothing before its engine is ready. Line 2 has a proxy in front: it is live at once, and ready later.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .arguments import parse
from .console import log
from .container_checks import write_below
from .engine import Engine, Phase
from .failures import StartFailure, plain
from .openai_routes import OpenAi
from .settings import Settings, Tls
from .tables import Table
from .vllm_api import engine_settings
from .web import Exchange, Routes

CACHE = "/opt/nim/.cache"
PORTS = ("NIM_SERVER_PORT", "NIM_HTTP_API_PORT")  # the LLM line reads the first, other families the second


def nim_settings(argv: Sequence[str], table: Table, line: str) -> Settings:
    """The settings that the environment says; line 2 passes its arguments on to the engine, flag table and all."""
    environment = os.environ
    arguments = parse(["serve", *argv], table) if line.startswith("2.") else {}
    model = str(_model(line))
    names = environment.get("NIM_SERVED_MODEL_NAME", "")
    engine = replace(
        engine_settings(arguments),
        max_model_len=arguments.get("max-model-len") or _number("NIM_MAX_MODEL_LEN"),
        tensor_parallel_size=arguments.get("tensor-parallel-size") or _number("NIM_TENSOR_PARALLEL_SIZE") or 1,
    )
    return Settings(
        product="NIM",
        line=line,
        engine_version=table.version,
        argv=("nim-serve", *argv) if line.startswith("2.") else ("start_server.sh", *argv),
        model=model,
        served_names=tuple(name.strip() for name in names.split(",") if name.strip()) or (Path(model).name,),
        port=next((port for name in PORTS if (port := _number(name)) is not None), 8000),
        tls=_tls(),
        parsed=arguments,
        engine=engine,
    )


def _number(name: str) -> int | None:
    value = os.environ.get(name, "")
    return int(value) if value else None


def _tls() -> Tls | None:
    mode = os.environ.get("NIM_SSL_MODE", "DISABLED").upper()
    if mode == "DISABLED":
        return None
    key, certificate = os.environ.get("NIM_SSL_KEY_PATH", ""), os.environ.get("NIM_SSL_CERTS_PATH", "")
    if not (key and certificate):
        raise StartFailure(plain(f"ValueError: NIM_SSL_MODE={mode} needs NIM_SSL_KEY_PATH and NIM_SSL_CERTS_PATH"))
    return Tls(key, certificate, os.environ.get("NIM_SSL_CA_CERTS_PATH"), 2 if mode == "MTLS" else 0)


def _model(line: str) -> Path:
    """The folder that is served: named as such, or found by the profile in the staged cache."""
    cache = Path(os.environ.get("NIM_CACHE_PATH", CACHE))
    write_below(cache)
    named = os.environ.get("NIM_MODEL_PATH" if line.startswith("2.") else "NIM_MODEL_NAME", "")
    if named:
        return Path(named)
    profile = os.environ.get("NIM_MODEL_PROFILE", "")
    log(f"Selected profile: {profile or 'chosen by GPU'}")
    log("Preparing model workspace. This step might download additional files to run the model.")
    staged = sorted(path.parent for path in cache.glob("ngc/hub/models--*/snapshots/*/config.json"))
    if not staged:
        refused = os.environ.get("NIM_DISABLE_MODEL_DOWNLOAD") == "1"
        why = "downloads are disabled" if refused else "the download from the registry failed: no route to host"
        raise StartFailure(plain(f"Exception: profile {profile or '(none)'} is not in the cache {cache}, and {why}"))
    log("Model workspace is now ready. It took 0 seconds")
    return staged[0]


def nim_routes(settings: Settings, engine: Engine, openai: OpenAi) -> Routes:
    """NIM checks no key of its own, so nothing here is guarded."""

    def live(exchange: Exchange) -> None:
        exchange.send_json(200, {"object": "health.response", "message": "live", "status": "live"})

    def ready(exchange: Exchange) -> None:
        is_ready = engine.phase in {Phase.SERVING, Phase.DRAINING}
        word = "ready" if is_ready else "not ready"
        exchange.send_json(200 if is_ready else 503, {"object": "health.response", "message": word, "status": word})

    def metadata(exchange: Exchange) -> None:
        models = [{"shortName": name, "modelUrl": settings.model} for name in settings.served_names]
        exchange.send_json(200, {"version": settings.line, "modelInfo": models, "assetInfo": [], "licenseInfo": {}})

    versions = {"release": settings.line, "api": settings.line}
    return {
        **openai.routes(),
        ("GET", "/v1/health/live"): live,
        ("GET", "/v1/health/ready"): ready,
        ("GET", "/v1/metrics"): openai.metrics,
        ("GET", "/v1/metadata"): metadata,
        ("GET", "/v1/version"): lambda exchange: exchange.send_json(200, versions),
        ("GET", "/v1/license"): lambda exchange: exchange.send_json(200, {"name": "none: a stand-in"}),
        ("GET", "/v1/manifest"): lambda exchange: exchange.send_json(200, {"manifest_file": "", "repository": ""}),
    }


def metric_prefix(line: str) -> str:
    """Line 2 shows vLLM's names, line 1 the same quantities without a prefix."""
    return "vllm:" if line.startswith("2.") else ""

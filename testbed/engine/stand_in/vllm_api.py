"""The API of vLLM: `vllm serve PATH --flags`, /health, /metrics, and nothing on the port before it is ready."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence

from .arguments import Parsed, parse
from .engine import Engine, Phase
from .openai_routes import OpenAi
from .pooling_api import Pooling
from .settings import EngineSettings, GroupSettings, Settings, Tls
from .tables import Table
from .web import Exchange, Routes

DEFAULT_MODEL = "Qwen/Qwen3-0.6B"


def vllm_settings(argv: Sequence[str], table: Table) -> Settings:
    """The settings that the command line says. Exits with 2 for what vLLM would refuse."""
    parsed = parse(argv, table)
    model = str(parsed.get("model") or DEFAULT_MODEL)
    keys = parsed.get("api-key") or [os.environ.get("VLLM_API_KEY", "")]
    quiet = str(parsed.get("disable-access-log-for-endpoints", "")).split(",")
    return Settings(
        product="vLLM",
        engine_version=table.version,
        argv=("vllm", *argv),
        model=model,
        served_names=(*(parsed.get("served-model-name") or [model]), *_adapters(parsed)),
        host=parsed.get("host", ""),
        port=parsed.get("port", 8000),
        api_keys=tuple(key for key in keys if key),
        tls=_tls(parsed),
        shutdown_timeout=parsed.get("shutdown-timeout", 0),
        keep_alive_comment_seconds=parsed.get("sse-keep-alive-interval", 0),
        idle_connection_seconds=float(os.environ.get("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "5")),
        quiet_paths=frozenset(path.strip() for path in quiet if path.strip()),
        parsed=parsed,
        engine=engine_settings(parsed),
        group=_group(parsed),
    )


def engine_settings(parsed: Parsed) -> EngineSettings:
    """The settings of the engine itself, from the flags."""
    return EngineSettings(
        max_model_len=parsed.get("max-model-len"),
        tensor_parallel_size=parsed.get("tensor-parallel-size", 1),
        max_queued_requests=parsed.get("max-num-queued-reqs"),
        max_running_requests=parsed.get("max-num-seqs"),
        trust_remote_code=bool(parsed.get("trust-remote-code")),
        reads_weights=parsed.get("load-format") != "dummy",
    )


def _adapters(parsed: Parsed) -> tuple[str, ...]:
    """The adapters that `--lora-modules` names in its JSON form: clients ask for each by its name."""
    return tuple(str(json.loads(text)["name"]) for text in parsed.get("lora-modules") or ())


def _group(parsed: Parsed) -> GroupSettings | None:
    """None on a single node, whatever the rank. Defaults and texts are those of 0.33.0 (engine/arg_utils.py)."""
    nodes = parsed.get("nnodes", 1)
    if nodes == 1:
        return None
    sizes = ("data-parallel-size", "pipeline-parallel-size", "tensor-parallel-size", "prefill-context-parallel-size")
    world_size = math.prod(parsed.get(size, 1) for size in sizes)
    return GroupSettings(
        nodes=nodes,
        rank=parsed.get("node-rank", 0),
        address=parsed.get("master-addr", "127.0.0.1"),
        port=parsed.get("master-port", 29501),
        world_size=world_size,
        is_headless=bool(parsed.get("headless")),
        uneven=(
            f"ValueError: Invalid data-parallel launch options: `--nnodes {nodes}` must evenly divide the total world "
            f"size ({world_size}). Adjust `--nnodes`, `--data-parallel-size`, `--pipeline-parallel-size`, "
            "`--tensor-parallel-size`, or `--prefill-context-parallel-size`."
        ),
    )


def _tls(parsed: Parsed) -> Tls | None:
    if "ssl-certfile" not in parsed:
        return None
    certificate = str(parsed["ssl-certfile"])
    return Tls(
        parsed.get("ssl-keyfile", certificate), certificate, parsed.get("ssl-ca-certs"), parsed.get("ssl-cert-reqs", 0)
    )


def vllm_routes(settings: Settings, engine: Engine, openai: OpenAi) -> Routes:
    """Without a key: everything that is not under /v1, full inference by /invocations included, as in vLLM."""

    def health(exchange: Exchange) -> None:
        exchange.send_bytes(503 if engine.phase is Phase.DEAD else 200)

    def invocations(exchange: Exchange) -> None:
        openai.complete(exchange, chat=b'"messages"' in exchange.body)

    served = openai.routes()
    if settings.parsed.get("runner") == "pooling":
        completions = {("POST", "/v1/chat/completions"), ("POST", "/v1/completions")}
        models_and_reports = {route: answer for route, answer in served.items() if route not in completions}
        served = {**models_and_reports, **Pooling(settings).routes()}
    return {
        **served,
        ("GET", "/health"): health,
        ("GET", "/ping"): health,
        ("POST", "/ping"): health,
        ("POST", "/invocations"): invocations,
        ("GET", "/metrics"): openai.metrics,
        ("GET", "/version"): lambda exchange: exchange.send_json(200, {"version": settings.engine_version}),
        ("GET", "/load"): lambda exchange: exchange.send_json(200, {"server_load": engine.running}),
    }

"""The API of SGLang: `sglang serve --model-path PATH --flags`, /health and /ready, a key on nearly every path.

From the source of 0.5.23: srt/utils/auth.py, srt/entrypoints/http_server.py, srt/managers/tokenizer_manager.py,
srt/entrypoints/engine.py, srt/server_args.py.
"""

from __future__ import annotations

import argparse
import hmac
import os
from collections.abc import Sequence
from pathlib import Path

from .arguments import Parsed, add_flags
from .container_checks import write_below
from .engine import Engine, Phase
from .openai_routes import OpenAi
from .settings import EngineSettings, GroupSettings, Settings, Tls
from .tables import Table
from .web import Exchange, Routes

OWN_VARIABLE = "SGLANG_STAND_IN_VERSION"
WITHOUT_A_KEY = ("/health", "/ready", "/metrics")
# It drains until the last request has ended, whatever it takes.
NO_LIMIT = 86400.0


def sglang_settings(argv: Sequence[str], table: Table) -> Settings:
    """The settings that the command line says. Exits with 2 for what SGLang would refuse."""
    parsed = _parsed(argv, table)
    model = str(parsed["model-path"])
    return Settings(
        product="SGLang",
        engine_version=table.version,
        argv=("sglang", *argv),
        model=model,
        served_names=(str(parsed.get("served-model-name") or model),),
        host=parsed.get("host", "127.0.0.1"),
        port=parsed.get("port", 30000),
        api_keys=(str(parsed["api-key"]),) if parsed.get("api-key") else (),
        open_paths=WITHOUT_A_KEY,
        tls=Tls(parsed.get("ssl-keyfile", ""), parsed["ssl-certfile"]) if "ssl-certfile" in parsed else None,
        shutdown_timeout=NO_LIMIT,
        quiet_paths=frozenset(parsed.get("uvicorn-access-log-exclude-prefixes", ())),
        parsed={name: "(set)" if "api-key" in name else value for name, value in parsed.items()},
        engine=EngineSettings(
            max_model_len=parsed.get("context-length"),
            tensor_parallel_size=parsed.get("tp-size", 1),
            max_queued_requests=parsed.get("max-queued-requests"),
            trust_remote_code=bool(parsed.get("trust-remote-code")),
            reads_weights=parsed.get("load-format") != "dummy",
        ),
        admin_key=str(parsed.get("admin-api-key", "")),
        group=_group(parsed),
    )


def _group(parsed: Parsed) -> GroupSettings | None:
    """None on a single node. Without an address SGLang meets on its own loopback, where no other node is."""
    nodes = parsed.get("nnodes", 1)
    if nodes == 1:
        return None
    address, _, port = str(parsed.get("dist-init-addr", "127.0.0.1:20000")).rpartition(":")
    return GroupSettings(
        nodes=nodes,
        rank=parsed.get("node-rank", 0),
        address=address,
        port=int(port),
        world_size=parsed.get("tp-size", 1) * parsed.get("pp-size", 1),
        is_headless=True,
        uneven="AssertionError: tp_size must be divisible by number of nodes",
    )


def _parsed(argv: Sequence[str], table: Table) -> Parsed:
    """`sglang serve` takes the kind of server off the line; plain argparse reads the rest."""
    arguments = list(argv)
    if arguments[:1] != ["serve"]:
        raise SystemExit(2)
    arguments = arguments[1:]
    if "--model-type" in arguments:
        place = arguments.index("--model-type")
        arguments = [*arguments[:place], *arguments[place + 2 :]]
    parser = argparse.ArgumentParser(prog="sglang serve", description="hermetic engine stand-in for the SGLang CLI")
    add_flags(parser, {name: shape for name, shape in table.flags.items() if name != "--help"})
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    if "model-path" not in given:
        parser.error("the following arguments are required: --model-path/--model")
    return given


def check_cache() -> None:
    """Writes where SGLang keeps compiled kernels."""
    home = os.path.expanduser("~/.cache/sglang")  # noqa: PTH111 - leaves the ~ where there is no home
    write_below(Path(os.environ.get("SGLANG_CACHE_DIR") or home))


def sglang_member_routes() -> Routes:
    """What a rank above 0 answers when it has loaded: srt/utils/common.py, `launch_dummy_health_check_server`."""
    paths = ("/ping", "/health", "/health_generate")
    return {("GET", path): lambda exchange: exchange.send_bytes(200) for path in paths}


def sglang_routes(settings: Settings, engine: Engine, openai: OpenAi) -> Routes:
    """What is probed and asked; of the routes that change the engine one, which stands for all of them."""

    def health(exchange: Exchange) -> None:
        exchange.send_bytes(200 if engine.phase is Phase.SERVING else 503)

    def update_weights(exchange: Exchange) -> None:
        keys = [settings.admin_key] if settings.admin_key else list(settings.api_keys)
        given = exchange.headers.get("Authorization", "").partition(" ")[2].encode()
        if keys and not any(hmac.compare_digest(given, key.encode()) for key in keys):
            exchange.send_json(401, {"error": "Unauthorized"})
            return
        exchange.send_json(200, {"success": True, "message": "Succeeded to update model weights."})

    names = {"model_path": settings.model, "served_model_name": settings.served_names[0], "is_generation": True}
    return {
        **openai.routes(),
        ("GET", "/health"): health,
        ("GET", "/ready"): health,
        ("GET", "/metrics"): openai.metrics,
        ("GET", "/model_info"): lambda exchange: exchange.send_json(200, names),
        ("POST", "/update_weights_from_disk"): update_weights,
        ("POST", "/invocations"): lambda exchange: openai.complete(exchange, chat=True),
    }

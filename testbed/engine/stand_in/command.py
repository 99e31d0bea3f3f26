"""What the image's programs run: `vllm`, `sglang` and the two ways in which a NIM starts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .behaviour import read_behaviour
from .container_checks import OWN_VARIABLE, check_environment, check_writable
from .failures import StartFailure, report
from .nim_api import metric_prefix, nim_routes, nim_settings
from .process import EngineApi, run_engine
from .sglang_api import OWN_VARIABLE as SGLANG_VARIABLE
from .sglang_api import check_cache, sglang_member_routes, sglang_routes, sglang_settings
from .signals import STOP_SIGNALS
from .tables import Table, table_of
from .vllm_api import vllm_routes, vllm_settings

LINE_VARIABLE = "NIM_STAND_IN_LINE"
INTERRUPTED = 130


def vllm(argv: Sequence[str]) -> int:
    """`vllm ARGV`: exit code 2 for arguments that vLLM refuses, 1 for a start that fails, 0 after SIGTERM."""
    table = _table()
    settings = vllm_settings(argv, table)

    def begin() -> EngineApi:
        check_environment(table, strict=bool(settings.parsed.get("fail-on-environ-validation")))
        check_writable()
        return EngineApi(settings, vllm_routes, "vllm:", live_while_loading=False)

    return _run(begin, settings.model)


def nim(argv: Sequence[str]) -> int:
    """`nim-serve ARGV`, or line 1's start script: configured by NIM_* variables."""
    line = os.environ.get(LINE_VARIABLE, "2.1")
    table = _table()

    def begin() -> EngineApi:
        settings = nim_settings(argv, table, line)
        check_environment(table, strict=False)
        return EngineApi(settings, nim_routes, metric_prefix(line), live_while_loading=line.startswith("2."))

    return _run(begin, os.environ.get("NIM_MODEL_PATH") or os.environ.get("NIM_MODEL_NAME") or "")


def sglang(argv: Sequence[str]) -> int:
    """`sglang ARGV`: exit code 2 for arguments that SGLang refuses, 1 for a start that fails, 0 after SIGTERM."""
    settings = sglang_settings(argv, table_of(os.environ[SGLANG_VARIABLE]))

    def begin() -> EngineApi:
        check_cache()
        return EngineApi(
            settings, sglang_routes, "sglang:", live_while_loading=False, member_routes=sglang_member_routes()
        )

    return _run(begin, settings.model)


def _table() -> Table:
    return table_of(os.environ[OWN_VARIABLE])


def _run(begin: Callable[[], EngineApi], model: str) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        return run_engine(begin())
    except StartFailure as error:
        report(error.failure, full=read_behaviour(Path(model)).traceback == "full")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def main() -> int:
    """Chooses by the name of the program that was started."""
    program, *argv = sys.argv
    return {"vllm": vllm, "sglang": sglang}.get(Path(program).name, nim)(argv)

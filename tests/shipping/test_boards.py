"""Every panel of the dashboards returns data for the metrics that engines, dcgm-exporter and the operator expose.

promtool evaluates the queries over series of these sources:
- vLLM: the stand-in, whose names are those of vllm/v1/metrics/loggers.py of https://github.com/vllm-project/vllm
- SGLang: https://docs.sglang.io/docs/references/production_metrics
- NIM of line 1: https://docs.nvidia.com/nim/large-language-models/latest/observability.html
- dcgm-exporter: etc/default-counters.csv of https://github.com/NVIDIA/dcgm-exporter
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.engine.stand_in.metrics import Metrics
from testbed.prometheus import prometheus_programs
from tests.observability import SHIPPED
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

PAGE = (SHIPPED.parents[1] / "docs" / "observability.md").read_text(encoding="utf-8")
BOARDS = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in sorted((SHIPPED / "grafana").glob("*"))}
SGLANG_GAUGES = ("num_running_reqs", "num_queue_reqs", "token_usage", "cache_hit_rate", "gen_throughput")
SGLANG_COUNTERS = ("prompt_tokens_total", "generation_tokens_total")
SGLANG_HISTOGRAMS = ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds")
NIM_GAUGES = ("gpu_cache_usage_perc", "num_requests_running", "num_requests_waiting", "num_request_max")
NIM_COUNTERS = ("prompt_tokens_total", "generation_tokens_total")
NIM_HISTOGRAMS = ("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds")
DCGM_COUNTERS = ("PCIE_REPLAY_COUNTER", "UNCORRECTABLE_REMAPPED_ROWS", "CORRECTABLE_REMAPPED_ROWS")
DCGM_GAUGES = (
    "SM_CLOCK", "MEM_CLOCK", "MEMORY_TEMP", "GPU_TEMP", "POWER_USAGE", "GPU_UTIL", "MEM_COPY_UTIL", "XID_ERRORS",
    "FB_FREE", "FB_USED", "ROW_REMAP_FAILURE",
)  # fmt: skip
OPERATOR = (
    'hermetic_model_info{namespace="inference",name="llama",model_name="meta/llama",engine="vllm",version="0.32.0",gpus="1"}',
    'hermetic_model_condition{condition="Ready",status="False"}',
    'hermetic_isolation_verdict{verdict="Pass"}',
    "hermetic_isolation_evidence_expiry_timestamp_seconds",
)
FIXED, GROWING = "1x30", "0+1x30"


def vllm_series() -> Iterator[tuple[str, str]]:
    """The samples of the stand-in's page after one request, each with values over half an hour."""
    metrics = Metrics("meta/llama", "vllm:")
    for line in metrics.text(1, 0).splitlines():
        if not line.startswith("#"):
            series = line.rpartition(" ")[0]
            name = series.partition("{")[0]
            yield series, GROWING if name.endswith(("_total", "_bucket", "_count", "_sum")) else FIXED


def documented_series(
    prefix: str, labels: str, gauges: tuple[str, ...], counters: tuple[str, ...], histograms: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    yield from ((f"{prefix}{name}{{{labels}}}", FIXED) for name in gauges)
    yield from ((f"{prefix}{name}{{{labels}}}", GROWING) for name in counters)
    for name in histograms:
        yield from ((f'{prefix}{name}_bucket{{{labels},le="{bound}"}}', GROWING) for bound in ("0.1", "1", "+Inf"))


def all_series() -> dict[str, str]:
    gpu = 'gpu="0",UUID="GPU-1",Hostname="aks-gpu-0",modelName="NVIDIA A100 80GB PCIe"'
    return {
        **dict(vllm_series()),
        **dict(documented_series("sglang:", 'model_name="qwen"', SGLANG_GAUGES, SGLANG_COUNTERS, SGLANG_HISTOGRAMS)),
        **dict(documented_series("", 'model_name="nemotron"', NIM_GAUGES, NIM_COUNTERS, NIM_HISTOGRAMS)),
        **dict(documented_series("DCGM_FI_DEV_", gpu, DCGM_GAUGES, DCGM_COUNTERS)),
        **dict.fromkeys(OPERATOR, FIXED),
    }


SERIES = all_series()


def queries(board: dict[str, Any]) -> list[str]:
    """The queries of the panels, as Grafana sends them with every model selected."""
    return [target["expr"].replace("$model", ".*") for panel in board["panels"] for target in panel["targets"]]


def unanswered(folder: Path, board: dict[str, Any], series: dict[str, str]) -> str:
    """What promtool says of the queries that return no sample, or no number; "" where all return one."""
    tests = [
        # NaN is not equal to itself, so a quantile of nothing is no answer.
        {
            "expr": f"count(({query}) == ({query})) > bool 0",
            "eval_time": "20m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query in queries(board)
    ]
    samples = [{"series": name, "values": values} for name, values in series.items()]
    file = folder / "board.yaml"
    file.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": samples, "promql_expr_test": tests}]}))
    ran = subprocess.run(
        [prometheus_programs().promtool, "test", "rules", file], capture_output=True, text=True, check=False, timeout=60
    )
    return "" if ran.returncode == 0 else ran.stdout + ran.stderr


@pytest.mark.parametrize("name", [name for name in BOARDS if name != "hermetic.json"])
def test_every_panel_returns_data(tmp_path: Path, name: str) -> None:
    assert unanswered(tmp_path, BOARDS[name], SERIES) == ""


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("vllm.json", "vllm:kv_cache_usage_perc"),
        ("sglang.json", "sglang:inter_token_latency_seconds_bucket"),
        ("nim.json", "time_per_output_token_seconds_bucket"),
        ("gpu.json", "DCGM_FI_DEV_XID_ERRORS"),
        ("fleet.json", "hermetic_model_info"),
    ],
)
def test_a_metric_that_is_missing_leaves_a_panel_without_data(tmp_path: Path, name: str, metric: str) -> None:
    without = {series: values for series, values in SERIES.items() if series.partition("{")[0] != metric}
    assert len(without) < len(SERIES)
    assert metric in unanswered(tmp_path, BOARDS[name], without)


def test_the_fleet_shows_the_models_of_every_engine(tmp_path: Path) -> None:
    by_model = [query for query in queries(BOARDS["fleet.json"]) if "by (model_name)" in query]
    assert len(by_model) == 4
    for model in ("meta/llama", "qwen", "nemotron"):
        one_model = [
            f'({query}) and on (model_name) label_replace(vector(1), "model_name", "{model}", "", "")'
            for query in by_model
        ]
        board = {"panels": [{"targets": [{"expr": query}]} for query in one_model]}
        assert unanswered(tmp_path, board, SERIES) == ""


def test_boards_have_uids_of_their_own_and_neither_plug_ins_nor_addresses() -> None:
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)
    for name, board in BOARDS.items():
        assert {panel["type"] for panel in board["panels"]} <= {"stat", "timeseries"}, name
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]), name
        assert "http" not in json.dumps(board), name
        sources = {panel["datasource"]["uid"] for panel in board["panels"]}
        assert sources == {"${datasource}"}, name


def test_panels_do_not_overlap() -> None:
    for name, board in BOARDS.items():
        cells = [
            (x, y)
            for panel in board["panels"]
            for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
            for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells)), name
        assert max(x for x, _ in cells) < 24, f"{name}: Grafana's grid has 24 columns"


def test_the_component_and_the_page_have_every_board() -> None:
    kustomization = yaml.safe_load((SHIPPED / "kustomization.yaml").read_text())
    (generated,) = kustomization["configMapGenerator"]
    assert {Path(file).name for file in generated["files"]} == BOARDS.keys()
    section = PAGE.partition("\n## Dashboards\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+\.json)` \|", section, re.MULTILINE)) == BOARDS.keys()

"""Prometheus and promtool of Debian, unpacked into the cache folder, and one Prometheus as a process."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.debian_archive import unpacked
from testbed.processes import Component, free_port, wait_until

PACKAGE = "prometheus"


@dataclass(frozen=True)
class PrometheusPrograms:
    """Where the two programs lie."""

    prometheus: Path
    promtool: Path


def prometheus_programs() -> PrometheusPrograms:
    """The programs, fetched (20 MB) when they are not there yet."""
    folder = unpacked([PACKAGE])
    return PrometheusPrograms(folder / "usr/bin/prometheus", folder / "usr/bin/promtool")


class Prometheus:
    """One Prometheus that scrapes one target every second, with the rules of one file and labels of the target."""

    def __init__(
        self, folder: Path, target: str, rules: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        self._server = f"http://127.0.0.1:{(port := free_port())}"
        targets = {"targets": [target], "labels": dict(labels or {})}
        scrape = {"job_name": "hermetic", "static_configs": [targets]}
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [] if rules is None else [str(rules)],
            "scrape_configs": [scrape],
        }
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(configuration))
        self.component = Component(
            "prometheus",
            [
                prometheus_programs().prometheus,
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            folder / "prometheus.log",
        )

    def start(self) -> None:
        """Start, and return when it answers."""
        self.component.start()
        wait_until("Prometheus ready", lambda: self._get("/-/ready") is not None, [self.component])

    def stop(self) -> None:
        """End it."""
        self.component.stop()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query; raises with Prometheus' own words where it refuses the expression."""
        samples: list[dict[str, Any]] = self._data("query", query=expression)["result"]
        return samples

    def series(self, selector: str) -> list[dict[str, str]]:
        """The labels of every series that the selector matches; raises like `query`."""
        series: list[dict[str, str]] = self._data("series", **{"match[]": selector})
        return series

    def _data(self, path: str, **parameters: str) -> Any:
        answer = json.loads(self._get(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}") or "{}")
        if answer.get("status") != "success":
            raise ValueError(f"{', '.join(parameters.values())}: {answer.get('error', 'no answer')}")
        return answer["data"]

    def _get(self, path: str) -> bytes | None:
        try:
            with urllib.request.urlopen(self._server + path, timeout=5) as answer:
                body: bytes = answer.read()
                return body
        except urllib.error.HTTPError as refusal:
            return refusal.read() if refusal.code == 400 else None
        except OSError:
            return None

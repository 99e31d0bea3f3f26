"""YAML that means something else than it says: each is refused by type, and the message tells what to write."""

from __future__ import annotations

from dataclasses import dataclass

from tests.corpus.manifests import DIGEST

_SHORTEST = f"""\
apiVersion: hermetic.dev/v1alpha1
kind: ModelDeployment
metadata: {{name: trap}}
spec:
  model: {{name: phi-4}}
  engine:
    vllm: {{image: r.io/vllm@{DIGEST}, version: 0.32.0}}
  weights: {{bakedImage: {{path: /models/phi-4}}}}
"""


@dataclass(frozen=True)
class Trap:
    """One YAML document, the field at fault, and what both messages hold."""

    name: str
    text: str
    path: str
    says: str
    server_says: str


TRAPS = (
    Trap(
        "Off without quotes",
        _SHORTEST + "  isolation: {enforcement: Off}\n",
        "spec.isolation.enforcement",
        "must be 'Enforce', 'Report' or 'Off'; YAML reads a bare On, Off, Yes or No as true or false: put it in quotes",
        'supported values: "Enforce", "Report", "Off"',
    ),
    Trap(
        "version as a number",
        _SHORTEST.replace("0.32.0", "0.32"),
        "spec.engine.vllm.version",
        "must be a string; put it in quotes",
        "must be of type string",
    ),
    Trap(
        "no as a name",
        _SHORTEST.replace("name: phi-4", "name: no"),
        "spec.model.name",
        "must be a string; put it in quotes",
        "must be of type string",
    ),
    Trap(
        "number with an exponent",
        _SHORTEST + "  replicas: 1e3\n",
        "spec.replicas",
        "must be an integer, without quotes",
        "should be less than or equal to 256",
    ),
    Trap(
        "not a number",
        _SHORTEST + "  drainSeconds: .nan\n",
        "spec.drainSeconds",
        "must be",
        "",
    ),
    Trap(
        "variable with a number",
        _SHORTEST.replace("version: 0.32.0", "version: 0.32.0, extraEnv: [{name: OMP_NUM_THREADS, value: 1}]"),
        "spec.engine.vllm.extraEnv[0].value",
        "must be a string; put it in quotes",
        "must be of type string",
    ),
)

"""`python -m tools.pictures [--demo] [--folder DIR]`: the pictures of the README, as SVG for light and dark pages.

`run` is a terminal on which Hermetic validates a manifest, computes the memory of a model and audits a network.
`drawing` is the drawing of the egress paths from the HTML report of the same audit. The network is the public
reference deployment behind the stand-in for Azure, as in `make audit-demo`; nothing else is simulated. With --demo
`demo` is recorded instead: all of `make demo`, which needs its programs and takes minutes.
"""

from __future__ import annotations

import argparse
import re
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from testbed.azure.reference_estate import reference_estate
from testbed.azure.server import ArmStandIn
from testbed.errors import BuildError
from tools.terminal import THEMES, Run, output_on_terminal, picture

REPOSITORY = Path(__file__).resolve().parent.parent
PICTURES = REPOSITORY / "docs" / "pictures"
HERMETIC = Path(sys.executable).parent / "hermetic"
USER = "platform"
SNAPSHOT, REPORT = "aks-inference.json", "report.html"
# Two mistakes that people make: a tag in place of a digest, and a misspelt field.
MISTAKES = {r"vllm-openai@sha256:\w+": "vllm-openai:v0.32.0", r"\bfolder:": "foldr:"}
# As docs/sizing.md has them: what 'hermetic plan --show-facts' prints of the model.
FACTS = """\
    facts:
      modelType: llama
      parameterBytes: 16060522496
      shards: {count: 4, largestBytes: 4976698672}
      maxModelLength: 131072
      attention:
        {layers: 32, heads: 32, keyValueHeads: 8, headDimension: 128, hiddenSize: 4096, intermediateSize: 14336}
"""
TITLES = {
    "run": "hermetic validate, plan and audit; the audited network is the public reference deployment, simulated",
    "demo": "make demo: a local cluster; GPUs, Azure, the load balancer and the engines are simulated",
}
# What of the report's style sheet the drawing uses.
DRAWN = re.compile(r"^(\.topology|\.link|\.tip|\.open|\.masked|\.inbound|\.accepted|\.closed)\b.*\}$", re.MULTILINE)
COLORS = re.compile(r"(--[\w-]+: #[0-9a-f]{3,6};)")
FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif'


def manifests(folder: Path) -> None:
    """llama.yaml with mistakes, and sized.yaml without them and with the facts of the model."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    match = re.search(r"```yaml\n(apiVersion: hermetic\.dev.*?)```", readme, re.DOTALL)
    if match is None:
        raise BuildError("README.md has no manifest of a model in a block of YAML")
    mistaken = model = match[1]
    for pattern, mistake in MISTAKES.items():
        mistaken = re.sub(pattern, mistake, mistaken)
    (folder / "llama.yaml").write_text(mistaken, encoding="utf-8")
    sized = model.replace("  endpoint:", f"{FACTS}  endpoint:", 1)
    (folder / "sized.yaml").write_text(sized, encoding="utf-8")


def save_audit(folder: Path) -> None:
    """What an audit of the reference deployment reads, as a file, and its HTML report."""
    estate = reference_estate()
    with ArmStandIn(estate) as arm:
        environment = {"HERMETIC_ARM_TOKEN": arm.token, "NO_PROXY": "127.0.0.1", "LOGNAME": USER}
        options = ["--arm-endpoint", arm.url, "--save-snapshot", SNAPSHOT, "--out", REPORT]
        command: list[str | Path] = [HERMETIC, "audit", "--azure", estate.cluster, *options]
        code, output = output_on_terminal(command, folder, environment)
    if code != 1:
        raise BuildError(f"the audit ended with {code}, not with the egress paths of this network:\n{output}")
    report = folder / REPORT
    report.write_text(on_any_machine(report.read_text(encoding="utf-8")), encoding="utf-8")


def recorded_run(folder: Path) -> list[Run]:
    """The commands of the picture `run`, in a folder with their files."""
    return [
        recorded("hermetic validate -f llama.yaml", folder, 2),
        recorded("hermetic plan -f sized.yaml --instance-type Standard_NC24ads_A100_v4", folder, 0, rows=10),
        recorded(f"hermetic audit --snapshot {SNAPSHOT}", folder, 1, rows=18),
    ]


def recorded(typed: str, folder: Path, expected: int, rows: int | None = None) -> Run:
    """One command of Hermetic on a terminal. BuildError when it ends with another exit code than expected."""
    code, output = output_on_terminal([HERMETIC, *typed.split()[1:]], folder, {"LOGNAME": USER})
    if code != expected:
        raise BuildError(f"'{typed}' ended with {code}, not with {expected}:\n{output}")
    return Run(typed, on_any_machine(output), rows)


def recorded_demo() -> list[Run]:
    """All of `make demo`. BuildError when it fails."""
    code, output = output_on_terminal(["make", "demo"], REPOSITORY, {"DEMO_EXIT": "1", "LOGNAME": USER})
    if code != 0:
        raise BuildError(f"'make demo' ended with {code}:\n{output}")
    return [Run("make demo", on_any_machine(output))]


def on_any_machine(text: str) -> str:
    """A report names who audited, and on which machine: a picture shows a name that fits every machine."""
    return text.replace(f"{USER} on {socket.gethostname()}", f"{USER} on jump-box")


def drawing(page: str, theme: str) -> str:
    """The drawing of an HTML report as a file of its own, in the report's light or dark colours."""
    svg = re.search(r'<svg class="topology".*?</svg>', page, re.DOTALL)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    if svg is None or style is None:
        raise BuildError("the HTML report has no drawing")
    light, _, after = style[1].partition("@media screen and (prefers-color-scheme: dark)")
    dark = after.partition("\n}\n")[0]
    colors = COLORS.findall(light) if theme == "light" else COLORS.findall(dark)
    rules = (match[0] for match in DRAWN.finditer(style[1].partition("@media screen and (max-width")[0]))
    own = f".topology {{ font-family: {FONT}; }}\n.topology .sheet {{ fill: var(--sheet); stroke: none; }}"
    sheet = "\n".join((f".topology {{ {' '.join(colors)} }}", *rules, own))
    opened = svg[0].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    opened = opened.replace("; each is listed in words below", "", 1)
    background = '<rect class="sheet" width="100%" height="100%" rx="8"/>'
    text = opened.replace("</title>", f"</title>\n<style>\n{sheet}\n</style>\n{background}", 1)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def write(target: Path, pictures: dict[str, str]) -> None:
    """Write the pictures by name, and print their paths."""
    target.mkdir(parents=True, exist_ok=True)
    for name, svg in pictures.items():
        file = target / f"{name}.svg"
        file.write_text(svg, encoding="utf-8")
        sys.stdout.write(f"{file}\n")


def terminals(name: str, runs: Sequence[Run]) -> dict[str, str]:
    """One recording in every theme, by the name of its file."""
    return {f"{name}-{theme}": picture(runs, TITLES[name], theme) for theme in THEMES}


def main(arguments: list[str]) -> int:
    """Write the pictures; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("--demo", action="store_true", help="record `make demo` instead")
    parser.add_argument("--folder", type=Path, default=PICTURES, help="where the pictures are written")
    options = parser.parse_args(arguments)
    if options.demo:
        write(options.folder, terminals("demo", recorded_demo()))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        manifests(folder)
        save_audit(folder)
        page = (folder / REPORT).read_text(encoding="utf-8")
        drawings = {f"drawing-{theme}": drawing(page, theme) for theme in THEMES}
        write(options.folder, terminals("run", recorded_run(folder)) | drawings)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(f"error: {error}")

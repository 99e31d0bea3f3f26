"""`hermetic plan`: whether the model fits, on which VM sizes, and how long it takes to load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hermetic.api.kubernetes_yaml import NotReadable, dump, read_documents
from hermetic.api.model_facts import ModelFacts
from hermetic.cli.exit_codes import DONE, FAILED, UNKNOWN
from hermetic.cli.manifest_validation import GATES_OF_THE_SPEC, AcceptedManifest, validate
from hermetic.cli.manifests import note_skipped, read_manifests
from hermetic.cli.options import common_options, manifest_files
from hermetic.cli.plan.adapters import staged_adapters
from hermetic.cli.plan.document import as_document
from hermetic.cli.plan.planned import Planned, Question, planned
from hermetic.cli.plan.text import lines
from hermetic.cli.terminal import echo_fitted, write, write_json
from hermetic.errors import InputError, ModelFactsUnusable, Unreachable
from hermetic.plan.model_fit import model_fits_the_gpus
from hermetic.sizing.catalogue import nearest_size, sizes
from hermetic.sizing.facts_file import as_json, parsed_facts
from hermetic.sizing.memory import FitAnswer
from hermetic.sizing.node_counts import MOST_NODES

EXIT_CODES = {FitAnswer.FITS: DONE, FitAnswer.TIGHT: DONE, FitAnswer.DOES_NOT_FIT: FAILED, FitAnswer.UNKNOWN: UNKNOWN}
LARGEST_FILE = 2**20
# A spec that does not fit must be shown, not refused.
BUT_SIZING = tuple(gate for gate in GATES_OF_THE_SPEC if gate is not model_fits_the_gpus)
HOW = "give --model DIR or --model-facts FILE, or write `weights.facts` into the manifest"


@click.command(
    "plan",
    epilog="Example: hermetic plan -f llama.yaml --model /models/llama-3-1-8b\n\n"
    "Example: hermetic plan -f llama.yaml --model /models/llama-3-1-8b "
    "--instance-type Standard_NC24ads_A100_v4 -o json\n\n"
    "Example: hermetic plan --model /models/llama-3-1-8b --show-facts\n\n"
    "Exit codes: 0 fits or is tight, 1 does not fit, 2 wrong input, 3 not known, 4 a file is not there.",
)
@manifest_files
@click.option("--namespace", "-n", default="default", help="Namespace of manifests that name none. Default: default.")
@click.option("--instance-type", metavar="SIZE", help="VM size to plan for, in place of `accelerator.instanceTypes`.")
@click.option("--model-facts", type=click.Path(path_type=Path), metavar="FILE", help="Facts of the model.")
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the model, read for its facts, and for those of adapters beside or below it.",
)
@click.option("--share-throughput", type=float, metavar="MIB", help="Rate of the share, in MiB per second.")
@click.option(
    "--prices", type=click.Path(path_type=Path), metavar="FILE", help="YAML of VM size: price, for the order."
)
@click.option(
    "--nodes", type=click.IntRange(1, MOST_NODES), metavar="N", help="Compare one node with up to N nodes a replica."
)
@click.option("--show-facts", is_flag=True, help="Print the model's facts, to be written below `weights`.")
@common_options(cluster=False)
def command(**options: Any) -> int:
    """Compute whether a model fits its GPUs, compare VM sizes, and predict how long the weights take to load.

    The arithmetic is shown. Facts of the model come from --model, --model-facts or `weights.facts` of the manifest. No
    cluster and no network is asked. What rests on a value that is not confirmed is never reported to fit.
    """
    facts = _given_facts(options["model"], options["model_facts"])
    if options["show_facts"]:
        return _show(facts, options["output"])
    question = Question(
        share=_share(options["share_throughput"]),
        prices=_prices(options["prices"]),
        instance_type=_listed(options["instance_type"]),
        nodes=options["nodes"],
    )
    deployments = _deployments(options["files"], options["namespace"], facts is not None)
    plans = [
        planned(
            (deployment.owner.namespace, deployment.owner.name),
            deployment.spec,
            facts or _stated_facts(deployment),
            question,
            adapters=staged_adapters(options["model"], deployment.spec) if options["model"] is not None else (),
        )
        for deployment in deployments
        if deployment.spec is not None
    ]
    _print(plans, options["output"], priced=question.prices is not None)
    return max((EXIT_CODES[plan.answer] for plan in plans), key=(DONE, UNKNOWN, FAILED).index)


def _print(plans: list[Planned], output: str, *, priced: bool) -> None:
    if output == "json":
        write_json(as_document(plans))
        return
    for number, plan in enumerate(plans):
        for line in ("", *lines(plan, priced=priced)) if number else lines(plan, priced=priced):
            echo_fitted(line)


def _show(facts: ModelFacts | None, output: str) -> int:
    if facts is None:
        raise InputError("--show-facts needs a model", fix="give --model DIR or --model-facts FILE")
    if output == "json":
        write_json({"facts": as_json(facts)})
    else:
        write(dump({"facts": as_json(facts)}))
    return DONE


def _given_facts(folder: Path | None, file: Path | None) -> ModelFacts | None:
    if folder is not None and file is not None:
        raise InputError("--model and --model-facts are two sources of the same facts", fix="give one of them")
    if folder is not None:
        from hermetic.weights.model_folder import read_model_facts

        return read_model_facts(folder)
    if file is None:
        return None
    try:
        return parsed_facts(_yaml(file))
    except ValueError as error:
        raise ModelFactsUnusable(f"{file}: {error}") from None


def _stated_facts(accepted_manifest: AcceptedManifest) -> ModelFacts:
    facts = accepted_manifest.spec.weights.facts if accepted_manifest.spec is not None else None
    if facts is None:
        raise InputError(
            f"{accepted_manifest.typed.where()}: {accepted_manifest.owner.name}: the facts of the model are not known",
            fix=HOW,
        )
    return facts


def _deployments(files: tuple[str, ...], namespace: str, one_model: bool) -> list[AcceptedManifest]:
    if not files:
        raise InputError("no input file", fix="hermetic plan -f FILE --model DIR")
    reading = read_manifests(files)
    accepted, findings = validate(reading.typed, namespace=namespace, gates=BUT_SIZING)
    note_skipped(reading)
    reading.findings += findings
    reading.raise_findings()
    deployments = [deployment for deployment in accepted if deployment.spec is not None]
    if not deployments:
        raise InputError("the input has no ModelDeployment", fix="hermetic plan -f FILE --model DIR")
    if one_model and len({deployment.owner.key for deployment in deployments}) > 1:
        raise InputError(
            f"{len(deployments)} ModelDeployments were given with the facts of one model",
            fix="give one of them, or write `weights.facts` into each manifest",
        )
    return deployments


def _listed(size: str | None) -> str | None:
    if size is None or size in sizes():
        return size
    nearest = nearest_size(size)
    meant = f"; did you mean '{nearest}'?" if nearest is not None else ""
    raise InputError(
        f"--instance-type: '{size}' is not a VM size of the catalogue{meant}", fix=f"it has {', '.join(sizes())}"
    )


def _share(throughput: float | None) -> float | None:
    if throughput is not None and not 1 <= throughput <= 1_000_000:
        raise InputError(f"--share-throughput: {throughput:g} is not from 1 to 1000000 MiB per second")
    return throughput


def _prices(file: Path | None) -> Mapping[str, float] | None:
    if file is None:
        return None
    value = _yaml(file)
    if not isinstance(value, dict) or not all(
        isinstance(name, str) and isinstance(price, int | float) and not isinstance(price, bool) and _is_price(price)
        for name, price in value.items()
    ):
        raise InputError(f"{file}: must map VM sizes to prices", fix="one line each: 'Standard_NC24ads_A100_v4: 1.0'")
    return {name: float(price) for name, price in value.items()}


def _is_price(price: float) -> bool:
    return math.isfinite(price) and price >= 0


def _yaml(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise InputError(f"{file}: No such file or directory", fix="name a file that exists") from None
    except OSError as error:
        raise Unreachable(f"{file} cannot be read: {error.strerror or error}") from error
    if len(content) > LARGEST_FILE:
        raise InputError(f"{file} is larger than {LARGEST_FILE} bytes")
    try:
        documents = list(read_documents(content.decode("utf-8")))
    except (NotReadable, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not YAML: {error}") from None
    if len(documents) != 1 or documents[0].faults:
        why = documents[0].faults[0].message if documents and documents[0].faults else f"holds {len(documents)}"
        raise InputError(f"{file} must hold one document: {why}")
    return documents[0].value

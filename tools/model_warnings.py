"""manifests/policies/models.yaml: policies that warn at `kubectl apply` of what the operator would refuse.

They never deny: the operator's gates decide. Each expression warns only where a gate refuses for certain, from the same
tables: the engines' releases and flags, the catalogue of VM sizes, and the allow lists of 'hermetic-allowed'.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from hermetic.engines.flag_tables import TableFolder
from hermetic.engines.sglang.tables import TABLES as SGLANG
from hermetic.engines.vllm.tables import TABLES as VLLM
from hermetic.sizing.catalogue import sizes
from hermetic.sizing.slices import WHOLE_GPUS

PATH = "manifests/policies/models.yaml"
_RELEASES = {"vllm": (VLLM, r"([^0-9].*)?"), "sglang": (SGLANG, r"(\\.post[0-9]+)?")}
"""By engine: its tables, and what may follow a release in a version (the pattern `release` of its tables)."""

HEADER = """\
# Generated from the tables of engines and VM sizes by `python -m tools policies`. Do not edit.
# These policies deny nothing: 'kubectl apply' prints as a warning what the operator would refuse a moment later. Where
# an expression fails, nothing is printed (failurePolicy: Ignore), and the operator decides as always.
"""

_WARNINGS = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: hermetic-model-warnings
  labels: {{app.kubernetes.io/part-of: hermetic}}
spec:
  failurePolicy: Ignore
  matchConstraints:
    resourceRules:
      - apiGroups: [hermetic.dev]
        apiVersions: [v1alpha1]
        resources: [modeldeployments]
        operations: [CREATE, UPDATE]
  matchConditions:
    - name: the-spec-changes
      expression: request.operation == 'CREATE' || object.spec != oldObject.spec
  variables:
{variables}
    # Values of instanceTypes that the catalogue has, with the GPUs of each.
    - name: gpus
      expression: >-
        {{{gpus}}}
    - name: sizes
      expression: object.spec.accelerator.?instanceTypes.orValue([])
    - name: sharedMemory
      expression: >-
        string(object.spec.?resources.?sharedMemory.orValue(object.spec.accelerator.count <= 2 ? '2Gi' : '8Gi'))
  validations:
{validations}
    - expression: >-
        !has(object.spec.resources) || !has(object.spec.resources.memory)
        || !isQuantity(string(object.spec.resources.memory)) || !isQuantity(variables.sharedMemory)
        || quantity(string(object.spec.resources.memory)).isGreaterThan(quantity(variables.sharedMemory))
      messageExpression: >-
        'spec.resources.memory: ' + string(object.spec.resources.memory) + ' must exceed /dev/shm ('
        + variables.sharedMemory + '), which counts against it; a number without a suffix is in bytes'
    - expression: >-
        size(variables.sizes) == 0 || !(object.spec.accelerator.?resource.orValue('nvidia.com/gpu') in [{resources}])
        || !variables.sizes.all(name, name in variables.gpus && variables.gpus[name] < object.spec.accelerator.count)
      messageExpression: >-
        'spec.accelerator.count: ' + string(object.spec.accelerator.count) + ' GPUs are more than one VM has: '
        + variables.sizes.filter(name, name in variables.gpus).map(name, name + ' has '
        + string(variables.gpus[name])).join(', ')
"""

_VARIABLES = """\
    - name: {engine}Arguments
      expression: object.spec.engine.?{engine}.?extraArgs.orValue([]).filter(word, word.matches('^--[A-Za-z]'))
    # Every flag of every supported release: an abbreviation of none of them is a flag of none.
    - name: {engine}Flags
      expression: >-
        [{flags}]
    - name: {engine}Unknown
      expression: >-
        variables.{engine}Arguments.map(word, {option}).filter(option,
        !variables.{engine}Flags.exists(flag, flag.startsWith(option)))"""

_VALIDATIONS = """\
    - expression: >-
        !has(object.spec.engine.{engine})
        || object.spec.engine.{engine}.version.matches('^v?({releases}){suffix}$')
      messageExpression: >-
        'spec.engine.{engine}.version: ' + object.spec.engine.{engine}.version
        + ' is not supported by this release of Hermetic; supported: {supported}'
    - expression: size(variables.{engine}Unknown) == 0
      messageExpression: >-
        'spec.engine.{engine}.extraArgs: no supported release of {product} knows ' + variables.{engine}Unknown[0]
        + (variables.{engine}Unknown[0].contains(' ') ? '; write a flag and its value as two items of the list' : '')"""

_SOURCES = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: hermetic-model-sources
  labels: {app.kubernetes.io/part-of: hermetic}
spec:
  failurePolicy: Ignore
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
      - apiGroups: [hermetic.dev]
        apiVersions: [v1alpha1]
        resources: [modeldeployments]
        operations: [CREATE, UPDATE]
  matchConditions:
    - name: the-spec-changes
      expression: request.operation == 'CREATE' || object.spec != oldObject.spec
  variables:
    - name: images
      expression: >-
        [object.spec.engine.?vllm.?image, object.spec.engine.?nim.?image, object.spec.engine.?sglang.?image,
        object.spec.weights.?imageVolume.?reference].filter(image, image.hasValue()).map(image, image.value())
    # One line for each: NAMESPACE HOST/PREFIX, where '*' is every namespace. A prefix ends at '/', ':' or '@'.
    - name: registries
      expression: >-
        params.?data[?'registries'].orValue('').split('\\n').filter(line, line.startsWith('* ')
        || line.startsWith(request.namespace + ' ')).map(line, line.substring(line.indexOf(' ') + 1))
    - name: refusedImages
      expression: >-
        variables.images.filter(image, !variables.registries.exists(prefix, image.startsWith(prefix)
        && (prefix.endsWith('/') || image.substring(prefix.size()).matches('^([/:@]|$)'))))
    - name: account
      expression: >-
        object.spec.weights.?azureFiles.?account.orValue(
        object.spec.weights.?azureFiles.?server.orValue('').split('.')[0])
    - name: share
      expression: >-
        has(object.spec.weights.azureFiles) ? 'azure ' + variables.account + '/' + object.spec.weights.azureFiles.share
        : has(object.spec.weights.nfs) ? 'nfs ' + object.spec.weights.nfs.server + ':' + object.spec.weights.nfs.path
        : ''
    # One line for each: NAMESPACE azure ACCOUNT/SHARE[ SERVER][#FOLDER], or NAMESPACE nfs SERVER:PATH. Folders and
    # servers are left to the operator.
    - name: shares
      expression: >-
        params.?data[?'shares'].orValue('').split('\\n').filter(line, line.startsWith('* ')
        || line.startsWith(request.namespace + ' ')).map(line, line.substring(line.indexOf(' ') + 1))
  validations:
    - expression: size(variables.refusedImages) == 0
      messageExpression: >-
        'spec: image ' + variables.refusedImages[0] + ' is of no registry that namespace ' + request.namespace
        + ' may use (' + variables.registries.join(', ') + '); copy it into one, or ask the platform team'
    - expression: >-
        variables.share == '' || variables.shares.exists(line, line == variables.share
        || line.startsWith(variables.share + '#') || line.startsWith(variables.share + ' ')
        || (line.startsWith('nfs ') && line.startsWith(variables.share + '/')))
      messageExpression: >-
        'spec.weights: the share ' + variables.share + ' is none that namespace ' + request.namespace + ' may read ('
        + variables.shares.join(', ') + '); correct the name, or ask the platform team'
"""

_BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {name}
  labels: {{app.kubernetes.io/part-of: hermetic}}
spec:
  policyName: {name}
{parameter}  validationActions: [Warn, Audit]
"""
_PARAMETER = "  paramRef: {name: hermetic-allowed, namespace: hermetic-system, parameterNotFoundAction: Allow}\n"


def files() -> dict[str, str]:
    """The text of the file by its path in the repository."""
    documents = (
        _warnings(),
        _BINDING.format(name="hermetic-model-warnings", parameter=""),
        _SOURCES,
        _BINDING.format(name="hermetic-model-sources", parameter=_PARAMETER),
    )
    return {PATH: HEADER + "---\n".join(documents)}


def _warnings() -> str:
    confirmed = {size.name: size.gpus.value for size in sizes().values() if size.gpus.confirmed}
    return _WARNINGS.format(
        variables="\n".join(_variables(engine, tables) for engine, (tables, _) in _RELEASES.items()),
        validations="\n".join(_of_engine(engine, *release) for engine, release in _RELEASES.items()),
        gpus=_folded(f"'{name}': {count}" for name, count in sorted(confirmed.items())),
        resources=", ".join(f"'{resource}'" for resource in WHOLE_GPUS),
    )


def _variables(engine: str, tables: TableFolder) -> str:
    flags = {
        spelling
        for release in tables.supported
        for flag in tables.table_for(release).flags.values()
        for spelling in flag.spellings
        if spelling.startswith("--")
    }
    # As FlagTable.understood_as normalises an argument.
    option = "word.split('=')[0].split('.')[0].replace('_', '-')" if tables.dialect.dashes else "word.split('=')[0]"
    return _VARIABLES.format(engine=engine, flags=_folded(f"'{flag}'" for flag in sorted(flags)), option=option)


def _of_engine(engine: str, tables: TableFolder, suffix: str) -> str:
    return _VALIDATIONS.format(
        engine=engine,
        releases="|".join(re.escape(release).replace("\\", "\\\\") for release in tables.supported),
        suffix=suffix,
        supported=", ".join(tables.supported),
        product=tables.dialect.product,
    )


def _folded(items: Iterable[str]) -> str:
    return f"\n{' ' * 8}".join(textwrap.wrap(", ".join(items), 112, break_on_hyphens=False))

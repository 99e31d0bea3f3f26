"""A family of checks: pages from checks.toml, functions from its modules; the two are matched when it is loaded."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import resources
from types import ModuleType
from typing import Any, Concatenate, ParamSpec

from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.check_findings import Check, CheckFunction
from hermetic.audit.evaluation.results import CheckResult
from hermetic.audit.model.controls import read_controls
from hermetic.audit.model.findings import CheckPage, Severity
from hermetic.audit.policy.declarations import Policy

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Declared:
    """The function of a check, with the check's id."""

    id: str
    evaluate: CheckFunction


def check(name: str) -> Callable[[CheckFunction], Declared]:
    """Declare the decorated function as the one of this check; its name is the id with underscores."""

    def declare(evaluate: CheckFunction) -> Declared:
        if evaluate.__name__ != name.replace("-", "_"):
            raise ValueError(f"{evaluate.__module__}: the function of {name} is called {evaluate.__name__}")
        return Declared(name, evaluate)

    return declare


def check_each(
    name: str, apply_to_all: Callable[[Estate, Policy, Callable[P, Iterable[CheckResult]]], Iterator[CheckResult]]
) -> Callable[[Callable[Concatenate[Estate, Policy, P], Iterator[CheckResult]]], Declared]:
    """Declare the decorated function as the one of this check, for one resource; `apply_to_all` applies it to all."""

    def declare(evaluate: Callable[Concatenate[Estate, Policy, P], Iterator[CheckResult]]) -> Declared:
        @wraps(evaluate)
        def of_all(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
            def of_one(*args: P.args, **kwargs: P.kwargs) -> Iterator[CheckResult]:
                return evaluate(estate, policy, *args, **kwargs)

            return apply_to_all(estate, policy, of_one)

        return check(name)(of_all)

    return declare


def family(package: str, *modules: ModuleType) -> tuple[Check, ...]:
    """The checks of a package, in the order of its checks.toml; their functions are declared in these modules.

    Raises ValueError for a page without a function, a function without a page, or one declared twice: defects of this
    release.
    """
    text = resources.files(package).joinpath("checks.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    pages = {entry["id"]: entry for entry in data["check"]}
    declared = [declaration for module in modules for declaration in _declared_in(module)]
    functions = {declaration.id: declaration.evaluate for declaration in declared}
    if bare := functions.keys() - pages.keys():
        raise ValueError(f"{package}: {', '.join(sorted(bare))}: no page in checks.toml")
    if idle := pages.keys() - functions.keys():
        raise ValueError(f"{package}: {', '.join(sorted(idle))}: no @check in the modules that __init__.py names")
    if len(declared) != len(functions):
        raise ValueError(f"{package}: a check is declared twice")
    return tuple(_check(data["family"], entry, functions[name]) for name, entry in pages.items())


def _declared_in(module: ModuleType) -> Iterator[Declared]:
    for value in vars(module).values():
        if isinstance(value, Declared) and value.evaluate.__module__ == module.__name__:
            yield value


def _check(title: str, entry: Mapping[str, Any], evaluate: CheckFunction) -> Check:
    try:
        controls = read_controls(entry.get("controls", {}))
    except ValueError as error:
        raise ValueError(f"{entry['id']}: {error}") from error
    page = CheckPage(
        id=entry["id"],
        title=entry["title"],
        severity=Severity(entry["severity"]),
        why=entry["why"].strip(),
        reads=tuple(entry["reads"]),
        remedy=entry["remedy"].strip(),
        source=entry["source"],
        family=title,
        controls=controls,
        remedy_in_node_group=entry.get("remedy_in_node_group", "").strip(),
        tenant_policies=tuple(entry.get("tenant_policies", ())),
        administrator=entry.get("administrator", ""),
        action=entry.get("action", ""),
    )
    return Check(page, frozenset(entry.get("needs", ["azure"])), evaluate)

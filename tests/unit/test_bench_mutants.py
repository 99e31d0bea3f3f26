"""The seeded mistakes of `make mutants`: what is changed, what is left alone, and how the scores are counted."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from bench.mutants import (
    LAYERS,
    MOST_FILES_AT_ONCE,
    REPOSITORY,
    TARGETS,
    Outcome,
    draw_mutants,
    failing_tests,
    figures_of,
    layer_files,
    parts_of,
    run_mutant,
    without_tests,
)
from bench.mutations import Mutant, mutants_of

CHANGES = [
    ("x = a == b", ["x = a != b"]),
    ("x = a <= b < c", ["x = a < b < c", "x = a <= b <= c"]),
    ("x = a not in b", ["x = a in b"]),
    ("x = (a) is not (b)", ["x = (a) is (b)"]),
    ("x = a and b or c", ["x = a and b and c", "x = a or b or c"]),
    ("x = not a", ["x = bool(a)"]),
    ("x = True", ["x = False"]),
    ("x = a[0]", ["x = a[1]"]),
    ("x = [b for b in a if b]", ["x = [b for b in a if True]"]),
    ("if a:\n    b()", ["if not (a):\n    b()", "if a:\n    pass"]),
    ("x = b if a else c", ["x = b if not (a) else c"]),
    ("for b in a:\n    continue", ["for b in a:\n    pass"]),
    ("x += a", ["pass"]),
    ("def f():\n    yield a", ["def f():\n    yield from ()"]),
    ("x = 'ä' == b", ["x = 'ä' != b"]),
]


@pytest.mark.parametrize(("source", "changed"), CHANGES)
def test_source_has_exactly_these_mutants(source: str, changed: list[str]) -> None:
    assert sorted(mutant.applied(source) for mutant in mutants_of("a.py", source)) == sorted(changed)


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "x = f'{a == b}'",
        "@cache(1)\ndef f(a: Literal[1]) -> Literal[2]: return a",
        "x: Literal[1]",
        "if TYPE_CHECKING:\n    import a",
        "pass",
    ],
)
def test_text_annotations_and_decorators_stay(source: str) -> None:
    assert mutants_of("a.py", source) == []


def test_every_mutant_of_the_product_is_valid_python_and_differs() -> None:
    drawn = draw_mutants(150, seed=7)
    assert len(drawn) == 150
    for _, mutant in drawn:
        source = (REPOSITORY / mutant.file).read_text()
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source)), mutant


def test_seed_decides_the_draw_and_every_group_has_its_share() -> None:
    drawn = draw_mutants(10, seed=1)
    assert drawn == draw_mutants(10, seed=1) != draw_mutants(10, seed=2)
    assert sorted([group for group, _ in drawn].count(group) for group in TARGETS) == [3, 3, 4]


def test_every_target_exists_and_every_layer_has_files_of_its_own() -> None:
    assert all((REPOSITORY / path).exists() for paths in TARGETS.values() for path in paths)
    files = layer_files()
    assert all(files[layer] for layer in LAYERS)
    listed = [file for layer in files.values() for file in layer]
    assert len(listed) == len(set(listed))
    folders = ("tests/unit", "tests/property", "tests/golden", "tests/controller")
    there = {
        str(path.relative_to(REPOSITORY)) for folder in folders for path in (REPOSITORY / folder).glob("test_*.py")
    }
    assert set(listed) == there


def test_scores_count_what_is_reached_found_and_found_by_one_layer_alone() -> None:
    mutant = Mutant(str(Path("a.py")), 3, 0, 1, "b", "changed")
    outcomes = [
        Outcome("egress", mutant, ("unit", "golden"), ("unit",)),
        Outcome("egress", mutant, ("unit", "golden"), ("unit", "golden")),
        Outcome("plan", mutant, ("unit",), ()),
        Outcome("plan", mutant, (), ()),
    ]
    figures = figures_of(outcomes, ("unit", "golden"))
    assert figures["layers"].keys() == {"unit", "golden"}
    assert figures["layers"]["unit"] == {"reached": 3, "found": 2, "onlyHere": 1}
    assert figures["layers"]["golden"] == {"reached": 2, "found": 1, "onlyHere": 0}
    assert figures["groups"]["egress"] == {"mutants": 2, "found": 2}
    assert figures["groups"]["plan"] == {"mutants": 2, "found": 0}
    survivor = {"file": "a.py", "line": 3, "change": "changed"}
    assert figures["survivors"] == [{**survivor, "reached": True}, {**survivor, "reached": False}]


def test_part_of_a_layer_has_files_from_all_over_the_list() -> None:
    files = [f"test_{number:03}.py" for number in range(2 * MOST_FILES_AT_ONCE + 1)]
    parts = parts_of(files)
    assert len(parts) == 3
    assert sorted(file for part in parts for file in part) == files
    assert parts[1][:2] == ["test_001.py", "test_004.py"]
    assert parts_of(files[:1]) == [files[:1]]


OPTION = "def pytest_addoption(parser):\n    parser.addoption('--replay')\n"
TESTS = """
from hermetic_copy import is_large

def test_large(): assert is_large(3)
def test_small(): assert not is_large(1)
def test_of_nothing(): pass
def test_that_needs_the_repository(): assert False
"""
COVERING = {
    "unit": ["test_copy.py::test_of_nothing", "test_copy.py::test_large"],
    "golden": ["test_copy.py::test_of_nothing"],
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of one function, with the plugin that runs its tests."""
    for folder in ("operator", "bench"):
        (tmp_path / folder).mkdir()
    shutil.copy(REPOSITORY / "bench/mutants_plugin.py", tmp_path / "bench")
    (tmp_path / "bench/__init__.py").touch()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(OPTION)
    (tmp_path / "test_copy.py").write_text(TESTS)
    (tmp_path / "operator/hermetic_copy.py").write_text("def is_large(number):\n    return number > 2\n")
    return tmp_path


def mutant_of(checkout: Path, replacement: str) -> Mutant:
    source = (checkout / "operator/hermetic_copy.py").read_text()
    start = source.index("number > 2")
    return Mutant("operator/hermetic_copy.py", 2, start, start + len("number > 2"), replacement, "changed")


@pytest.mark.parametrize(
    ("replacement", "finding"),
    [("number > 3", ("unit",)), ("number > 1", ()), ("number >", ("unit", "golden"))],
    ids=["found by one layer", "found by none", "cannot be imported"],
)
def test_mutant_is_run_and_taken_out(checkout: Path, replacement: str, finding: tuple[str, ...]) -> None:
    before = (checkout / "operator/hermetic_copy.py").read_text()
    assert run_mutant(checkout, mutant_of(checkout, replacement), COVERING, seed=1) == finding
    assert (checkout / "operator/hermetic_copy.py").read_text() == before


def test_tests_that_fail_without_a_mutant_find_nothing(checkout: Path) -> None:
    failing = "test_copy.py::test_that_needs_the_repository"
    covering = {"unit": [failing, "test_copy.py::test_large"], "golden": [failing]}
    assert failing_tests(checkout, [covering], seed=1) == {failing}
    assert without_tests(covering, {failing}) == {"unit": ["test_copy.py::test_large"]}


def test_id_that_pytest_does_not_know_ends_the_measurement(checkout: Path) -> None:
    with pytest.raises(SystemExit, match="cannot run the tests"):
        failing_tests(checkout, [{"unit": ["test_copy.py::test_of_another_checkout"]}], seed=1)

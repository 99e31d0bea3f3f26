"""The proof that a change only renamed locals: what it accepts, and what it must not."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from tools import renames
from tools.renames import keyword_calls, renamed_parameters
from tools.scopes import canonical, variables

RENAMED = [
    ("def f(one): return one", "def f(pod): return pod"),
    ("def f(pods): return [one for one in pods]", "def f(pods): return [pod for pod in pods]"),
    (
        "def f(a):\n    x = [one for one in a]\n    return {one for one in x}",
        "def f(a):\n    x = [pod for pod in a]\n    return {node for node in x}",
    ),
    ("def f():\n    def g(): return one\n    one = 1", "def f():\n    def g(): return pod\n    pod = 1"),
    ("def f(one): return f'{one} {one.name!r:>{one}}'", "def f(pod): return f'{pod} {pod.name!r:>{pod}}'"),
    ("def f(a): return any((one := b) for b in a), one", "def f(a): return any((pod := b) for b in a), pod"),
    ("try: f()\nexcept E as e: pass\nk = lambda one: one", "try: f()\nexcept E as e: pass\nk = lambda pod: pod"),
    (
        "def f(a):\n    match a:\n        case [one, *b]: g(one)",
        "def f(a):\n    match a:\n        case [pod, *b]: g(pod)",
    ),
    (
        "class A:\n    name = 1\n    def f(self, one): return name, one",
        "class A:\n    name = 1\n    def f(self, b): return name, b",
    ),
]
CHANGED = [
    # the new name was used already: by another variable, a global, a builtin, or a function inside
    ("def f(one, pod): return one, pod", "def f(pod, pod2): return pod, pod"),
    ("def f(one): return one, pod", "def f(pod): return pod, pod"),
    ("def f(one): return len(one)", "def f(len): return len(len)"),
    ("def f(one):\n    def g(pod): return one", "def f(pod):\n    def g(pod): return pod"),
    ("def f(one): return [a for pod in one for a in one]", "def f(pod): return [a for pod in pod for a in pod]"),
    # one use was forgotten
    ("def f(one): return one", "def f(pod): return one"),
    ("def f(one): return f'{one}'", "def f(pod): return f'{one}'"),
    # names that other modules see
    ("one = 1", "pod = 1"),
    ("class A:\n    one = 1", "class A:\n    pod = 1"),
    ("def f(a): return a.one", "def f(a): return a.pod"),
    ("f(one=1)", "f(pod=1)"),
    ("def f():\n    import one", "def f():\n    import pod"),
    ("def f():\n    global one\n    one = 1", "def f():\n    global pod\n    pod = 1"),
    # the text of a message, and an order
    ("def f(one): return f'{one=}'", "def f(pod): return f'{pod=}'"),
    ("def f(one, pod): return one", "def f(one, pod): return pod"),
]


@pytest.mark.parametrize(("before", "after"), RENAMED)
def test_renamed_local_leaves_the_canonical_text_equal(before: str, after: str) -> None:
    assert before != after
    assert canonical(before) == canonical(after)


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_capture_or_a_visible_name_changes_the_canonical_text(before: str, after: str) -> None:
    assert canonical(before) != canonical(after)


def test_variable_of_a_nonlocal_statement_is_fixed() -> None:
    source = "def f():\n    one = 1\n    def g():\n        nonlocal one\n        one = 2"
    assert [(variable.name, variable.is_fixed) for variable in variables(ast.parse(source))] == [
        ("one", True),
        ("g", False),
    ]


@pytest.mark.parametrize(
    ("before", "after", "callee", "is_decorated"),
    [
        ("def f(one): pass", "def f(pod): pass", "f", False),
        ("class A:\n    def __init__(self, one): pass", "class A:\n    def __init__(self, pod): pass", "A", False),
        ("@click.option('--one')\ndef f(one): pass", "@click.option('--one')\ndef f(pod): pass", "f", True),
        ("@lru_cache(2)\ndef f(*, one): pass", "@lru_cache(2)\ndef f(*, pod): pass", "f", False),
    ],
)
def test_renamed_parameter_is_listed_with_its_callee(before: str, after: str, callee: str, is_decorated: bool) -> None:
    parameter = next(renamed_parameters(before, after))
    assert (parameter.callee, parameter.before, parameter.after) == (callee, "one", "pod")
    assert parameter.is_decorated is is_decorated


def test_call_by_keyword_is_found_under_the_last_name_of_its_callee() -> None:
    sources = {"a.py": "module.f(1, one=2)\ng(pod=1)\nh(**one)"}
    assert list(keyword_calls(sources, {"one"})) == [("f", "one", "a.py")]


def test_changed_files_are_found_at_the_top_of_a_folder_and_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "folder" / "a.py", tmp_path / "folder" / "deep" / "deeper" / "b.py"]
    files[1].parent.mkdir(parents=True)
    for file in files:
        file.write_text("x = 1\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    for file in files:
        file.write_text("x = 2\n")
    monkeypatch.setattr(renames, "REPOSITORY", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert renames.compare("HEAD", ["folder"]) == [
        "folder/a.py: more changed than names of locals",
        "folder/deep/deeper/b.py: more changed than names of locals",
    ]

"""YAML is read as kubectl reads it, more strictly where kubectl is silent, and written so that it is not misread."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hermetic.api.kubernetes_yaml import Document, NotReadable, YamlPosition, dump, read_documents
from tests.kubernetes_scalars import SCALARS
from tests.traced_memory import traced_memory


def read(text: str) -> Document:
    (document,) = read_documents(text)
    return document


@pytest.mark.parametrize(("typed", "meant"), SCALARS, ids=[typed or "empty" for typed, _ in SCALARS])
def test_values_without_quotes_mean_what_kubectl_takes_them_for(typed: str, meant: object) -> None:
    value = read(f"value: {typed}").value["value"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize("typed", [typed for typed, _ in SCALARS if "'" not in typed and '"' not in typed])
def test_values_in_quotes_are_text(typed: str) -> None:
    assert read(f"value: '{typed}'").value["value"] == typed


def test_places_are_those_of_the_fields() -> None:
    document = read("spec:\n  engine:\n    vllm: {extraArgs: [a,\n      b]}\n  'odd.name': 1\n")
    assert document.place("spec.engine.vllm.extraArgs[1]") == YamlPosition(4, 7)
    assert document.place("spec['odd.name']") == YamlPosition(5, 3)


def test_a_field_that_is_missing_is_placed_at_what_is_around_it() -> None:
    document = read("spec:\n  engine:\n    vllm: {}\n")
    assert document.place("spec.engine.vllm.image") == YamlPosition(3, 5)
    assert document.place("spec.weights.nfs[3].path['a.b']") == YamlPosition(1, 1)


def test_empty_documents_are_passed_over_and_counted() -> None:
    assert [document.number for document in read_documents("---\n# nothing\n---\na: 1\n---\n---\nb: 1\n")] == [2, 4]


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1", "duplicate key 'a' (first on line 1)"),
        ('{"a": 1, "a": 2}', "1:1", "duplicate key 'a'"),
        ("a: .nan\n", "1:4", "'.nan' is a number that JSON cannot represent"),
        ("a: [-.Inf]\n", "1:5", "'-.Inf' is a number that JSON cannot represent"),
        ("on: 1\n", "1:1", "key 'on' is read as true: put it in quotes"),
        ("1: x\n", "1:1", "key '1' is read as 1: put it in quotes"),
        ("? [a]\n: x\n", "1:3", "a key must be text"),
        ("a: !!binary aGk=\n", "1:4", "means nothing to Kubernetes"),
        ("a: !!python/object:os.system {}\n", "1:4", "means nothing to Kubernetes"),
        ("a: &a 1\n<<: *a\n", "2:5", "'<<' takes an object"),
    ],
)
def test_what_kubectl_would_let_pass_is_a_fault_with_its_place(text: str, position: str, says: str) -> None:
    (fault,) = read(text).faults
    assert str(fault.place) == position
    assert says in fault.message


def test_every_fault_of_a_document_is_told() -> None:
    assert len(read("a: 1\na: .nan\nb: {y: 1}\n").faults) == 3


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("a: [1\nb: 2", "2:2", "did not find expected"),
        ("a: 'x\n", "2:1", "unexpected end"),
        ("a: b: c\n", "1:5", "mapping values are not allowed"),
        ("a:\n\t- 1\n", "2:1", "indented with a tab"),
        ("a: \x01\n", "1:4", "a character that YAML does not allow"),
        ("a: &a [*a]\n", "1:8", "names no anchor that ended before it"),
        ("a: *nobody\n", "1:4", "names no anchor"),
        ("[" * 5000, "1:102", "nested more than 100 deep"),
        ('{"a":' * 5000, "1:502", "nested more than 100 deep"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_place(text: str, position: str, says: str) -> None:
    with pytest.raises(NotReadable) as refused:
        list(read_documents(text))
    assert str(refused.value.place) == position
    assert says in refused.value.message


def test_documents_before_the_first_bad_one_are_read() -> None:
    documents = read_documents("a: 1\n---\nb: [\n")
    assert next(documents).value == {"a": 1}
    with pytest.raises(NotReadable):
        next(documents)


def test_an_alias_bomb_is_refused_before_it_goes_off() -> None:
    layers = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 40)]
    with pytest.raises(NotReadable, match="aliases stand for more than 100000 values"):
        list(read_documents("\n".join(["l0: &l0 [x]", *layers])))


LONG, LIST = "k" * 200_000, f"[{','.join(['0'] * 20_000)}]"
NESTED = "".join(f"{' ' * at}{'k' * 900}:\n" for at in range(90))


@pytest.mark.parametrize(
    "text",
    [
        f"? {LONG}\n: {LIST}\n",
        f"? {LONG}\n: {{{','.join(f'k{at}: 0' for at in range(20_000))}}}\n",
        f"a: {{? {LONG} : {LIST}}}\n",
        f"{NESTED}{' ' * 90}{LIST}\n",
    ],
    ids=["a key above a list", "a key above an object", "a key inside", "keys above keys"],
)
def test_what_is_kept_of_places_is_bounded_by_the_text(text: str) -> None:
    with traced_memory() as memory_use:
        document = read(text)
        _, highest = memory_use()
    assert highest < 64 * 2**20, f"{highest / 2**20:.0f} MiB"
    assert document.place("no.such.field") == YamlPosition(1, 1)


def test_the_place_of_what_is_below_a_long_key_is_that_of_the_object_around_it() -> None:
    document = read(f"a:\n  ? {'k' * 2_000}\n  : b: 1\n    b: 2\n")
    assert document.place(f"a.{'k' * 2_000}.b") == YamlPosition(1, 1)
    (fault,) = document.faults
    assert (str(fault.place), fault.message) == ("4:5", "duplicate key 'b' (first on line 3)")


def test_aliases_and_merges_of_a_person_are_understood() -> None:
    document = read("base: &base {a: 1, b: 2}\nboth: {<<: *base, b: 3}\nmany: {<<: [{a: 9}, *base], c: *base}\n")
    assert document.value["both"] == {"a": 1, "b": 3}
    assert document.value["many"] == {"a": 9, "b": 2, "c": {"a": 1, "b": 2}}
    assert document.faults == ()


def test_json_is_read_as_json() -> None:
    text = json.dumps({"name": "🦙", "path": "a/b"}, indent="\t").replace("/", "\\/")
    assert read(text).value == {"name": "🦙", "path": "a/b"}


@given(
    st.recursive(
        st.text() | st.sampled_from([typed for typed, _ in SCALARS]), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_whatever_is_written_is_read_back_by_every_reader(value: object) -> None:
    written = dump({"value": value})
    assert read(written).value == {"value": value}
    assert yaml.safe_load(written) == {"value": value}


def test_nothing_is_abbreviated_and_keys_keep_their_order() -> None:
    shared = {"b": 1, "a": 2}
    assert dump({"two": shared, "one": shared}) == "two:\n  b: 1\n  a: 2\none:\n  b: 1\n  a: 2\n"


def test_long_and_foreign_text_stays_on_its_line_as_it_is() -> None:
    text = "modèles 🦙 " * 50 + "x"
    assert dump({"folder": text}) == f"folder: {text}\n"

"""Every flag of a release, given to a server, reaches the engine of the converted deployment or is named in a note."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from hermetic.conversion.engine_flags import MODEL_FLAGS, NAME_FLAG
from hermetic.conversion.server_command import OMNI_FLAGS, FlagMember
from hermetic.engines.extra_arguments import read
from hermetic.engines.flag_tables import Flag, FlagTable
from hermetic.engines.registry import FLAG_ENGINES
from hermetic.errors import InputError
from tests.conversions import SGLANG_IMAGE, VLLM_IMAGE, Converted, of_sglang, of_vllm
from tests.sampling import Sample

OF_VLLM = FLAG_ENGINES["vllm"].tables.supported
OF_SGLANG = FLAG_ENGINES["sglang"].tables.supported
RELEASES: list[tuple[FlagMember, str]] = [
    *(("vllm", release) for release in (OF_VLLM[0], OF_VLLM[len(OF_VLLM) // 2], OF_VLLM[-1])),
    *(("sglang", release) for release in (OF_SGLANG[0], OF_SGLANG[-1])),
]
VALUES = {"int": "2", "float": "0.5", "size": "4k", "si-size": "4k", "json": '{"a":1}', "object": '{"a":1}'}
PER_RELEASE = 40
# Their values become folders below the weights, which a note names by the value.
NAMES_A_MODEL = {
    "--generation-config",
    "--spec-model",
    "--speculative-draft-model-path",
    "--tokenizer",
}
# Refused by themselves: they start one of several nodes.
REFUSED = {"--headless", "--nnodes", "--node-rank", "--data-parallel-start-rank"}


def table_of(member: FlagMember, release: str) -> FlagTable:
    return FLAG_ENGINES[member].tables.table_for(release)


def values_of(flag: Flag) -> tuple[str, ...]:
    value = flag.choices[0] if flag.choices else VALUES.get(flag.type, "value")
    return {"none": (), "many": (value, value), "any": (value, value)}.get(flag.value, (value,))


def converted(member: FlagMember, version: str, command: tuple[str, ...]) -> Converted:
    image = (VLLM_IMAGE if member == "vllm" else SGLANG_IMAGE).partition(":")[0] + f":v{version}"
    return (of_vllm if member == "vllm" else of_sglang)(*command, image=image)


def as_value(text: str) -> object:
    """Numbers that are equal in every spelling of them, and other text as it is."""
    with suppress(ValueError):
        return float(text.replace("4k", "4000"))
    return text


def reaches_the_engine(result: Converted, flag: Flag, table: FlagTable, command: tuple[str, ...]) -> bool:
    launched, _ = read(result.launched[1:], table)
    written, _ = read(command, table)
    return any(
        other.flag.name == flag.name
        and other.is_negated == written[0].is_negated
        and list(map(as_value, other.values)) == list(map(as_value, written[0].values))
        for other in launched
    )


@pytest.mark.parametrize(("member", "release"), RELEASES)
def test_every_flag_reaches_the_engine_or_is_named_in_a_note(
    member: FlagMember, release: str, sample: Sample, record_property: Callable[[str, object], None]
) -> None:
    table = table_of(member, release)
    spellings = [(flag, spelling) for flag in table.flags.values() for spelling in flag.spellings]
    reached = named = 0
    for flag, spelling in sample.of(f"flags of {member} {release}", spellings, PER_RELEASE):
        if flag.name in REFUSED or flag.name in (MODEL_FLAGS[member], NAME_FLAG):
            continue
        command = (spelling, *(() if spelling in flag.negations else values_of(flag)))
        companions = [(needed,) for name, needed in table.dialect.together if name == flag.name]
        for companion in companions:
            command = (*command, *companion, *values_of(table.flags[companion[0]]))
        result = converted(member, table.version, command)
        subjects = {flag.name, *(values_of(flag) if flag.name in NAMES_A_MODEL else ())}
        notes = [note for note in result.conversion.notes if note.subject.partition(".")[0] in subjects]
        is_reached = reaches_the_engine(result, flag, table, command)
        assert is_reached or notes, (command, result.conversion.notes)
        assert all(note.message for note in notes)
        reached, named = reached + is_reached, named + (not is_reached)
    record_property("flags of a command that reach the engine", reached)
    record_property("flags of a command that a note names", named)


@pytest.mark.parametrize(("member", "release"), RELEASES)
def test_flags_of_one_node_of_several_are_refused(member: FlagMember, release: str) -> None:
    table = table_of(member, release)
    for name in sorted(REFUSED & table.flags.keys()):
        with pytest.raises(InputError, match="nodes"):
            converted(member, table.version, (name, *(() if table.flags[name].value == "none" else ("2",))))


def test_no_flag_of_omni_is_one_of_vllm() -> None:
    vllm_flags = {
        spelling
        for release in OF_VLLM
        for flag in table_of("vllm", release).flags.values()
        for spelling in flag.spellings
    }
    assert OMNI_FLAGS.isdisjoint(vllm_flags)

"""Reserved flags stay reserved however vLLM lets them be written, and harmless flags of vLLM stay usable."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from hermetic.api import reserved_flags
from hermetic.api.reserved_flags import NO_RESERVED_KEY, NOT_AN_ABBREVIATION, REMOTE_CODE, SHORT_FLAGS, VLLM, VLLM_FLAGS

TABLES = Path(reserved_flags.__file__).resolve().parents[1] / "engines" / "vllm" / "tables"


def flags_of_every_version() -> dict[str, set[str]]:
    """Every flag of every supported vLLM release, with its other spellings."""
    flags: dict[str, set[str]] = {}
    for table in sorted(TABLES.glob("*.json")):
        for flag, document in json.loads(table.read_text(encoding="utf-8"))["flags"].items():
            flags.setdefault(flag, set()).update(document.get("aliases", ()), document.get("negations", ()))
    return flags


FLAGS = flags_of_every_version()


def test_reserved_flags_are_flags_of_vllm() -> None:
    spellings = FLAGS.keys() | {alias for aliases in FLAGS.values() for alias in aliases}
    assert VLLM_FLAGS.keys() <= spellings
    assert set(SHORT_FLAGS.values()) <= VLLM_FLAGS.keys()


def test_flags_that_start_a_reserved_one_are_told_apart() -> None:
    prefixes = {
        flag for flag in FLAGS if flag not in VLLM_FLAGS and any(vllm_flag.startswith(flag) for vllm_flag in VLLM_FLAGS)
    }
    assert prefixes == set(NOT_AN_ABBREVIATION)


def test_only_reserved_flags_are_refused() -> None:
    assert {flag for flag in FLAGS if VLLM.reached(flag)} == FLAGS.keys() & VLLM_FLAGS.keys() - {REMOTE_CODE}


def test_every_spelling_of_a_reserved_flag_is_refused_unless_it_turns_something_off() -> None:
    aliases = {alias for flag in FLAGS.keys() & VLLM_FLAGS.keys() for alias in FLAGS[flag]}
    assert {alias for alias in aliases if not VLLM.reached(alias)} == {"--no-trust-remote-code"}


@pytest.mark.parametrize("flag", sorted(VLLM_FLAGS))
def test_reserved_flags_are_found_with_values_underscores_and_keys(flag: str) -> None:
    underscored = "--" + flag[2:].replace("-", "_")
    assert VLLM.reached(flag) == ("" if flag == REMOTE_CODE else flag)  # a rule about weights judges that spelling
    for spelling in (f"{flag}=x", underscored, f"{underscored}=a-b", f"{flag}.key", f"{flag}.key=x"):
        assert VLLM.reached(spelling), spelling


# The patterns as the API server reads them; Python's `re` gives the same answers, though not in linear time.
SERVER_PATTERNS = (
    r"^-[^=]*\.[^=]*(plugin|code[-_]revision|trust[-_]remote[-_]code|otlp[-_]traces[-_]endpoint)",
    r'"[^"]*(plugin|code[-_]revision|trust[-_]remote[-_]code|otlp[-_]traces[-_]endpoint)"\s*:',
    r"\{.*\\u",
)
PIECES = (
    "-",
    "--",
    ".",
    "=",
    '"',
    " ",
    ":",
    "{",
    "}",
    "\\u",
    "\\",
    "x",
    "plugin",
    "code_revision",
    "trust-remote-code",
)


def test_reserved_keys_are_those_of_the_api_server() -> None:
    assert "".join(f"!self.matches(r'{pattern}')" for pattern in SERVER_PATTERNS) == NO_RESERVED_KEY.cel.replace(
        " && ", ""
    )
    chosen = random.Random(7)
    for _ in range(20_000):
        argument = "".join(chosen.choices(PIECES, k=chosen.randint(1, 9)))
        refused = any(re.search(pattern, argument) for pattern in SERVER_PATTERNS)
        assert NO_RESERVED_KEY.holds(argument) is not refused, argument

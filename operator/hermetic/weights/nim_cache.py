"""A NIM cache: which profiles it holds, from a file beside them, and the facts that follow from it.

A cache has no `config.json` at its root: models lie in `ngc/hub/models--.../snapshots`, as links to blobs, and nothing
in it names the profiles. `nim-profiles.txt` at its root holds the lines of `list-model-profiles` of those that were
downloaded.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from hermetic.api.model_facts import MOST_BYTES, ModelFacts, StagedProfile
from hermetic.errors import ModelFactsUnusable
from hermetic.weights.entries import FOLDER, NIM_PROFILES

PROFILES = NIM_PROFILES
LARGEST_PROFILES = 2**20
MOST_PROFILES = 64
MOST_FILES = 100_000
# '- dcec66a5... (tensorrt_llm-h100-fp8-tp2-latency)', as documented in 'Utilities for NVIDIA NIM for LLMs'.
_LINE = re.compile(r"\b(?P<id>[0-9a-f]{64})\s+\((?P<name>[A-Za-z0-9_.:-]{1,128})\)")
_NOT_COMPUTED = "a NIM cache holds its models by profile: its bytes are those of all its files"


def profiles_in(content: bytes) -> list[StagedProfile]:
    """The profiles that a listing names, each once; everything else in it is ignored. Raises ModelFactsUnusable."""
    names_by_id = {matched["id"]: matched["name"] for matched in _LINE.finditer(content.decode(errors="replace"))}
    if not 0 < len(names_by_id) <= MOST_PROFILES:
        raise ModelFactsUnusable(
            f"{PROFILES} names {len(names_by_id)} profiles, each as 'ID (NAME)'; it must name 1 to {MOST_PROFILES}",
            fix="keep the lines of 'list-model-profiles' of the profiles that were downloaded",
        )
    return [StagedProfile(id=profile_id, name=name) for profile_id, name in names_by_id.items()]


def facts_of_cache(folder: Path, profiles: list[StagedProfile]) -> ModelFacts:
    """The facts of a NIM cache. Raises ModelFactsUnusable for one of more than MOST_FILES files."""
    total = count = 0
    for parent, folders, names in os.walk(folder):
        # What staging writes itself does not count: the facts of a staged model are those of its source.
        folders[:] = [name for name in folders if name != FOLDER]
        for name in names:
            stat_result = Path(parent, name).lstat()
            total, count = total + stat_result.st_size * stat.S_ISREG(stat_result.st_mode), count + 1
        if count > MOST_FILES:
            raise ModelFactsUnusable(f"{folder} holds more than {MOST_FILES} files")
    return ModelFacts(
        model_type="nim",
        parameter_bytes=min(max(total, 1), MOST_BYTES),
        not_computed=[_NOT_COMPUTED],
        nim_profiles=profiles,
    )

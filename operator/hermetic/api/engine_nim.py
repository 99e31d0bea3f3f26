"""`spec.engine.nim`: how an NVIDIA NIM is tuned."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.engine_variables import Environment
from hermetic.api.field_types import AbsolutePath, PinnedImage, list_of, matches
from hermetic.api.reserved_flags import NIM, NO_CONTROL_CHARACTER, NO_RESERVED_KEY, NO_URL
from hermetic.api.rules import ApiModel, Rule

Argument = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), *NIM.rules(), NO_RESERVED_KEY, NO_URL, NO_CONTROL_CHARACTER
]


class Nim(ApiModel):
    """An NVIDIA NIM for large language models."""

    RULES = (
        Rule(
            cel="!(has(self.profile) && has(self.modelPath))",
            message="must not set both `profile` (a staged NIM cache) and `modelPath` (a staged model folder)",
            holds=lambda nim: nim.profile is None or nim.model_path is None,
        ),
        Rule(
            cel="!has(self.extraArgs) || self.extraArgs.size() == 0 || self.line.startsWith('2.')",
            message="`extraArgs` needs a NIM of line 2: line 1 takes its settings from the environment only",
            holds=lambda nim: not nim.extra_args or nim.line.startswith("2."),
        ),
    )

    image: PinnedImage
    """NIM image by digest, from a registry on the operator's allow list."""
    line: Annotated[
        str,
        StringConstraints(max_length=8),
        matches(
            r"^[12]\.[0-9]{1,3}$",
            "must be a NIM release line: '1.0' to '1.15', or '2.0' and later of line 2; line 3 is not supported, "
            "because what keeps it offline could not be verified",
        ),
    ]
    """NIM release line of the image, for example '1.15' or '2.1'. It decides variables, arguments and group."""
    profile: (
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=128),
            matches(r"^[A-Za-z0-9_.-]+$", "must be the id or name of a profile: letters, digits, '-', '_' and '.'"),
        ]
        | None
    ) = None
    """Model profile (id or name) that the staged NIM cache holds. The cache is linked read-only into a writable one.
    Default: none, and the weights are served as a model folder."""
    model_path: AbsolutePath | None = None
    """Model folder inside the container. Default: where the weights are: '/weights', or the path of a baked image."""
    max_model_length: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Longest context in tokens (prompt and answer together), 1 to 10,000,000. Default: that of the model or
    profile."""
    extra_args: Annotated[list[Argument], Field(max_length=64), list_of("atomic")] = []
    """Arguments for the engine behind a NIM of line 2, passed as they are and written out. Reserved flags and flags
    that are not on the reviewed list are refused. From line 2.1 on
    an image holds vLLM or SGLang: for vLLM add '--allowed-media-domains=NOWHERE.invalid', which keeps it from fetching
    what a request links to; line 2.0 gets it anyway. Default: none."""
    extra_env: Environment = []
    """Further environment variables: those of the reviewed list and those that the operator's configuration allows.
    Default: none."""

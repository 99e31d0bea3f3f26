"""`podUsers` of the configuration: the user and group ids of models' pods, by namespace and engine."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hermetic.api.engine import Member
from hermetic.api.field_types import Namespaces, list_of
from hermetic.api.rules import ApiModel

NumericId = Annotated[int, Field(ge=1, le=2147483647)]


class PodUser(ApiModel):
    """User and group of the pods of some namespaces, in place of those that the engine has by default."""

    run_as_user: NumericId
    """User id of every container, 1 to 2147483647, for example 10001. It must be able to read the weights."""
    run_as_group: NumericId
    """Group id of every container, 1 to 2147483647, for example 10001."""
    engines: Annotated[list[Member], Field(min_length=1, max_length=3), list_of("set")] = ["vllm", "sglang"]
    """Engines that it is for. A NIM writes into its image, whose files belong to the user of the image: name `nim` only
    for images that you have started with this user. Default: vllm and sglang."""
    namespaces: Namespaces
    """Namespaces that it is about; '*' means every namespace."""

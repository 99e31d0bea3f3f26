"""What the operator's configuration allows the deployments of some namespaces: one class for each list."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.engine import Member
from hermetic.api.field_types import (
    AbsolutePath,
    HostName,
    LabelKey,
    LabelValue,
    Namespaces,
    ObjectName,
    RelativePath,
    Repository,
    SourceRange,
    matches,
)
from hermetic.api.reserved_flags import NO_RENAMED_VARIABLE, NO_RESERVED_VARIABLE, REMOTE_CODE, VLLM
from hermetic.api.rules import ApiModel, Rule


class AllowedRegistry(ApiModel):
    """A registry that serving images and image volumes may come from."""

    host: Annotated[
        str,
        StringConstraints(max_length=259),
        matches(
            r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$", "must be a registry host such as 'contoso.azurecr.io'"
        ),
    ]
    """Host of the registry, with its port if it has one."""
    repositories: Annotated[list[Repository], Field(max_length=64)] = []
    """Repositories that may be used, for example 'nim' or 'vllm/vllm-openai': each with everything below it, and not
    those that only begin alike ('nim' does not allow 'nim-mirror'). Default: every repository of the host."""
    namespaces: Namespaces
    """Namespaces whose deployments may use it; '*' allows every namespace."""


class AllowedShare(ApiModel):
    """A share that weights may be read from: `account` and `share` of Azure Files, or `server` and `path` of NFS."""

    RULES = (
        Rule(
            cel="",
            message="must set either `account` and `share` (Azure Files) or `server` and `path` (NFS)",
            holds=lambda allowed: (
                (allowed.account is not None and allowed.share is not None and allowed.path is None)
                or (allowed.server is not None and allowed.path is not None and allowed.account is None)
            ),
        ),
    )

    account: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][-a-z0-9]{2,62}$")] | None = None
    """Storage account, or for a Microsoft.FileShares share the first label of its host name."""
    share: Annotated[str, StringConstraints(max_length=63)] | None = None
    """Name of the Azure Files share."""
    server: HostName | None = None
    """NFS server; beside `account`, the one host name that the share may be mounted from when it is not the default."""
    path: AbsolutePath | None = None
    """Exported path of the NFS server."""
    folders: Annotated[list[RelativePath], Field(max_length=64)] = []
    """Folders of the share that may be read, for example 'team-a': each with everything below it, and not those that
    only begin alike. One line for each namespace keeps namespaces apart on one share. Default: the whole share."""
    namespaces: Namespaces
    """Namespaces whose deployments may read it; '*' allows every namespace."""


class AllowedEngineSettings(ApiModel):
    """Variables and arguments that deployments may give to an engine beside those that Hermetic has reviewed."""

    RULES = (
        Rule(
            cel="",
            message="must name at least one of `variables` and `arguments`",
            holds=lambda allowed: bool(allowed.variables or allowed.arguments),
        ),
    )

    engine: Member
    """Engine that they are for: vllm, nim or sglang."""
    variables: Annotated[
        list[
            Annotated[
                str,
                StringConstraints(max_length=128),
                matches(r"^[A-Za-z_][A-Za-z0-9_]*$", "must be the name of a variable"),
                NO_RESERVED_VARIABLE,
                NO_RENAMED_VARIABLE,
            ]
        ],
        Field(max_length=64),
    ] = []
    """Names of variables, written out. Their values may name files of the image, and still no URL, no address and
    nothing below the weights. Reserved names are refused here as well. Default: none."""
    arguments: Annotated[
        list[
            Annotated[
                str,
                StringConstraints(max_length=128),
                matches(r"^--[a-z0-9][a-z0-9-]*$", "must be a flag with '--', written out, without a value"),
                *VLLM.rules(),
                Rule(
                    cel="",
                    message=f"must not be '{REMOTE_CODE}': `remoteCode` allows it",
                    holds=lambda argument: argument != REMOTE_CODE,
                ),
            ]
        ],
        Field(max_length=64),
    ] = []
    """Flags with '--', written out. The same holds for their values. Reserved flags are refused here as well. Default:
    none."""
    namespaces: Namespaces
    """Namespaces whose deployments may use them; '*' allows every namespace."""


class AllowedRemoteCode(ApiModel):
    """Namespaces whose deployments may run the Python code that lies beside their weights in an image."""

    namespaces: Namespaces
    """Namespaces whose deployments may run it; '*' allows every namespace."""


class AllowedAddresses(ApiModel):
    """Addresses that load balancers of some namespaces may ask for."""

    ranges: Annotated[list[SourceRange], Field(min_length=1, max_length=64)]
    """Ranges of addresses, for example '10.13.76.32/28', or one address with '/32'."""
    namespaces: Namespaces
    """Namespaces whose deployments may ask for them; '*' allows every namespace."""


class AllowedToleration(ApiModel):
    """A taint that pods of some namespaces may accept."""

    key: LabelKey
    """Key of the taint, for example 'sku'."""
    values: Annotated[list[LabelValue], Field(max_length=64)] = []
    """Values of the taint that may be accepted, each by `operator` 'Equal'. Default: every value, and 'Exists' too."""
    namespaces: Namespaces
    """Namespaces whose deployments may accept it; '*' allows every namespace."""


class AllowedPriorityClass(ApiModel):
    """A PriorityClass that pods of some namespaces may have."""

    name: ObjectName
    """Name of the PriorityClass. The operator always refuses the classes of the system ('system-...')."""
    namespaces: Namespaces
    """Namespaces whose deployments may name it; '*' allows every namespace."""


class AllowedNodeLabel(ApiModel):
    """A node label that pods of some namespaces may select."""

    key: LabelKey
    """Key of the label, for example 'kubernetes.azure.com/agentpool'."""
    values: Annotated[list[LabelValue], Field(max_length=64)] = []
    """Values that may be selected. Default: every value."""
    namespaces: Namespaces
    """Namespaces whose deployments may select it; '*' allows every namespace."""
